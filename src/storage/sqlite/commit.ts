import { open } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { byIdentity } from "../../core/by-identity.ts";
import { StorageError, isTransient } from "../../core/errors.ts";
import { type Database, databaseName, inTurn, whenUnlocked } from "./database.ts";
import { checkpointInThread } from "./threads.ts";

const FULL = 2;

/** Progress of one connection's log on its way to the disk. */
interface LogState {
  /** The flush of the log under way; later commits need the next one. */
  underWay?: Promise<void>;
  next?: Promise<void>;
  /** True if a flush failed; a later success then proves nothing about the same bytes. */
  isDoubtful: boolean;
}

const logState = byIdentity((_database: Database): LogState => ({ isDoubtful: false }));

/** Does `work` without waiting for the disk: a power cut may undo it until the next flush of the log. */
export function withoutWaiting<T>(database: Database, work: () => T): T {
  if (database.inTransaction || !flushesItself(database)) return work();
  database.pragma("synchronous = NORMAL");
  try {
    return work();
  } finally {
    database.pragma("synchronous = FULL");
  }
}

/** Does `work` by `whenUnlocked` and does not wait for the disk; a power cut may undo it. */
export const quickly = <T>(database: Database, work: () => T): Promise<T> =>
  whenUnlocked(database, () => withoutWaiting(database, work));

/** Makes everything that was committed before outlive a power cut, without holding up the event loop. */
export function flushLog(database: Database): Promise<void> {
  const state = logState(database);
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
    // After a failed flush the log may lack bytes; a checkpoint writes them from memory into the file.
    if (!state.isDoubtful) {
      const file = await open(`${database.name}-wal`, "r+");
      try {
        await file.datasync();
      } finally {
        await file.close();
      }
    } else if (!(await checkpointInThread(database.name, "TRUNCATE"))) throw new Error("others use the log");
    state.isDoubtful = false;
  } catch (thrown) {
    // Closing the last connection has written all of the log into the file.
    if (!database.open) return;
    state.isDoubtful = true;
    const message = `The disk did not accept writes to ${databaseName(database.name)}. Check the disk and try again.`;
    throw new StorageError("storage_io", message, { cause: thrown });
  }
}

/** True if every commit of the connection waits for the disk. */
export const flushesItself = (database: Database): boolean =>
  Number(database.pragma("synchronous", { simple: true })) >= FULL;

/** Work that waits for the next commit. */
interface Waiting {
  /** Does the work; the result notifies its caller once the transaction has ended. */
  work: () => () => void;
  reject: (thrown: unknown) => void;
  /** Its caller waits for the disk. */
  isDurable: boolean;
}

/** Commits work that comes in quick succession in one transaction, in its order: single commits take much longer. */
export class GroupCommit {
  #waiting: Waiting[] = [];
  #gathering: Promise<void> = Promise.resolve();
  readonly #database: Database;

  private constructor(database: Database) {
    this.#database = database;
  }

  /** The one of a connection. */
  static readonly of = byIdentity((database: Database) => new GroupCommit(database));

  /** Resolves once `work` is committed. If it throws, nothing of it is kept. It may be done again. */
  run<T>(work: () => T): Promise<T> {
    return this.#add(work, true);
  }

  /** Commits without waiting for the disk: a power cut may undo it until the next commit that does. */
  note<T>(work: () => T): Promise<T> {
    return this.#add(work, false);
  }

  #add<T>(work: () => T, isDurable: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      const attempt = (): (() => void) => {
        try {
          const result = inTransaction(this.#database, work);
          return () => resolve(result);
        } catch (thrown) {
          // A failure of the file undoes all of the transaction.
          if (isTransient(thrown)) throw thrown;
          return () => reject(thrown);
        }
      };
      this.#waiting.push({ work: attempt, reject, isDurable });
      if (this.#waiting.length === 1) this.#gathering = this.#gather();
    });
  }

  /** Resolves once the work that waits is committed, has failed, or waits for the lock of another process. */
  async tried(): Promise<void> {
    await this.#gathering;
  }

  /** Resolves once the work that waits is committed, or has failed. */
  async settled(): Promise<void> {
    if (this.#waiting.length > 0) await this.run(() => undefined).catch(() => undefined);
  }

  async #gather(): Promise<void> {
    // The longest wait for more work, in turns of the event loop.
    for (let turn = 0, known = 0; known < this.#waiting.length && turn < 16; turn += 1) {
      known = this.#waiting.length;
      await nextTurn();
    }
    const group = this.#waiting;
    this.#waiting = [];
    void this.#commit(group);
  }

  /** Commits at once, unless another process holds the lock. */
  async #commit(group: readonly Waiting[]): Promise<void> {
    const workAll = (): (() => void)[] =>
      inTransaction(this.#database, () => group.map(({ work }) => work()));
    const isDurable = group.some((one) => one.isDurable);
    try {
      const ends = await (isDurable ? whenUnlocked : quickly)(this.#database, workAll);
      for (const end of ends) end();
    } catch (thrown) {
      for (const { reject } of group) reject(thrown);
    }
  }
}

/** From so many unwritten pages on, 4 MB, the write-ahead log is written into the file. */
const LONG_LOG = 1000;

/**
 * Lets a thread write the connection's log into its file from time to time, which SQLite would do within a commit.
 * After a failure commits do it again. Must be called when no transaction is open. Returns a function that ends
 * this, to be called before the connection is closed.
 */
export function writeLogInThread(database: Database, onError: (error: unknown) => void): () => Promise<void> {
  if (database.memory) return async () => undefined;
  // Number of pages from which a commit writes the log into the file itself, which blocks the event loop.
  database.pragma("wal_autocheckpoint = 64000");
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
      // This is the answer of the pragma, which in this mode does nothing else.
      const [state] = database.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
      const { pages, waiting } = { pages: state.log, waiting: state.log - state.checkpointed };
      if (waiting >= LONG_LOG) underWay ??= write();
      // From so many pages on, 32 MB, writers wait until the log is in the file: only then SQLite reuses it.
      if (pages < 8000 || waiting === 0) return;
      pause ??= inTurn(database, async () => {
        await underWay;
        await (underWay ??= write());
      }).finally(() => (pause = undefined));
    } catch (error) {
      failed(error);
    }
  };
  const timer = setInterval(look, 250).unref();
  return async () => {
    clearInterval(timer);
    await pause;
    await underWay;
  };
}

/**
 * Does `work` in one transaction that takes the write lock first. Its reads are then unchanged when it writes,
 * and a second process waits instead of failing half-way. The transaction is on the disk afterwards.
 */
export const inTransaction = <T>(database: Database, work: () => T): T =>
  connectionTransaction(database).immediate(work) as T; // the result of `work`

/** The transaction of each connection; making one takes the driver longer than beginning and committing it. */
const connectionTransaction = byIdentity((database: Database) =>
  database.transaction((work: () => unknown) => work()),
);
