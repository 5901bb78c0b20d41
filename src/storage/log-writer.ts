import type { Database } from "./database.ts";
import { inTurn } from "./lock-wait.ts";
import { checkpointInThread } from "./sql-thread.ts";

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
