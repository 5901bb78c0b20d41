/** Deletes finished runs with all their rows, over any engine. */
import { ownTurn } from "../../core/concurrency.ts";
import type { PruneContext, PruneReport } from "../retention.ts";
import type { Checkpoints } from "../thread-ports.ts";
import { IS_FORGETTABLE } from "./runs.ts";
import { TABLES_OF_RUN } from "./schema.ts";
import { type Engine, type Steps, all, change, insert } from "./steps.ts";

/** Threads looked up or noted between two turns of the event loop. */
const THREADS_PER_TURN = 200;

/** An engine, and the way to do work that frees space on a full disk. */
interface PrunePlace {
  engine: Engine;
  inRoom: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Begins a prune: finishes an earlier one, and deletes rows without a run. */
export async function beginPrune(place: PrunePlace, context: PruneContext): Promise<PruneReport> {
  const { now, signal, orphans = "keep", sweepMemories } = context;
  const { engine } = place;
  const report: PruneReport = { runs: 0, threads: 0, memories: 0, freedBytes: 0 };
  await engine.write(function* () {
    // Old copies of threads that no run took over.
    const sql = "DELETE FROM thread_copies WHERE begun_at < @before RETURNING id";
    // Copying a thread never takes so long, in milliseconds.
    yield* noteThreads((yield* all<{ id: string }>(sql, { before: now - 3_600_000 })).map(({ id }) => id));
  });
  await forgetThreads(place, context);
  report.memories = (await sweepMemories?.(signal)) ?? 0;
  if (orphans === "keep") return report;
  const found = await findOrphans(engine, context.checkpoints);
  report.orphans = found.length;
  if (orphans === "delete") {
    // A power cut may undo a note, because nothing is deleted without one.
    for (const some of threadBatches(found)) await engine.note(() => noteThreads(some)).then(ownTurn);
    await forgetThreads(place, context);
  }
  return report;
}

function* threadBatches(threads: readonly string[]): Generator<string[]> {
  for (let at = 0; at < threads.length; at += THREADS_PER_TURN)
    yield threads.slice(at, at + THREADS_PER_TURN);
}

/** Notes threads whose checkpoints must be deleted. */
function* noteThreads(threads: readonly string[]): Steps<void> {
  for (const id of threads) yield* insert("pruned_threads", { id }, "ON CONFLICT DO NOTHING");
}

/** Finds threads of checkpoints that no run has. A thread, or the note of a copy, is stored before its checkpoints. */
export async function findOrphans(engine: Engine, checkpoints: Checkpoints | undefined): Promise<string[]> {
  const orphans: string[] = [];
  for (const some of threadBatches((await checkpoints?.threads()) ?? [])) {
    const values = { threads: JSON.stringify(some) };
    const sql = `SELECT value AS thread FROM json_each(@threads)
  WHERE NOT EXISTS (SELECT 1 FROM threads WHERE id = value)
    AND NOT EXISTS (SELECT 1 FROM thread_copies WHERE id = value)
    AND NOT EXISTS (SELECT 1 FROM pruned_threads WHERE id = value)`;
    const found = await engine.read(() => all<{ thread: string }>(sql, values));
    orphans.push(...found.map(({ thread }) => thread));
    await ownTurn();
  }
  return orphans;
}

interface ForgettableRow {
  id: string;
  thread_id: string;
}

/** The oldest runs that ended before then. One that is still being stopped has a lease, and stays. */
export const forgettable = (endedBefore: number, limit: number): Steps<ForgettableRow[]> =>
  all(
    `SELECT id, thread_id FROM runs WHERE ended_at < @endedBefore AND ${IS_FORGETTABLE}
     ORDER BY ended_at LIMIT @limit FOR UPDATE SKIP LOCKED`,
    { endedBefore, limit },
  );

/** Deletes runs with their children, and notes the threads that no run has any more. */
export function* forgetRuns(rows: readonly ForgettableRow[]): Steps<void> {
  const idsIn = (found: readonly ForgettableRow[]): string => JSON.stringify(found.map(({ id }) => id));
  const ofParents =
    "SELECT id, thread_id FROM runs WHERE parent_id IN (SELECT value FROM json_each(@ids)) FOR UPDATE";
  const gone = [...rows, ...(yield* all<ForgettableRow>(ofParents, { ids: idsIn(rows) }))];
  const values = { ids: idsIn(gone) };
  for (const table of TABLES_OF_RUN)
    yield* change(`DELETE FROM ${table} WHERE run_id IN (SELECT value FROM json_each(@ids))`, values);
  yield* change("DELETE FROM runs WHERE id IN (SELECT value FROM json_each(@ids))", values);
  const threads = yield* all<{ id: string }>(
    `DELETE FROM threads WHERE id IN (SELECT value FROM json_each(@threads))
       AND NOT EXISTS (SELECT 1 FROM runs WHERE thread_id = threads.id) RETURNING id`,
    { threads: JSON.stringify(gone.map(({ thread_id }) => thread_id)) },
  );
  const ids = JSON.stringify(threads.map(({ id }) => id));
  yield* change("DELETE FROM thread_sources WHERE thread_id IN (SELECT value FROM json_each(@ids))", { ids });
  yield* noteThreads(threads.map(({ id }) => id));
}

/** Deletes the checkpoints of noted threads, which are elsewhere, and then the notes; returns their number. */
export async function forgetThreads(
  { engine, inRoom }: PrunePlace,
  { checkpoints, signal }: Pick<PruneContext, "checkpoints" | "signal">,
): Promise<number> {
  let count = 0;
  for (const { id } of await engine.read(() => all<{ id: string }>("SELECT id FROM pruned_threads"))) {
    if (signal.aborted) break;
    await inRoom(async () => checkpoints?.deleteThread(id));
    // A note that a power cut restores leads to one more deletion, of nothing.
    await inRoom(() => engine.note(() => change("DELETE FROM pruned_threads WHERE id = @id", { id })));
    count += 1;
    await ownTurn();
  }
  return count;
}
