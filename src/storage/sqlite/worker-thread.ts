import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { driverFile, sqliteError } from "./driver.ts";

/** What a thread does with its connection to `file`; `work` is the source of a function of JavaScript. */
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
const { sqlite, file, values, ...options } = workerData;
try {
  const database = new (require(sqlite))(file, { ...options, fileMustExist: true });
  parentPort.once("message", () => database.close());
  parentPort.postMessage({ result: (${work})(database, ...values) });
} catch (error) {
  parentPort.postMessage({ message: String(error.message), code: String(error.code) });
}`;

const STATEMENT = `(database, sql, ...values) => {
  const statement = database.prepare(sql);
  return statement.reader ? statement.all(...values) : (statement.run(...values), []);
}`;

const SCHEMA = `(database) => void database.prepare("SELECT count(*) FROM sqlite_schema").get()`;

type Outcome = { result: unknown } | { message: string; code: string };

/**
 * The rows of one statement that only reads the database in `file`, on a connection of its own in a thread:
 * for what reads all of a file, while the event loop goes on. Throws `SqliteError`.
 */
export const readInThread = async (file: string, sql: string, ...values: string[]): Promise<unknown[]> =>
  (await inThread({ file, readonly: true, work: STATEMENT, values: [sql, ...values] })) as unknown[]; // as it gives

/**
 * Writes what is in the write-ahead log into the file, as far as readers and writers let it; `TRUNCATE` waits
 * for them and then makes the log empty. Gives whether all of it was written.
 */
export async function checkpointInThread(file: string, mode: "PASSIVE" | "TRUNCATE"): Promise<boolean> {
  const values = [`PRAGMA wal_checkpoint(${mode})`];
  const [state] = (await inThread({ file, work: STATEMENT, values })) as [
    { busy: number; log: number; checkpointed: number }, // what it answers
  ];
  return state.busy === 0 && state.log === state.checkpointed;
}

/** Opens the file in a thread, which puts what a crash left in order; gives what closes it. */
export async function openInThread(file: string, timeout: number): Promise<() => Promise<void>> {
  const thread = await begun({ file, work: SCHEMA, values: [], timeout });
  return () => thread.close();
}

/** What `work` gives for its connection and `values`. Throws `SqliteError`. */
export async function inThread(work: ThreadWork): Promise<unknown> {
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
    throw sqliteError(outcome.message, outcome.code);
  }
  const close = async (): Promise<void> => {
    const ended = once(worker, "exit");
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    worker.postMessage("close");
    await ended;
  };
  return { result: outcome.result, close };
}
