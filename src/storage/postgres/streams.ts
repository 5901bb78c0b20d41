/** Messages sent to 2025-era sessions, in Postgres. */
import { randomBytes } from "node:crypto";
import { KeyedLock } from "../../core/concurrency.ts";
import type { SentMessage, StreamStore } from "../../runs/server-ports.ts";
import { type Access, query } from "./engine.ts";

const READ_PAGE = `
SELECT id, owner, message FROM stream_events
WHERE session = @session AND stream = @stream AND id >= @from ORDER BY id LIMIT @limit`;
/** All but the newest that have so many characters together. */
const SHRINK = `
DELETE FROM stream_events WHERE id <= (
  SELECT max(id) FROM (SELECT id, sum(size) OVER (ORDER BY id DESC) AS total FROM stream_events) AS newest
  WHERE total > @characters)`;

export function streamStore(access: Access): StreamStore {
  /** A session's message ids follow the order of the calls. */
  const inOrder = new KeyedLock();
  const remove = async (where: string, values: Record<string, unknown>): Promise<void> =>
    void (await query(access, `DELETE FROM stream_events WHERE ${where}`, values));
  return {
    append: (sent) =>
      inOrder.run(sent.session, async () => {
        const insert = `
INSERT INTO stream_events (session, owner, stream, message, size, time)
VALUES (@session, @owner, @stream, @message, @size, @time) RETURNING id`;
        const [row] = await query<{ id: number }>(access, insert, { ...sent, size: sent.message.length });
        return row?.id ?? 0;
      }),
    dropUpTo: (session, id) => remove("session = @session AND id <= @id", { session, id }),
    streamOf: async (session, id) => {
      const sql = "SELECT stream FROM stream_events WHERE id = @id AND session = @session";
      return (await query<{ stream: string }>(access, sql, { session, id }))[0]?.stream;
    },
    page: (place) => query<SentMessage>(access, READ_PAGE, place),
    deleteSession: (session) => remove("session = @session", { session }),
    deleteUntil: (time) => remove("time <= @time", { time }),
    shrinkTo: async (characters) => void (await query(access, SHRINK, { characters })),
    // The pool is the storage's.
    close: () => undefined,
  };
}

/** A secret of 32 bytes that all servers have. The first one that asks makes it. */
export async function secret(access: Access, name: string): Promise<Uint8Array> {
  const made = { name, value: randomBytes(32) };
  await query(
    access,
    "INSERT INTO secrets (name, value) VALUES (@name, @value) ON CONFLICT DO NOTHING",
    made,
  );
  const sql = "SELECT value FROM secrets WHERE name = @name";
  return (await query<{ value: Uint8Array }>(access, sql, { name }))[0]?.value ?? made.value;
}
