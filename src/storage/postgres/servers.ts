/** The servers on one Postgres, and the place where each of them works. */
import { randomUUID } from "node:crypto";
import type { Logger } from "../../core/logger.ts";
import type { Migration } from "../sql/migration.ts";
import type { Access } from "./access.ts";
import { query } from "./engine.ts";

/** `number` is the order in which they came. `seen_at` is in milliseconds, by the clock of Postgres. */
const TABLES = `
CREATE TABLE servers (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  environment TEXT NOT NULL,
  seen_at BIGINT NOT NULL
);`;

export const POSTGRES_SERVERS: readonly Migration[] = [
  { version: 1, name: "the servers that are there", sql: TABLES },
];

/** Interval at which a server reports that it is alive, and validity of a report, in ms. */
const SAY_MS = 10_000;
const HOLDS_MS = 30_000;

const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const SAY = `
INSERT INTO servers (id, environment, seen_at) VALUES (@id, @environment, ${NOW})
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at RETURNING number`;

export class ServerList {
  readonly #access: Access;
  readonly #logger: Logger;
  readonly #id = randomUUID();
  #timer: NodeJS.Timeout | undefined;

  constructor(access: Access, logger: Logger) {
    this.#access = access;
    this.#logger = logger;
  }

  /** Says from now on that this server works there. Gives the environments of the servers that came before it. */
  async enter(environment: string): Promise<string[]> {
    const [own] = await query<{ number: number }>(this.#access, SAY, { id: this.#id, environment });
    this.#timer ??= setInterval(() => {
      const said = query(this.#access, SAY, { id: this.#id, environment });
      // The next time, or another server that ended, is soon enough for either.
      said.catch((error: unknown) => this.#logger.debug("storage.not_said", { error }));
    }, SAY_MS).unref();
    await query(this.#access, `DELETE FROM servers WHERE seen_at <= ${NOW} - @holds`, { holds: HOLDS_MS });
    const others = `SELECT DISTINCT environment FROM servers WHERE number < @number`;
    const rows = await query<{ environment: string }>(this.#access, others, { number: own?.number ?? 0 });
    return rows.map((row) => row.environment);
  }

  async leave(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#timer === undefined) return;
    // A server that cannot say so is forgotten after a while.
    await query(this.#access, "DELETE FROM servers WHERE id = @id", { id: this.#id }).catch(() => undefined);
  }
}
