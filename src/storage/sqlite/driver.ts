import { once } from "node:events";
import { createRequire } from "node:module";
import { basename, dirname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Database, OpenOptions } from "./api.ts";
import { codeName, hasNodeSqlite, nodeIsAtLeast, openNodeDatabase } from "./node-driver.ts";
import { codeOf } from "../../core/errors.ts";

const load = createRequire(import.meta.url);

/** Whether this Node is too old for release 13 of better-sqlite3, which crashes it. */
const NEEDS_OLD_RELEASE = !nodeIsAtLeast(22, 0);
/** Node 20 needs release 12, which is installed by who needs it; it works on most versions of Node. */
const PACKAGE =
  !NEEDS_OLD_RELEASE && isInstalled("better-sqlite3-13") ? "better-sqlite3-13" : "better-sqlite3";

/**
 * Whether the installed release can end the process: release 12 does on Node 24.19 and later, when a statement is
 * collected as garbage while no script runs.
 */
const CAN_ABORT = PACKAGE === "better-sqlite3" && nodeIsAtLeast(24, 19);

function isInstalled(name: string): boolean {
  try {
    load.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Arguments of npm that repair the installation. */
const REMEDY = !NEEDS_OLD_RELEASE
  ? "install --include=optional"
  : isInstalled("better-sqlite3")
    ? "rebuild better-sqlite3 --ignore-scripts=false"
    : "install better-sqlite3@12";

/** The command that repairs the installation, where this program is installed. */
export const REPAIR = `npm ${REMEDY}`;

/** The same for any folder. */
export function repairAnywhere(): string {
  const own = dirname(load.resolve("deepagent-mcp/package.json"));
  const modules = dirname(own);
  const folder = basename(modules) === "node_modules" ? dirname(modules) : own;
  return `npm --prefix "${folder}" ${REMEDY}`;
}

/** An error of SQLite itself; `code` is its extended result code. */
type SqliteError = Error & { code: string };

type Driver = new (file: string, options?: OpenOptions) => Database;

const driver = (): Driver => load(PACKAGE) as Driver;

/** Why Node's own SQLite is used: the driver cannot be loaded, or is not safe with this Node. */
let fallback: string | undefined = CAN_ABORT
  ? `better-sqlite3 12 can end a program at any time on Node ${process.versions.node}`
  : undefined;

/** Says for people why Node's own SQLite is used; `undefined` when the driver is. */
export const whyNodeSqlite = (): string | undefined => fallback;

/** The file that a thread or another process loads the driver from; `undefined` when Node's own is used. */
export const driverFile = (): string | undefined =>
  fallback === undefined ? load.resolve(PACKAGE) : undefined;

/**
 * Opens `file`, or a database in memory, with the SQLite of Node when the driver cannot be loaded and this Node has
 * it. Throws `SqliteError`, or what `missingModule` knows.
 */
export function openConnection(file: string, options?: OpenOptions): Database {
  if (fallback !== undefined) return openNodeDatabase(file, options);
  try {
    return new (driver())(file, options);
  } catch (thrown) {
    const missing = missingModule(thrown);
    if (missing === undefined || !hasNodeSqlite()) throw thrown;
    fallback = `the native module of better-sqlite3 ${missing}`;
    return openNodeDatabase(file, options);
  }
}

/** The error that SQLite reports as `code`. */
export const sqliteError = (message: string, code: string): SqliteError =>
  Object.assign(new Error(message), { name: "SqliteError", code });

export const isSqliteError = (thrown: unknown): thrown is SqliteError =>
  thrown instanceof Error && thrown.name === "SqliteError" && "code" in thrown;

/** Says why the driver could not be loaded; `undefined` when `thrown` is another error. */
export function missingModule(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const code = codeOf(thrown);
  if (code === "ERR_DLOPEN_FAILED")
    return "is damaged, or was built for another version of Node or another system";
  if (code === "ERR_DLOPEN_DISABLED") return "may not be loaded, because Node was started with --no-addons";
  const isMissing = code === "MODULE_NOT_FOUND" && thrown.message.includes("better-sqlite3");
  if (isMissing && !isInstalled(PACKAGE)) return "is not installed";
  // Release 12 looks for its module in several places.
  return "tries" in thrown || isMissing
    ? "was not built when this program was installed, as with --ignore-scripts"
    : undefined;
}

/** Work of a thread with its connection to `file`; `work` is the source of a function of JavaScript. */
interface ThreadWork {
  file: string;
  readonly?: boolean;
  work: string;
  values: readonly unknown[];
  /** How long it waits for other connections' locks, in milliseconds. */
  timeout?: number;
}

/** Plain JavaScript, so that it is the same in the bundle and in sources. */
const threadOf = (work: string): string => `
const { parentPort, workerData } = require("node:worker_threads");
const { sqlite, file, values, readonly = false, timeout = 5000 } = workerData;
try {
  if (sqlite === undefined) process.emitWarning = () => {};
  const database = sqlite === undefined
    ? new (require("node:sqlite").DatabaseSync)(file, { readOnly: readonly })
    : new (require(sqlite))(file, { readonly, timeout, fileMustExist: true });
  if (sqlite === undefined) database.exec("PRAGMA busy_timeout = " + timeout);
  parentPort.once("message", () => database.close());
  parentPort.postMessage({ result: (${work})(database, ...values) });
} catch (error) {
  parentPort.postMessage({ message: String(error.message), code: String(error.code), number: error.errcode });
}`;

const STATEMENT = `(database, sql, ...values) => {
  const statement = database.prepare(sql);
  return statement.reader === false ? (statement.run(...values), []) : statement.all(...values);
}`;

const SCHEMA = `(database) => void database.prepare("SELECT count(*) FROM sqlite_schema").get()`;

type Outcome = { result: unknown } | { message: string; code: string; number?: number };

/**
 * Gives the rows of one statement that only reads. A thread carries it out on a connection of its own, so that
 * the event loop goes on while a whole file is read. Throws `SqliteError`.
 */
export const readInThread = async (file: string, sql: string, ...values: string[]): Promise<unknown[]> =>
  (await inThread({ file, readonly: true, work: STATEMENT, values: [sql, ...values] })) as unknown[]; // as it gives

/**
 * Writes the write-ahead log into the file, as far as readers and writers allow it. `TRUNCATE` waits for them and
 * then empties the log. Gives whether all of the log was written.
 */
export async function checkpointInThread(file: string, mode: "PASSIVE" | "TRUNCATE"): Promise<boolean> {
  const values = [`PRAGMA wal_checkpoint(${mode})`];
  const [state] = (await inThread({ file, work: STATEMENT, values })) as [
    { busy: number; log: number; checkpointed: number }, // what it answers
  ];
  return state.busy === 0 && state.log === state.checkpointed;
}

/** Opens the file in a thread, which recovers the log that a crash left; gives a function that closes it. */
export async function openInThread(file: string, timeout: number): Promise<() => Promise<void>> {
  const thread = await begun({ file, work: SCHEMA, values: [], timeout });
  return () => thread.close();
}

/** Gives the result of `work` for its connection and `values`. Throws `SqliteError`. */
async function inThread(work: ThreadWork): Promise<unknown> {
  const thread = await begun(work);
  await thread.close();
  return thread.result;
}

async function begun({ work, ...data }: ThreadWork): Promise<{ result: unknown; close(): Promise<void> }> {
  const worker = new Worker(threadOf(work), { eval: true, workerData: { sqlite: driverFile(), ...data } });
  // Rejects with what the thread itself failed with.
  const [outcome] = (await once(worker, "message")) as [Outcome]; // as posted above
  if (!("result" in outcome)) {
    await worker.terminate();
    throw sqliteError(
      outcome.message,
      outcome.number === undefined ? outcome.code : codeName(outcome.number),
    );
  }
  const close = async (): Promise<void> => {
    const ended = once(worker, "exit");
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    worker.postMessage("close");
    await ended;
  };
  return { result: outcome.result, close };
}
