/** The servers on one Postgres, and the place where each of them works. */
import { randomUUID } from "node:crypto";
import type { Logger } from "../../core/logger.ts";
import { type Access, NOW, query } from "./engine.ts";

/** Interval at which a server reports that it is alive, and validity of a report, in ms. */
const SAY_MS = 10_000;
const HOLDS_MS = 30_000;

const SAY = `
INSERT INTO servers (id, environment, seen_at) VALUES (@id, @environment, ${NOW})
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at RETURNING number`;

/** Announces this server to the others until it leaves. */
export function serverList(access: Access, logger: Logger) {
  const id = randomUUID();
  let timer: NodeJS.Timeout | undefined;
  return {
    /** Reports from now on that this server works there. Returns the environments of the servers before it. */
    enter: async (environment: string): Promise<string[]> => {
      const [own] = await query<{ number: number }>(access, SAY, { id, environment });
      timer ??= setInterval(() => {
        const said = query(access, SAY, { id, environment });
        // The next time, or another server that ended, is soon enough for either.
        said.catch((error: unknown) => logger.debug("storage.not_said", { error }));
      }, SAY_MS).unref();
      await query(access, `DELETE FROM servers WHERE seen_at <= ${NOW} - @holds`, { holds: HOLDS_MS });
      const others = `SELECT DISTINCT environment FROM servers WHERE number < @number`;
      const rows = await query<{ environment: string }>(access, others, { number: own?.number ?? 0 });
      return rows.map((row) => row.environment);
    },
    leave: async (): Promise<void> => {
      clearInterval(timer);
      if (timer === undefined) return;
      // A server that cannot report this is dropped after a while.
      await query(access, "DELETE FROM servers WHERE id = @id", { id }).catch(() => undefined);
    },
  };
}
