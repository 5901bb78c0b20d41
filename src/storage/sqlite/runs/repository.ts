import { isLocked } from "../../../core/errors.ts";
import { type RunRepository, storedRuns } from "../../../runs/sql/repository.ts";
import { type Database, pragmaNumber, usedBytes } from "../database.ts";
import { sqliteEngine } from "../engine.ts";
import { textIndex } from "./text-index.ts";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { KEPT_FOR_SIZE_MS } from "../../../runs/retention.ts";
import type { Checkpoints } from "../../../runs/thread-ports.ts";
import { beginPrune, forgetRuns, forgetThreads, forgettable } from "../../../runs/sql/housekeeping.ts";
import { DISOWN, IS_FORGETTABLE } from "../../../runs/sql/runs.ts";
import type { Engine, Steps } from "../../../runs/sql/steps.ts";
import { flushLog, quickly } from "../commit.ts";
import { inOwnRoom, returnSpace } from "../free-space.ts";

/** Makes the port over `database`, which `RUN_MIGRATIONS` have migrated. The caller closes it after the last use. */
export function sqliteRuns(database: Database): RunRepository {
  const engine = sqliteEngine(database);
  return storedRuns(engine, {
    watchOthers: (listener, pollMs) => {
      // `data_version` changes when another connection commits.
      const read = (): unknown => database.pragma("data_version", { simple: true });
      let version = read();
      const timer = setInterval(() => {
        try {
          const newest = read();
          if (newest === version) return;
          version = newest;
          listener.changedElsewhere();
        } catch (error) {
          listener.failed(error);
        }
      }, pollMs).unref();
      return { close: () => clearInterval(timer) };
    },
    prune: (...args) => prune(database, engine, ...args),
    storedBytes: (checkpoints) => storedBytes(database, checkpoints),
    assertWritable: () => assertWritable(database),
    textIndex,
  });
}

const EVENTS_PER_PIECE = 100;

/**
 * Deletes finished runs, oldest first, with their journal, approvals and result. With the last run of a thread, its
 * conversation and files are deleted too. The next call continues an interrupted one. Memories stay.
 */
export async function prune(
  database: Database,
  engine: Engine,
  ...[{ maxAgeMs, maxBytes }, context]: Parameters<RunRepository["prune"]>
): ReturnType<RunRepository["prune"]> {
  const { checkpoints, now, signal } = context;
  const place = { engine, inRoom: <T>(work: () => Promise<T>) => inOwnRoom(database, work) };
  const isTooMuch = async (): Promise<boolean> =>
    maxBytes !== undefined && (await storedBytes(database, checkpoints)) > maxBytes;
  const before = maxAgeMs === undefined ? 0 : now - maxAgeMs;
  const report = await beginPrune(place, context);
  const forgetSome = async (endedBefore: number, limit: number): Promise<number> => {
    await shortenJournals(database, { endedBefore, limit, signal });
    if (signal.aborted) return 0;
    return inOwnRoom(database, (again) => engine.note(() => deleteEndedRuns(endedBefore, again ? 1 : limit)));
  };
  // To keep below a size, runs are deleted one at a time, because the next may fit.
  const forgetNext = async (): Promise<number> => {
    let ofAge = 0;
    for (let last = -1; last !== 0 && ofAge < 500 && !signal.aborted; ofAge += last) {
      last = await forgetSome(before, 10);
      await nextTurn();
    }
    return ofAge > 0 || !(await isTooMuch()) ? ofAge : forgetSome(now - KEPT_FOR_SIZE_MS, 1);
  };
  while (!signal.aborted) {
    const forgotten = await forgetNext();
    if (forgotten === 0) break;
    report.runs += forgotten;
    // Checkpoints are in another file, and must not go while a power cut could restore their run.
    await flushLog(database);
    report.threads += await forgetThreads(place, context);
  }
  // On a full disk emptying either log makes room for both files.
  const ofCheckpoints = await inOwnRoom(database, async () => checkpoints?.returnSpace(signal));
  report.freedBytes = (ofCheckpoints ?? 0) + (await returnSpace(database, signal));
  return report;
}

export const storedBytes = async (database: Database, checkpoints: Checkpoints | undefined) =>
  usedBytes(database) + ((await checkpoints?.usedBytes()) ?? 0);

/**
 * Deletes all but the end of long journals of runs that are deleted next. Such a run is first taken away from its
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

/** Deletes some of the runs that ended before then; returns their number, which is 0 when there are none. */
function* deleteEndedRuns(endedBefore: number, limit: number): Steps<number> {
  // A transaction begins no further run after so many milliseconds, because others wait for it.
  const over = performance.now() + 2;
  let forgotten = 0;
  for (const row of yield* forgettable(endedBefore, limit)) {
    if (forgotten > 0 && performance.now() >= over) break;
    yield* forgetRuns([row]);
    forgotten += 1;
  }
  return forgotten;
}

/** @throws unless the database can be written to now. Changes nothing in it. */
export async function assertWritable(
  database: Database,
  freeBytes: (folder: string) => Promise<number> = async (folder) => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
): Promise<void> {
  // When another connection has the write lock, the file can be written to.
  const timeout = pragmaNumber(database, "busy_timeout");
  database.pragma("busy_timeout = 0");
  try {
    database.exec("DELETE FROM runs WHERE 0");
  } catch (error) {
    if (!isLocked(error)) throw error;
  } finally {
    database.pragma(`busy_timeout = ${timeout}`);
  }
  if (database.memory) return;
  const free = await freeBytes(dirname(database.name));
  // Bytes that must be free beside the database: a run that cannot be stored must not be started.
  if (free < 16 * 1024 * 1024) throw new Error(`only ${free} bytes are free beside the database`);
}
