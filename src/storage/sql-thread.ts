import { once } from "node:events";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import SqliteDatabase from "better-sqlite3";

/** Reads the file in a thread of its own; plain JavaScript, so that it is the same in the bundle and in sources. */
const READER = `
const { parentPort, workerData } = require("node:worker_threads");
const Database = require(workerData.sqlite);
try {
  const database = new Database(workerData.file, { readonly: true, fileMustExist: true });
  try {
    const statement = database.prepare(workerData.sql);
    const { values } = workerData;
    parentPort.postMessage({ rows: statement.reader ? statement.all(...values) : (statement.run(...values), []) });
  } finally {
    database.close();
  }
} catch (error) {
  parentPort.postMessage({ message: String(error.message), code: String(error.code) });
}`;

type Outcome = { rows: unknown[] } | { message: string; code: string };

/**
 * The rows of one statement that only reads the database in `file`, on a connection of its own in a thread:
 * for what reads all of a file, while the event loop goes on. Throws `SqliteError`.
 */
export async function readInThread(file: string, sql: string, ...values: string[]): Promise<unknown[]> {
  const sqlite = createRequire(import.meta.url).resolve("better-sqlite3");
  const worker = new Worker(READER, { eval: true, workerData: { sqlite, file, sql, values } });
  // Rejects with what the thread itself failed with.
  const [outcome] = (await once(worker, "message")) as [Outcome]; // as posted above
  await worker.terminate();
  if ("rows" in outcome) return outcome.rows;
  throw new SqliteDatabase.SqliteError(outcome.message, outcome.code);
}
