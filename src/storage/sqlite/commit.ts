import { open } from "node:fs/promises";
import type { Transaction } from "better-sqlite3";
import { setImmediate as nextTurn } from "node:timers/promises";
import { StorageError, isLocked, isTransient } from "../../core/errors.ts";
import { type Database, databaseName, inTurn, whenUnlocked } from "./database.ts";
import { checkpointInThread } from "./driver.ts";

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

/** Statements that belong together. What they throw undoes them and is told to who asked for them. */
type Job = () => void;

/** What is known of a job before it runs. */
interface Facts {
  /** Roughly what it writes. */
  bytes: number;
  /** Whose it is: the steps of one agent have one source. */
  source: string;
}

interface Entry extends Facts {
  job: Job;
  resolve(): void;
  reject(thrown: unknown): void;
}

/** Most of one transaction: longer ones would hold up the event loop. */
const JOBS_PER_COMMIT = 48;
const BYTES_PER_COMMIT = 2_000_000;
/** How many turns of the event loop a commit waits at most, while each brings something of another agent. */
const TURNS = 16;

/**
 * Commits what is asked for in quick succession in one transaction, in the order it came: a commit costs as
 * much as writing twenty results, and with many agents at work would take much of their time.
 */
export class GroupCommit {
  readonly #waiting: Entry[] = [];
  /** How many of those that wait were part of a commit that failed: each is tried alone. */
  #alone = 0;
  #isCommitting = false;
  readonly #database: Database;
  readonly #runAll: (entries: readonly Entry[]) => void;

  constructor(database: Database) {
    this.#database = database;
    const runAll = database.transaction((entries: readonly Entry[]) => {
      for (const { job } of entries) job();
    });
    this.#runAll = (entries) => runAll.immediate(entries);
  }

  /** Resolves once the job is committed. */
  run(facts: Facts, job: Job): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, ...facts, resolve, reject });
      if (!this.#isCommitting) void this.#commitAll();
    });
  }

  /**
   * Commits at once what waits, but for what failed before. Throws when another connection holds the lock:
   * then all of it still waits.
   */
  flush(): void {
    while (this.#waiting.length > 0 && this.#alone === 0) this.#commitNext();
  }

  async #commitAll(): Promise<void> {
    this.#isCommitting = true;
    for (;;) {
      await this.#gathered();
      if (this.#waiting.length === 0) break;
      try {
        await whenUnlocked(this.#database, () => this.#commitNext());
      } catch (thrown) {
        // The lock was held for too long.
        this.#alone = 0;
        for (const entry of this.#waiting.splice(0)) entry.reject(thrown);
      }
    }
    this.#isCommitting = false;
  }

  /**
   * Waits for the agents at work, however slow they are. A single agent's steps are committed as they come: what
   * waits cannot be packed yet.
   */
  async #gathered(): Promise<void> {
    const sources = new Set<string>();
    let known = 1;
    for (let turn = 0; turn < TURNS; turn += 1) {
      await nextTurn();
      for (const { source } of this.#waiting) sources.add(source);
      if (sources.size <= known || this.#waiting.length >= JOBS_PER_COMMIT) return;
      known = sources.size;
    }
  }

  #commitNext(): void {
    if (this.#waiting.length === 0) return; // a flush was faster
    const isAlone = this.#alone > 0;
    const entries = this.#takeNext();
    try {
      this.#runAll(entries);
    } catch (thrown) {
      if (isLocked(thrown)) {
        this.#waiting.unshift(...entries);
        if (isAlone) this.#alone += 1;
        throw thrown;
      }
      // What no file takes now is not tried again one by one: each could wait for a lock in vain.
      if (entries.length === 1 || isTransient(thrown)) for (const entry of entries) entry.reject(thrown);
      else this.#tryAlone(entries);
      return;
    }
    for (const entry of entries) entry.resolve();
  }

  /** Nothing of them was kept. One at a time, each fails or succeeds for reasons of its own. */
  #tryAlone(entries: readonly Entry[]): void {
    this.#waiting.unshift(...entries);
    this.#alone = entries.length;
  }

  #takeNext(): Entry[] {
    if (this.#alone > 0) {
      this.#alone -= 1;
      return this.#waiting.splice(0, 1);
    }
    let [count, bytes] = [0, 0];
    while (count < Math.min(this.#waiting.length, JOBS_PER_COMMIT) && bytes < BYTES_PER_COMMIT) {
      bytes += this.#waiting[count]?.bytes ?? 0;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}

/** Pages in the write-ahead log that are not in the file yet, from which on they are written into it: 4 MB. */
const LONG_LOG = 1000;
/**
 * From here on, 32 MB, those who write in turns wait meanwhile. Without a pause the log never gets shorter: SQLite
 * begins it anew only when all of it is in the file.
 */
const FULL_LOG = 8000;
/** From here on a commit does it itself, and holds up the event loop: nobody who writes waits, or a reader is slow. */
const TOO_LONG_LOG = 64_000;
const LOOK_EVERY_MS = 250;

/**
 * Has a thread write the log of the connection into its file from time to time, which flushes the disk; SQLite
 * would do it within a commit, and does again after a failure. To be called when no transaction is open; gives
 * what ends it, before the connection is closed.
 */
export function writeLogInThread(database: Database, onError: (error: unknown) => void): () => Promise<void> {
  if (database.memory) return async () => undefined;
  database.pragma(`wal_autocheckpoint = ${TOO_LONG_LOG}`);
  let underWay: Promise<void> | undefined;
  let pause: Promise<void> | undefined;
  const failed = (error: unknown): void => {
    clearInterval(timer);
    onError(error);
    if (database.open) database.pragma(`wal_autocheckpoint = ${LONG_LOG}`);
  };
  const write = (): Promise<void> =>
    checkpointInThread(database.name, "PASSIVE")
      .then(() => undefined, failed)
      .finally(() => (underWay = undefined));
  const look = (): void => {
    try {
      const { pages, waiting } = lengthOfLog(database);
      if (waiting >= LONG_LOG) underWay ??= write();
      if (pages < FULL_LOG || waiting === 0) return;
      pause ??= inTurn(database, async () => {
        await underWay;
        await (underWay ??= write());
      }).finally(() => (pause = undefined));
    } catch (error) {
      failed(error);
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return async () => {
    clearInterval(timer);
    await pause;
    await underWay;
  };
}

/** Pages in the log, and those of them that are not in the file yet. */
function lengthOfLog(database: Database): { pages: number; waiting: number } {
  // What the pragma answers; this mode does nothing else.
  const [state] = database.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
  return { pages: state.log, waiting: state.log - state.checkpointed };
}

/**
 * Does `work` in one transaction that takes the write lock first: what it reads is still so when it
 * writes, and a second process waits its turn instead of failing half-way. It is on the disk afterwards.
 */
export function inTransaction<T>(database: Database, work: () => T): T {
  let transaction = transactions.get(database);
  if (transaction === undefined) {
    transaction = database.transaction((given) => given());
    transactions.set(database, transaction);
  }
  return transaction.immediate(work) as T; // what `work` gave
}

type AnyTransaction = Transaction<(work: () => unknown) => unknown>;
/** One for each connection: the driver takes longer to make a transaction than to begin and commit it. */
const transactions = new WeakMap<Database, AnyTransaction>();

/**
 * As `inTransaction`, for what nobody relies on after a power cut: it outlives the end of the process, and
 * reaches the disk with the next transaction that does.
 */
export function inQuickTransaction<T>(database: Database, work: () => T): T {
  return withoutWaiting(database, () => inTransaction(database, work));
}
