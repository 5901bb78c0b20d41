/** Forgets, counts and checks runs in Postgres. */
import type { Pool, PoolClient } from "pg";
import {
  KEPT_FOR_SIZE_MS,
  type PruneContext,
  type PruneReport,
  type Retention,
} from "../../runs/retention.ts";
import type { Checkpoints } from "../../runs/thread-ports.ts";
import { BYTES_IN_OBJECTS } from "./checkpoints/objects.ts";
import { IS_FORGETTABLE } from "../sql/runs.ts";
import { TABLES_OF_RUN } from "../sql/schema.ts";

/** Copying a thread never takes so long, in milliseconds. */
const COPY_MS = 3_600_000;
/** Runs that one transaction forgets. */
const RUNS_AT_ONCE = 100;

/** Implements `RunRepository.prune`. The freed space is reused; files shrink only after VACUUM FULL. */
export async function prune(
  pool: Pool,
  { maxAgeMs, maxBytes }: Retention,
  { checkpoints, now, signal, orphans = "keep", sweepMemories }: PruneContext,
): Promise<PruneReport> {
  const report: PruneReport = { runs: 0, threads: 0, memories: 0, freedBytes: 0 };
  await pool.query(
    `WITH given_up AS (DELETE FROM thread_copies WHERE begun_at < $1 RETURNING id)
     INSERT INTO pruned_threads (id) SELECT id FROM given_up ON CONFLICT DO NOTHING`,
    [now - COPY_MS],
  );
  report.memories = (await sweepMemories?.(signal)) ?? 0;
  if (orphans !== "keep") {
    const found = await findOrphans(pool, checkpoints);
    report.orphans = found.length;
    if (orphans === "delete") {
      await pool.query("INSERT INTO pruned_threads (id) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING", [
        found,
      ]);
    }
  }
  const forgetUpTo = async (endedBefore: number, most: number): Promise<void> => {
    for (let left = most; left > 0 && !signal.aborted;) {
      const forgotten = await forgetSome(pool, endedBefore, Math.min(left, RUNS_AT_ONCE));
      report.runs += forgotten;
      left = forgotten === 0 ? 0 : left - forgotten;
    }
  };
  // Runs that a person deleted count as ended before any time.
  await forgetUpTo(maxAgeMs === undefined ? 0 : now - maxAgeMs, Infinity);
  if (maxBytes !== undefined) await forgetUpTo(now - KEPT_FOR_SIZE_MS, await excessRuns(pool, maxBytes));
  report.threads = await forgetThreads(pool, checkpoints, signal);
  return report;
}

/** Implements `RunRepository.assertWritable`. */
export async function assertWritable(pool: Pool): Promise<void> {
  await pool.query("DELETE FROM runs WHERE false");
}

async function numberOf(pool: Pool, sql: string, values: unknown[] = []): Promise<number> {
  const { rows } = await pool.query<[number]>({ text: sql, values, rowMode: "array" });
  return rows[0]?.[0] ?? 0;
}

/** Bytes of all tables of the schema, with their indexes, and of the objects in S3. */
export const storedBytes = (pool: Pool): Promise<number> =>
  numberOf(
    pool,
    `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint + ${BYTES_IN_OBJECTS} FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
  );

/** Number of runs that make up the storage above `maxBytes`, counted with equal sizes: files do not shrink at once. */
async function excessRuns(pool: Pool, maxBytes: number): Promise<number> {
  const stored = await storedBytes(pool);
  const runs = await numberOf(pool, "SELECT count(*) FROM runs");
  return stored <= maxBytes ? 0 : Math.ceil((runs * (stored - maxBytes)) / stored);
}

/** Forgets the oldest runs that ended before then, in one transaction; gives their number. */
async function forgetSome(pool: Pool, endedBefore: number, limit: number): Promise<number> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const forgotten = await forget(client, endedBefore, limit);
    await client.query("COMMIT");
    return forgotten;
  } catch (thrown) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw thrown;
  } finally {
    client.release();
  }
}

async function forget(client: PoolClient, endedBefore: number, limit: number): Promise<number> {
  // A run that is still being stopped has a lease, and stays.
  const { rows } = await client.query<{ id: string; thread_id: string }>(
    `SELECT id, thread_id FROM runs WHERE ended_at < $1 AND ${IS_FORGETTABLE}
     ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
    [endedBefore, limit],
  );
  const { rows: children } = await client.query<{ id: string; thread_id: string }>(
    "SELECT id, thread_id FROM runs WHERE parent_id = ANY($1) FOR UPDATE",
    [rows.map(({ id }) => id)],
  );
  const all = [...rows, ...children];
  const runs = all.map(({ id }) => id);
  for (const table of TABLES_OF_RUN)
    await client.query(`DELETE FROM ${table} WHERE run_id = ANY($1)`, [runs]);
  await client.query("DELETE FROM runs WHERE id = ANY($1)", [runs]);
  await client.query(
    `WITH gone AS (
       DELETE FROM threads WHERE id = ANY($1) AND NOT EXISTS (SELECT 1 FROM runs WHERE thread_id = threads.id)
       RETURNING id)
     INSERT INTO pruned_threads (id) SELECT id FROM gone ON CONFLICT DO NOTHING`,
    [all.map(({ thread_id }) => thread_id)],
  );
  return rows.length;
}

/** A thread is stored before its first checkpoint, and so is the note of a copy: what is in neither has no owner. */
export async function findOrphans(pool: Pool, checkpoints: Checkpoints | undefined): Promise<string[]> {
  const threads = (await checkpoints?.threads()) ?? [];
  const { rows } = await pool.query<{ id: string }>(
    `SELECT id FROM unnest($1::text[]) AS id WHERE id NOT IN (
       SELECT id FROM threads UNION SELECT id FROM thread_copies UNION SELECT id FROM pruned_threads)`,
    [threads],
  );
  return rows.map(({ id }) => id);
}

/** Deletes the checkpoints of threads that are forgotten; gives how many threads there were. */
async function forgetThreads(
  pool: Pool,
  checkpoints: Checkpoints | undefined,
  signal: AbortSignal,
): Promise<number> {
  const { rows } = await pool.query<{ id: string }>("SELECT id FROM pruned_threads");
  let count = 0;
  for (const { id } of rows) {
    if (signal.aborted) break;
    await checkpoints?.deleteThread(id);
    await pool.query("DELETE FROM pruned_threads WHERE id = $1", [id]);
    count += 1;
  }
  return count;
}
