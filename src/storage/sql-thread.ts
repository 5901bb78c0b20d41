import { once } from "node:events";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import SqliteDatabase from "better-sqlite3";

/** Plain JavaScript, so that it is the same in the bundle and in sources. */
const THREAD = `
const { parentPort, workerData } = require("node:worker_threads");
const Database = require(workerData.sqlite);
const { file, readonly, sql, values } = workerData;
try {
  const database = new Database(file, { readonly, fileMustExist: true });
  try {
    const statement = database.prepare(sql);
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
export const readInThread = (file: string, sql: string, ...values: string[]): Promise<unknown[]> =>
  inThread({ file, readonly: true, sql, values });

/**
 * Writes what is in the write-ahead log into the file, as far as readers and writers let it; `TRUNCATE` waits
 * for them and then makes the log empty. Gives whether all of it was written.
 */
export async function checkpointInThread(file: string, mode: "PASSIVE" | "TRUNCATE"): Promise<boolean> {
  const sql = `PRAGMA wal_checkpoint(${mode})`;
  const [state] = await inThread({ file, readonly: false, sql, values: [] });
  const { busy, log, checkpointed } = state as { busy: number; log: number; checkpointed: number }; // what it answers
  return busy === 0 && log === checkpointed;
}

async function inThread(work: {
  file: string;
  readonly: boolean;
  sql: string;
  values: string[];
}): Promise<unknown[]> {
  const sqlite = createRequire(import.meta.url).resolve("better-sqlite3");
  const worker = new Worker(THREAD, { eval: true, workerData: { sqlite, ...work } });
  // Rejects with what the thread itself failed with.
  const [outcome] = (await once(worker, "message")) as [Outcome]; // as posted above
  await worker.terminate();
  if ("rows" in outcome) return outcome.rows;
  throw new SqliteDatabase.SqliteError(outcome.message, outcome.code);
}
