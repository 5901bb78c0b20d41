import { setImmediate as nextTurn } from "node:timers/promises";
import { type Database, pragmaNumber } from "./database.ts";
import { withoutWaiting } from "./durability.ts";
import { isFull } from "./errors.ts";
import { whenUnlocked } from "./lock-wait.ts";
import { checkpointInThread } from "./sql-thread.ts";

/** Pages moved in one transaction: others wait for it. */
const PAGES_PER_TURN = 64;
/** The same on a disk that is full. */
const PAGES_IN_OWN_ROOM = 8;
/** What is free is used again: so much of the file stays. */
const KEPT_SHARE = 1 / 16;

/**
 * Gives what is free in the file back to the file system, in pieces. Gives the bytes by which it got smaller:
 * none for a file made before files could. Readers that are at work may keep it as it is until the next time.
 */
export async function returnSpace(database: Database, signal: AbortSignal): Promise<number> {
  if (pragmaNumber(database, "auto_vacuum") !== INCREMENTAL) return 0;
  const before = pragmaNumber(database, "page_count");
  while (!signal.aborted && pragmaNumber(database, "freelist_count") > before * KEPT_SHARE) {
    // What a power cut undoes here is only free again.
    const move = (count: number) => () =>
      withoutWaiting(database, () => database.pragma(`incremental_vacuum(${count})`));
    await inOwnRoom(database, (again) =>
      whenUnlocked(database, move(again ? PAGES_IN_OWN_ROOM : PAGES_PER_TURN)),
    );
    await nextTurn();
  }
  const pages = before - pragmaNumber(database, "page_count");
  // The file itself gets smaller when the log is written into it.
  if (pages > 0 && !database.memory) await checkpointInThread(database.name, "TRUNCATE");
  return Math.max(0, pages * pragmaNumber(database, "page_size"));
}

/**
 * Does `work`, a transaction that makes room. Where a disk is full it is tried `again`, when the log is in the
 * file and empty: what is written of a small one has room there.
 */
export async function inOwnRoom<T>(database: Database, work: (again: boolean) => Promise<T>): Promise<T> {
  try {
    return await work(false);
  } catch (thrown) {
    if (!isFull(thrown) || database.memory) throw thrown;
    await checkpointInThread(database.name, "TRUNCATE");
    return work(true);
  }
}

const INCREMENTAL = 2;
