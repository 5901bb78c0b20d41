import type { Database } from "./database.ts";
import { checkpointInThread } from "./sql-thread.ts";

/** Pages in the write-ahead log that are not in the file yet, from which on they are written into it: 4 MB. */
const LONG_LOG = 1000;
/** From here on a commit does it itself: the thread does not keep up, or cannot run. */
const TOO_LONG_LOG = 16_000;
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
  const timer = setInterval(() => {
    underWay ??= look().finally(() => (underWay = undefined));
  }, LOOK_EVERY_MS).unref();
  const look = async (): Promise<void> => {
    try {
      if (pagesWaiting(database) >= LONG_LOG) await checkpointInThread(database.name, "PASSIVE");
    } catch (error) {
      clearInterval(timer);
      onError(error);
      if (database.open) database.pragma(`wal_autocheckpoint = ${LONG_LOG}`);
    }
  };
  return async () => {
    clearInterval(timer);
    await underWay;
  };
}

function pagesWaiting(database: Database): number {
  // What the pragma answers; this mode does nothing else.
  const [state] = database.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
  return state.log - state.checkpointed;
}
