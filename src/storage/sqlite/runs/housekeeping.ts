/** Forgets, counts and checks runs in their SQLite file. */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ownTurn } from "../../../core/concurrency.ts";
import {
  KEPT_FOR_SIZE_MS,
  type PruneContext,
  type PruneReport,
  type Retention,
} from "../../../runs/retention.ts";
import type { Checkpoints } from "../../../runs/thread-ports.ts";
import { flushLog, inTransaction, quickly } from "../commit.ts";
import { DISOWN, IS_FORGETTABLE } from "../../sql/runs.ts";
import { TABLES_OF_RUN } from "../../sql/schema.ts";
import { type Database, usedBytes, whenUnlocked } from "../database.ts";
import { inOwnRoom, returnSpace } from "../free-space.ts";

/** Copying a thread never takes so long, in milliseconds. */
const COPY_MS = 3_600_000;
/** Runs looked up at a time. */
const RUNS_PER_LOOK = 10;
/** Runs that are forgotten between two flushes of the log. */
const RUNS_PER_FLUSH = 500;
/** Events that are deleted in one statement. */
const EVENTS_PER_PIECE = 100;
/** Threads looked up or noted between two turns of the event loop. */
const THREADS_PER_TURN = 200;
/** A transaction begins no further run after so many milliseconds, because others wait for it. */
const TURN_MS = 2;

/**
 * Deletes finished runs, oldest first, with their journal, approvals and result. With the last run of a thread, its
 * conversation and files are deleted too. The next call continues an interrupted one. Memories stay.
 */
export async function prune(
  database: Database,
  { maxAgeMs, maxBytes }: Retention,
  { checkpoints, now, signal, orphans = "keep", sweepMemories }: PruneContext,
): Promise<PruneReport> {
  const report: PruneReport = { runs: 0, threads: 0, memories: 0, freedBytes: 0 };
  const isTooMuch = async (): Promise<boolean> =>
    maxBytes !== undefined && (await storedBytes(database, checkpoints)) > maxBytes;
  const before = maxAgeMs === undefined ? 0 : now - maxAgeMs;
  await whenUnlocked(database, () => giveUpCopies(database, now - COPY_MS));
  await forgetThreads(database, checkpoints, signal);
  report.memories = (await sweepMemories?.(signal)) ?? 0;
  if (orphans !== "keep") {
    const found = await findOrphans(database, checkpoints);
    report.orphans = found.length;
    if (orphans === "delete") {
      await noteThreads(database, found);
      await forgetThreads(database, checkpoints, signal);
    }
  }
  const forget = prepareForgetting(database);
  const forgetSome = async (endedBefore: number, limit: number): Promise<number> => {
    await shortenJournals(database, { endedBefore, limit, signal });
    if (signal.aborted) return 0;
    return inOwnRoom(database, (again) => quickly(database, () => forget(endedBefore, again ? 1 : limit)));
  };
  // To keep below a size, runs are forgotten one at a time, because the next may fit.
  const forgetNext = async (): Promise<number> => {
    let ofAge = 0;
    for (let last = -1; last !== 0 && ofAge < RUNS_PER_FLUSH && !signal.aborted; ofAge += last) {
      last = await forgetSome(before, RUNS_PER_LOOK);
      await nextTurn();
    }
    return ofAge > 0 || !(await isTooMuch()) ? ofAge : forgetSome(now - KEPT_FOR_SIZE_MS, 1);
  };
  while (!signal.aborted) {
    const forgotten = await forgetNext();
    if (forgotten === 0) break;
    report.runs += forgotten;
    // Checkpoints are in another file, and must not go while a power cut could bring their run back.
    await flushLog(database);
    report.threads += await forgetThreads(database, checkpoints, signal);
  }
  // On a full disk emptying either log makes room for both files.
  const ofCheckpoints = await inOwnRoom(database, async () => checkpoints?.returnSpace(signal));
  report.freedBytes = (ofCheckpoints ?? 0) + (await returnSpace(database, signal));
  return report;
}

export const storedBytes = async (
  database: Database,
  checkpoints: Checkpoints | undefined,
): Promise<number> => usedBytes(database) + ((await checkpoints?.usedBytes()) ?? 0);

/**
 * Deletes all but the end of long journals of runs that are forgotten next. Such a run is first taken away from its
 * principal, so that nobody reads a shortened journal, also when this is broken off. It is then the first to go.
 */
async function shortenJournals(
  database: Database,
  { endedBefore, limit, signal }: { endedBefore: number; limit: number; signal: AbortSignal },
): Promise<void> {
  const long = database.prepare<[number, number], { id: string; last_seq: number }>(`
SELECT id, last_seq FROM (SELECT * FROM runs WHERE ended_at < ? AND ${IS_FORGETTABLE}
  ORDER BY ended_at LIMIT ?) WHERE last_seq > ${EVENTS_PER_PIECE}`);
  const disown = database.prepare<[string]>(`${DISOWN} WHERE id = ?`);
  const shorten = database.prepare<[string, number]>("DELETE FROM run_events WHERE run_id = ? AND seq <= ?");
  /** Writes without waiting for the disk; a power cut undoes the last of these writes, never an earlier one alone. */
  const write = (work: () => unknown) => inOwnRoom(database, () => quickly(database, work));
  for (const { id, last_seq } of long.all(endedBefore, limit)) {
    await write(() => disown.run(id));
    for (let seq = EVENTS_PER_PIECE; seq < last_seq && !signal.aborted; seq += EVENTS_PER_PIECE) {
      await write(() => shorten.run(id, seq));
      await nextTurn();
    }
  }
}

/**
 * Forgets some of the runs that ended before then, in one transaction; gives their number, which is 0 when there
 * are none. A run that is still being stopped has a lease, and stays.
 */
function prepareForgetting(database: Database): (endedBefore: number, limit: number) => number {
  const candidates = database.prepare<[number, number], { id: string; thread_id: string }>(
    `SELECT id, thread_id FROM runs WHERE ended_at < ? AND ${IS_FORGETTABLE} ORDER BY ended_at LIMIT ?`,
  );
  const deleteOfRun = TABLES_OF_RUN.map((table) => database.prepare(`DELETE FROM ${table} WHERE run_id = ?`));
  const deleteRun = database.prepare("DELETE FROM runs WHERE id = ?");
  const childrenOf = database.prepare<[string], { id: string; thread_id: string }>(
    "SELECT id, thread_id FROM runs WHERE parent_id = ?",
  );
  const runOf = database.prepare("SELECT 1 FROM runs WHERE thread_id = ?");
  const deleteThread = database.prepare("DELETE FROM threads WHERE id = ?");
  const noteThread = database.prepare("INSERT INTO pruned_threads (id) VALUES (?)");
  const forget = (id: string, threadId: string): void => {
    for (const child of childrenOf.all(id)) forget(child.id, child.thread_id);
    for (const statement of deleteOfRun) statement.run(id);
    deleteRun.run(id);
    if (runOf.get(threadId) !== undefined) return;
    deleteThread.run(threadId);
    noteThread.run(threadId);
  };
  return (endedBefore, limit) =>
    inTransaction(database, () => {
      const over = performance.now() + TURN_MS;
      let forgotten = 0;
      for (const { id, thread_id } of candidates.all(endedBefore, limit)) {
        if (forgotten > 0 && performance.now() >= over) break;
        forget(id, thread_id);
        forgotten += 1;
      }
      return forgotten;
    });
}

/** Gives up old copies of threads that no run took over. */
function giveUpCopies(database: Database, begunBefore: number): void {
  const giveUp = database
    .prepare<[number], string>("DELETE FROM thread_copies WHERE begun_at < ? RETURNING id")
    .pluck();
  const note = database.prepare("INSERT OR IGNORE INTO pruned_threads (id) VALUES (?)");
  inTransaction(database, () => {
    for (const id of giveUp.all(begunBefore)) note.run(id);
  });
}

/** Finds threads of checkpoints that no run has. A thread, or the note of a copy, is stored before its checkpoints. */
export async function findOrphans(
  database: Database,
  checkpoints: Checkpoints | undefined,
): Promise<string[]> {
  const threads = (await checkpoints?.threads()) ?? [];
  const owner = database
    .prepare<{ id: string }, number>(`
SELECT 1 WHERE EXISTS (SELECT 1 FROM threads WHERE id = @id)
  OR EXISTS (SELECT 1 FROM thread_copies WHERE id = @id) OR EXISTS (SELECT 1 FROM pruned_threads WHERE id = @id)`)
    .pluck();
  const orphans: string[] = [];
  for (const [index, id] of threads.entries()) {
    if (index % THREADS_PER_TURN === THREADS_PER_TURN - 1) await nextTurn();
    if (owner.get({ id }) === undefined) orphans.push(id);
  }
  return orphans;
}

/** Notes threads whose checkpoints must be deleted. */
async function noteThreads(database: Database, threads: readonly string[]): Promise<void> {
  const note = database.prepare("INSERT OR IGNORE INTO pruned_threads (id) VALUES (?)");
  for (let at = 0; at < threads.length; at += THREADS_PER_TURN) {
    const some = threads.slice(at, at + THREADS_PER_TURN);
    // A power cut may undo a note, because nothing is deleted without one.
    await quickly(database, () => inTransaction(database, () => some.forEach((id) => note.run(id))));
    await nextTurn();
  }
}

/** Deletes the checkpoints of noted threads, which are in another file, and then the notes. */
async function forgetThreads(
  database: Database,
  checkpoints: Checkpoints | undefined,
  signal: AbortSignal,
): Promise<number> {
  const threads = database.prepare<[], { id: string }>("SELECT id FROM pruned_threads").all();
  const forgotten = database.prepare("DELETE FROM pruned_threads WHERE id = ?");
  let count = 0;
  for (const { id } of threads) {
    if (signal.aborted) break;
    await inOwnRoom(database, async () => checkpoints?.deleteThread(id));
    // A note that a power cut brings back leads to one more deletion, of nothing.
    await inOwnRoom(database, () => quickly(database, () => forgotten.run(id)));
    count += 1;
    await ownTurn();
  }
  return count;
}

/** Bytes that must be free beside the database: a run that cannot be stored must not be started. */
const MIN_FREE = 16 * 1024 * 1024;

/** @throws unless the database can be written to now. Changes nothing in it. */
export async function assertWritable(
  database: Database,
  freeBytes: (folder: string) => Promise<number> = freeBytesOf,
): Promise<void> {
  takeWriteLock(database);
  if (database.memory) return;
  const free = await freeBytes(dirname(database.name));
  if (free < MIN_FREE) throw new Error(`only ${free} bytes are free beside the database`);
}

/** Tries to get the write lock without waiting. When another connection has it, the file can be written to. */
function takeWriteLock(database: Database): void {
  const timeout: unknown = database.pragma("busy_timeout", { simple: true });
  database.pragma("busy_timeout = 0");
  try {
    database.exec("DELETE FROM runs WHERE 0");
  } catch (error) {
    if (!isBusy(error)) throw error;
  } finally {
    database.pragma(`busy_timeout = ${Number(timeout)}`);
  }
}

/** True if the error, or a cause of it, is a lock error. */
function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return String(Reflect.get(error, "code")).startsWith("SQLITE_BUSY") || isBusy(error.cause);
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
