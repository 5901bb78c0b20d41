import { setImmediate as nextTurn } from "node:timers/promises";
import type { Statement } from "better-sqlite3";
import { isFull } from "../../core/errors.ts";
import { withoutWaiting } from "./commit.ts";
import { type Database, pragmaNumber, whenUnlocked } from "./database.ts";
import { checkpointInThread } from "./driver.ts";

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

/** Most of what one statement deletes: more would hold up the event loop. */
const ROWS = 200;
const BYTES = 2_000_000;

/** Deletes some of the rows of `table` that meet `where`. */
export type DeletePiece = Statement<[{ thread: string }]>;

/** @param bytes SQL for the size of a row. */
export function preparePiece(database: Database, table: string, bytes: string, where: string): DeletePiece {
  return database.prepare(`
DELETE FROM ${table} WHERE rowid IN (
  SELECT id FROM (
    SELECT id, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM (SELECT rowid AS id, ${bytes} AS bytes FROM ${table} WHERE ${where} LIMIT ${ROWS})
  ) WHERE before < ${BYTES}
)`);
}

/**
 * Deletes all, a piece in each turn of the event loop: what a crash leaves is deleted when it is repeated.
 * `assertMay` is called in the transaction of each piece.
 */
export async function deleteInPieces(
  pieces: readonly DeletePiece[],
  thread: string,
  assertMay: () => void = () => undefined,
): Promise<void> {
  for (const piece of pieces) {
    const some = piece.database.transaction(() => {
      assertMay();
      return piece.run({ thread }).changes;
    });
    const { database } = piece;
    const next = () => inOwnRoom(database, () => whenUnlocked(database, () => some.immediate()));
    while ((await next()) > 0) await nextTurn();
  }
}
