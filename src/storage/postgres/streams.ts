/** Messages sent to 2025-era sessions, in Postgres. */
import { randomBytes } from "node:crypto";
import { KeyedLock } from "../../core/concurrency.ts";
import type { StreamStore } from "../../runs/server-ports.ts";
import { readQueries } from "../../runs/sql/sql-files.ts";
import { type Access, query } from "./engine.ts";
import queries from "./streams.sql" with { type: "text" };

const sql = readQueries(queries);

export function streamStore(access: Access): StreamStore {
  /** A session's message ids follow the order of the calls. */
  const inOrder = new KeyedLock();
  const remove = async (where: string, values: Record<string, unknown>): Promise<void> =>
    void (await query(access, `DELETE FROM stream_events WHERE ${where}`, values));
  return {
    append: (sent) =>
      inOrder.run(sent.session, async () => {
        const values = { ...sent, size: sent.message.length };
        const [row] = await query<{ id: number }>(access, sql("append"), values);
        return row?.id ?? 0;
      }),
    dropUpTo: (session, id) => remove("session = @session AND id <= @id", { session, id }),
    streamOf: async (session, id) =>
      (await query<{ stream: string }>(access, sql("stream"), { session, id }))[0]?.stream,
    page: (place) => query(access, sql("page"), place),
    deleteSession: (session) => remove("session = @session", { session }),
    deleteUntil: (time) => remove("time <= @time", { time }),
    shrinkTo: async (characters) => void (await query(access, sql("shrink"), { characters })),
    // The pool is the storage's.
    close: () => undefined,
  };
}

/** A secret of 32 bytes that all servers have. The first one that asks makes it. */
export async function secret(access: Access, name: string): Promise<Uint8Array> {
  const made = { name, value: randomBytes(32) };
  await query(access, sql("make secret"), made);
  return (await query<{ value: Uint8Array }>(access, sql("secret"), { name }))[0]?.value ?? made.value;
}
