/** Statements that a worker thread runs on its own connection, so that the event loop is not blocked. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { driverModule, sqliteError } from "./driver.ts";
import { NODE_SQLITE, codeName } from "./node-driver.ts";

interface Query {
  file: string;
  /** A statement that returns rows. */
  sql: string;
  values?: readonly string[];
  readonly?: boolean;
  /** Time to wait for locks of other connections, in milliseconds. */
  timeout?: number;
}

/** Plain JavaScript, so that it is the same in the bundle and in sources. Never creates a file. */
const THREAD = `
const { existsSync } = require("node:fs");
const { parentPort, workerData } = require("node:worker_threads");
const { module, file, sql, values = [], readonly = false, timeout = 5000 } = workerData;
function open() {
  if (module !== "${NODE_SQLITE}") return new (require(module))(file, { readonly, timeout, fileMustExist: true });
  process.emitWarning = () => {};
  if (!existsSync(file))
    throw Object.assign(new Error("unable to open database file"), { code: "SQLITE_CANTOPEN" });
  const database = new (require(module).DatabaseSync)(file, { readOnly: readonly });
  database.exec("PRAGMA busy_timeout = " + timeout);
  return database;
}
try {
  const database = open();
  parentPort.once("message", () => database.close());
  parentPort.postMessage({ rows: database.prepare(sql).all(...values) });
} catch (error) {
  parentPort.postMessage({ message: String(error.message), code: String(error.code), number: error.errcode });
}`;

/** Returns the rows of one statement that only reads. Throws `SqliteError`. */
export const readInThread = (file: string, sql: string, ...values: string[]): Promise<unknown[]> =>
  readRows({ file, sql, values, readonly: true });

/**
 * Writes the write-ahead log into the file, as far as readers and writers allow it. `TRUNCATE` waits for them and
 * then empties the log. Returns whether all of the log was written.
 */
export async function checkpointInThread(file: string, mode: "PASSIVE" | "TRUNCATE"): Promise<boolean> {
  const [state] = (await readRows({ file, sql: `PRAGMA wal_checkpoint(${mode})` })) as [
    { busy: number; log: number; checkpointed: number }, // the columns of the pragma
  ];
  return state.busy === 0 && state.log === state.checkpointed;
}

/** Opens the file in a thread, which recovers the log that a crash left; returns a function that closes it. */
export async function openInThread(file: string, timeout: number): Promise<() => Promise<void>> {
  const { close } = await begun({ file, sql: "SELECT count(*) FROM sqlite_schema", timeout });
  return close;
}

async function readRows(query: Query): Promise<unknown[]> {
  const { rows, close } = await begun(query);
  await close();
  return rows;
}

/** Returns the rows of the query; the connection stays open until `close`. Throws `SqliteError`. */
async function begun(query: Query): Promise<{ rows: unknown[]; close: () => Promise<void> }> {
  const worker = new Worker(THREAD, { eval: true, workerData: { module: driverModule(), ...query } });
  // Rejects if the thread itself fails.
  const [outcome] = (await once(worker, "message")) as [
    { rows: unknown[] } | { message: string; code: string; number?: number },
  ]; // as posted above
  if (!("rows" in outcome)) {
    await worker.terminate();
    const code = outcome.number === undefined ? outcome.code : codeName(outcome.number);
    throw sqliteError(outcome.message, code);
  }
  const close = async (): Promise<void> => {
    const ended = once(worker, "exit");
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage("close");
    await ended;
  };
  return { rows: outcome.rows, close };
}
