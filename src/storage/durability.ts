import { open } from "node:fs/promises";
import { type Database, databaseName } from "./database.ts";
import { StorageError } from "./errors.ts";
import { whenUnlocked } from "./lock-wait.ts";
import { checkpointInThread } from "./sql-thread.ts";

const FULL = 2;

/** Of one connection: how far its log is on the disk. */
interface LogState {
  /** The log is being flushed; what was committed since this began needs the next one. */
  underWay?: Promise<void>;
  next?: Promise<void>;
  /** A flush failed: what a later one says of the same bytes cannot be relied on. */
  isDoubtful: boolean;
}

const states = new WeakMap<Database, LogState>();

function stateOf(database: Database): LogState {
  const known = states.get(database);
  if (known !== undefined) return known;
  const state: LogState = { isDoubtful: false };
  states.set(database, state);
  return state;
}

/**
 * Does `work`; what it commits outlives the end of the process, and a power cut only once the log is on the
 * disk: it is written in order, so whatever is flushed takes all before it along.
 */
export function withoutWaiting<T>(database: Database, work: () => T): T {
  if (database.inTransaction || !flushesItself(database)) return work();
  database.pragma("synchronous = NORMAL");
  try {
    return work();
  } finally {
    database.pragma("synchronous = FULL");
  }
}

/**
 * Does `work`, a transaction that somebody is told of, by `whenUnlocked`; what it committed outlives a power cut.
 * SQLite waits for the disk within the commit. A thread that flushed the log instead would hold up the event loop
 * for longer: while many write, each of their writes waits for the flush under way.
 */
export const durably = <T>(database: Database, work: () => T, queue: object = database): Promise<T> =>
  whenUnlocked(queue, work);

/** Makes everything that was committed before outlive a power cut, without holding up the event loop. */
export function flushLog(database: Database): Promise<void> {
  const state = stateOf(database);
  if (state.underWay === undefined) return begin(database, state);
  state.next ??= state.underWay
    .catch(() => undefined)
    .then(() => {
      delete state.next;
      return begin(database, state);
    });
  return state.next;
}

function begin(database: Database, state: LogState): Promise<void> {
  const flush = flushOnce(database, state).finally(() => {
    if (state.underWay === flush) delete state.underWay;
  });
  state.underWay = flush;
  return flush;
}

async function flushOnce(database: Database, state: LogState): Promise<void> {
  if (database.memory) return;
  try {
    // What a disk once failed to take may be gone from the log, and the file gets it from memory.
    if (!state.isDoubtful) await syncFile(`${database.name}-wal`);
    else if (!(await checkpointInThread(database.name, "TRUNCATE"))) throw new Error("others use the log");
    state.isDoubtful = false;
  } catch (thrown) {
    // With the last connection SQLite has put all of the log into the file.
    if (!database.open) return;
    state.isDoubtful = true;
    throw new StorageError(
      "storage_io",
      `The disk did not take what was written to ${databaseName(database.name)}. Check the disk and try again.`,
      { cause: thrown },
    );
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Whether every commit of the connection waits for the disk. */
export const flushesItself = (database: Database): boolean =>
  Number(database.pragma("synchronous", { simple: true })) >= FULL;
