import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "./api.ts";
import { readOptions } from "../../core/options.ts";
import { StorageError, isLocked, codeOf } from "../../core/errors.ts";
import { linkGuard, realPath } from "../../core/real-path.ts";
import { damagedError, directoryError, foreignError, isBusy, storageError } from "./errors.ts";
import { statsAt } from "../../core/stats.ts";
import { openConnection } from "./driver.ts";
import { openInThread } from "./threads.ts";
import texts from "../texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/**
 * Returns a function that throws once the file at `path` was deleted, moved or replaced, or a link leads elsewhere.
 * SQLite itself would continue to write to the open file, and nobody would ever find that data.
 */
function assertInPlace(path: string, name: string): () => void {
  const opened = statSync(path);
  const assertLinks = linkGuard(path, name);
  return () => {
    const found = statsAt(path);
    if (found?.ino === opened.ino && found.dev === opened.dev) return;
    assertLinks();
    throw new StorageError("storage_directory", fill(texts.databaseMoved, name));
  };
}

/** Maximum time that opening or reading a file waits for another connection, in ms. */
const LONG_WAIT_MS = 5000;

/** For each queue the last one that waits in it. */
const queues = new WeakMap<object, Promise<void>>();

/**
 * Runs `work`, a transaction or a writing statement, at once. If another connection holds the lock, it is retried
 * later, and the event loop runs in between. Work with the same `queue`, most often the database, takes turns in order
 * of arrival, and only the first tries: each try blocks the event loop for the connection's timeout. Throws the error
 * of `work`, or the lock's error if it is held for too long.
 */
export async function whenUnlocked<T>(queue: object, work: () => T): Promise<T> {
  const before = queues.get(queue);
  if (before === undefined) {
    try {
      return work();
    } catch (thrown) {
      if (!isLocked(thrown)) throw thrown;
    }
  }
  const giveUpAt = performance.now() + 5000;
  return inTurn(queue, () => untilUnlocked(work, giveUpAt));
}

/** Does `work` after all that came to `queue` before, by this or by `whenUnlocked`; later ones wait for it. */
export async function inTurn<T>(queue: object, work: () => Promise<T>): Promise<T> {
  const turn = Promise.resolve(queues.get(queue)).then(work);
  const settled = turn.then(
    () => undefined,
    () => undefined,
  );
  queues.set(queue, settled);
  try {
    return await turn;
  } finally {
    if (queues.get(queue) === settled) queues.delete(queue);
  }
}

/** Does `work` while the connection waits longer than usual for the locks of others. Blocks the event loop. */
export function withLongWait<T>(database: Database, work: () => T): T {
  const before = Number(database.pragma("busy_timeout", { simple: true }));
  database.pragma(`busy_timeout = ${LONG_WAIT_MS}`);
  try {
    return work();
  } finally {
    database.pragma(`busy_timeout = ${before}`);
  }
}

/** Tries `work` until no other connection's lock is in the way, or it is `giveUpAt` on `performance`'s clock. */
async function untilUnlocked<T>(work: () => T, giveUpAt: number): Promise<T> {
  // Between two tries; each pause is twice the one before.
  for (let pause = 10; ; pause = Math.min(pause * 2, 100)) {
    try {
      return work();
    } catch (thrown) {
      if (!isLocked(thrown) || performance.now() >= giveUpAt) throw thrown;
    }
    await delay(pause);
  }
}

/**
 * Makes `database` throw `StorageError` for every known failure of its file, whichever way it is used:
 * statements, transactions, pragmas, scripts. `name`: its name in messages. `assertInPlace` is called before
 * anything is written by a statement or a transaction.
 */
function throwKnownErrors(database: Database, name: string, assertInPlace: () => void): Database {
  const known =
    <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    (...args: Args): Result => {
      try {
        return method(...args);
      } catch (thrown) {
        throw storageError(thrown, name);
      }
    };
  // Readers never wait for writers, but for a moment for whoever recovers the file after a crash.
  const patient = <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    known((...args: Args): Result => {
      try {
        return method(...args);
      } catch (thrown) {
        if (!isBusy(thrown)) throw thrown;
        return withLongWait(database, () => method(...args));
      }
    });
  const writing = <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    known((...args: Args): Result => {
      if (!database.inTransaction) assertInPlace();
      return method(...args);
    });
  const prepare = known(database.prepare.bind(database));
  const transaction = database.transaction.bind(database);
  return Object.assign(database, {
    exec: known(database.exec.bind(database)),
    pragma: known(database.pragma.bind(database)),
    prepare: (source: string) => {
      const statement = prepare(source);
      const reading = statement.readonly ? patient : known;
      return Object.assign(statement, {
        run: (statement.readonly ? known : writing)(statement.run.bind(statement)),
        get: reading(statement.get.bind(statement)),
        all: reading(statement.all.bind(statement)),
      });
    },
    transaction: (work: (...args: unknown[]) => unknown) => {
      const made = transaction(work);
      return Object.assign(known(made), {
        immediate: writing((...args) => made.immediate(...args)),
        database,
      });
    },
  });
}

/** A connection to the database. Who opened it closes it. */
export type { Database } from "./api.ts";

export interface DatabaseOptions {
  /**
   * `FULL` (default): a commit is on the disk before it returns, so it outlives a power cut.
   * `NORMAL`: it outlives the end of the process; a power cut may lose the newest commits, never the file.
   */
  synchronous?: "FULL" | "NORMAL";
}

/** Longest wait of a write for another connection's lock, in ms. It blocks this process; `whenUnlocked` does not. */
const SHORT_WAIT_MS = 5;
const MEMORY = ":memory:";
/** The pause before a statement that was refused at once is tried again, in milliseconds. */
const BUSY_PAUSE_MS = 20;
/** Maximum time that opening waits for other processes while the event loop runs, in ms. */
const OPENING_MS = 20_000;

/**
 * Opens (or creates) the database `file`; `:memory:` is a private one that ends with its connection.
 *
 * A new file gets mode 0600, missing directories 0700. The journal is a write-ahead log, so any number
 * of processes may read while one writes. Throws `StorageError`, and so does the connection later: an
 * existing file that is damaged, no database or another program's is never written to.
 */
export const openDatabase = (file: string, options: DatabaseOptions = {}): Database =>
  openWaiting(file, readOptions("openDatabase", options, { synchronous: "a text" }), LONG_WAIT_MS);

/** Opens the database like `openDatabase`, but waits and recovers a long log while the event loop runs. */
export async function openDatabaseInTurns(file: string, options: DatabaseOptions = {}): Promise<Database> {
  const path = file === MEMORY ? MEMORY : resolve(file);
  // The first connection after a crash reads all of the log, so a thread makes that one.
  const isLong = logBytes(path) > 1_000_000;
  // An error of the thread is ignored, because opening the file below meets it again.
  const letGo = isLong ? await openInThread(path, OPENING_MS).catch(() => undefined) : undefined;
  try {
    const giveUpAt = performance.now() + OPENING_MS;
    return await untilUnlocked(() => openWaiting(path, options, SHORT_WAIT_MS), giveUpAt);
  } finally {
    await letGo?.();
  }
}

/** Opens the database; each statement of that waits up to `waitMs` for another connection's lock. */
function openWaiting(file: string, options: DatabaseOptions, waitMs: number): Database {
  // An absolute path also keeps SQLite from reading the name as a `file:` URI.
  const path = file === MEMORY ? MEMORY : resolve(file);
  const name = databaseName(path);
  if (path !== MEMORY) {
    const folder = dirname(path);
    try {
      createDirectory(folder);
      createPrivate(path);
    } catch (thrown) {
      throw directoryError(name, thrown, realPath(folder) !== folder);
    }
  }
  let database: Database | undefined;
  try {
    const hasLog = logBytes(path) > 0;
    // Threads open the file again, by the name of this connection: a link may lead elsewhere by then.
    database = openConnection(path === MEMORY ? MEMORY : realPath(path), { timeout: waitMs });
    if (path !== MEMORY) {
      if (pragmaNumber(database, "application_id") !== 0) throw foreignError(name);
      // Only a log may have a part of the last page.
      if (!hasLog && statSync(path).size % pragmaNumber(database, "page_size") !== 0)
        throw damagedError(name);
    }
    configure(database, options.synchronous ?? "FULL", Math.ceil(waitMs / BUSY_PAUSE_MS));
    database.pragma(`busy_timeout = ${SHORT_WAIT_MS}`);
    return throwKnownErrors(database, name, path === MEMORY ? () => undefined : assertInPlace(path, name));
  } catch (thrown) {
    database?.close();
    throw storageError(thrown, name);
  }
}

/** The name of the database at `path` in messages, which never show its folder. */
export const databaseName = (path: string): string => (path === MEMORY ? "(in memory)" : basename(path));

/** Lists the problems that SQLite finds in the file's structure. Reads the whole file. */
export function integrityProblems(database: Database): string[] {
  try {
    const found = database
      .prepare<[], { quick_check: string }>("PRAGMA quick_check(20)")
      .all()
      .map(({ quick_check: problem }) => problem);
    return found.length === 1 && found[0] === "ok" ? [] : found;
  } catch (thrown) {
    const known = storageError(thrown, databaseName(database.name));
    if (known instanceof Error) return [known.message];
    throw thrown;
  }
}

/** Returns the bytes of the pages in use; free pages do not count, because they are used again. */
export function usedBytes(database: Database): number {
  const pages = pragmaNumber(database, "page_count") - pragmaNumber(database, "freelist_count");
  return pages * pragmaNumber(database, "page_size");
}

/** Returns the number of a pragma, such as `page_count`. */
export const pragmaNumber = (database: Database, pragma: string): number =>
  Number(database.pragma(pragma, { simple: true }));

const logBytes = (path: string): number => statsAt(`${path}-wal`)?.size ?? 0;

/** Creates missing directories one by one: in `/proc` `recursive` of Node 20 never returns. */
function createDirectory(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) createDirectory(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (thrown) {
    if (codeOf(thrown) !== "EEXIST") throw thrown;
  }
}

/**
 * Creates the file, or takes the rights of others away from an existing one.
 *
 * An existing file is never opened here: closing any descriptor of a database file drops the locks that
 * other connections of this process hold on it.
 */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (thrown) {
    if (codeOf(thrown) !== "EEXIST") throw thrown;
    const found = statSync(path);
    const isOwn = found.isFile() && found.uid === process.getuid?.();
    if (isOwn && (found.mode & 0o077) !== 0) chmodSync(path, 0o600);
  }
}

/** Sets the connection up; makes so many `tries` at what SQLite refuses without waiting for the busy timeout. */
function configure(database: Database, synchronous: "FULL" | "NORMAL", tries: number): void {
  database.pragma("trusted_schema = OFF");
  // Reading the schema detects a file of another kind before anything could be written to it.
  database.prepare("SELECT count(*) FROM sqlite_schema").get();
  // Only a new file can be set up to release free space; see `returnSpace`.
  if (pragmaNumber(database, "page_count") === 0)
    retryWhileBusy(tries, () => database.pragma("auto_vacuum = INCREMENTAL"));
  // Two processes that turn the log on at once can be refused at once, without the busy timeout.
  retryWhileBusy(tries, () => database.pragma("journal_mode = WAL"));
  database.pragma(`synchronous = ${synchronous}`);
  // Cache size of a connection. The system caches the file too, and SQLite's default of 16 MB only added memory.
  database.pragma(`cache_size = -4000`);
  database.pragma("foreign_keys = ON");
  // SQLite shortens the write-ahead log to this limit, which takes 2 ms for each megabyte within a commit.
  database.pragma(`journal_size_limit = 64000000`);
}

function retryWhileBusy(tries: number, action: () => void): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let attempt = 1; ; attempt += 1) {
    try {
      action();
      return;
    } catch (thrown) {
      if (!isBusy(thrown) || attempt >= tries) throw thrown;
      Atomics.wait(pause, 0, 0, BUSY_PAUSE_MS);
    }
  }
}
