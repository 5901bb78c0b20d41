/** Deletes, counts and checks runs in Postgres. */
import type { Pool } from "pg";
import type { RunRepository } from "../../runs/sql/repository.ts";
import { KEPT_FOR_SIZE_MS } from "../../runs/retention.ts";
import { beginPrune, forgetRuns, forgetThreads, forgettable } from "../../runs/sql/housekeeping.ts";
import type { Engine } from "../../runs/sql/steps.ts";
import { BYTES_IN_OBJECTS } from "./checkpoints/objects.ts";

/** Implements `RunRepository.prune`. The freed space is reused; files shrink only after VACUUM FULL. */
export async function prune(
  pool: Pool,
  engine: Engine,
  ...[{ maxAgeMs, maxBytes }, context]: Parameters<RunRepository["prune"]>
): ReturnType<RunRepository["prune"]> {
  const { now, signal } = context;
  const place = { engine, inRoom: <T>(work: () => Promise<T>) => work() };
  const report = await beginPrune(place, context);
  const forgetUpTo = async (endedBefore: number, most: number): Promise<void> => {
    for (let left = most; left > 0 && !signal.aborted;) {
      const forgotten = await engine.write(function* () {
        const rows = yield* forgettable(endedBefore, Math.min(left, 100));
        if (rows.length > 0) yield* forgetRuns(rows);
        return rows.length;
      });
      report.runs += forgotten;
      left = forgotten === 0 ? 0 : left - forgotten;
    }
  };
  // Runs that a person deleted count as ended before any time.
  await forgetUpTo(maxAgeMs === undefined ? 0 : now - maxAgeMs, Infinity);
  if (maxBytes !== undefined) {
    const stored = await storedBytes(pool);
    const runs = await queryNumber(pool, "SELECT count(*) FROM runs");
    // Runs count with equal sizes, because files do not shrink at once.
    const excess = stored <= maxBytes ? 0 : Math.ceil((runs * (stored - maxBytes)) / stored);
    await forgetUpTo(now - KEPT_FOR_SIZE_MS, excess);
  }
  report.threads = await forgetThreads(place, context);
  return report;
}

/** Implements `RunRepository.assertWritable`. */
export async function assertWritable(pool: Pool): Promise<void> {
  await pool.query("DELETE FROM runs WHERE false");
}

async function queryNumber(pool: Pool, sql: string): Promise<number> {
  const { rows } = await pool.query<[number]>({ text: sql, rowMode: "array" });
  return rows[0]?.[0] ?? 0;
}

/** Bytes of all tables of the schema, with their indexes, and of the objects in S3. */
export const storedBytes = (pool: Pool): Promise<number> =>
  queryNumber(
    pool,
    `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint + ${BYTES_IN_OBJECTS} FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
  );
