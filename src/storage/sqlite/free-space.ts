import { setImmediate as nextTurn } from "node:timers/promises";
import type { Statement } from "./api.ts";
import { isFull } from "../../core/errors.ts";
import { inTransaction, quickly } from "./commit.ts";
import { type Database, pragmaNumber, whenUnlocked } from "./database.ts";
import { checkpointInThread } from "./threads.ts";

/**
 * Returns the free pages of the file to the file system, in pieces. Returns the bytes by which the file got smaller,
 * which is 0 for a file that was made without `auto_vacuum`. Readers at work may delay this until the next call.
 */
export async function returnSpace(database: Database, signal: AbortSignal): Promise<number> {
  if (pragmaNumber(database, "auto_vacuum") !== 2) return 0;
  const before = pragmaNumber(database, "page_count");
  // So much of the file stays free, because it is used again soon.
  while (!signal.aborted && pragmaNumber(database, "freelist_count") > before * (1 / 16)) {
    // Pages that a power cut restores are free, and are returned by the next call.
    await inOwnRoom(database, (again) => {
      // Pages moved in one transaction, for which others wait; fewer on a full disk.
      const count = again ? 8 : 64;
      return quickly(database, () => database.pragma(`incremental_vacuum(${count})`));
    });
    await nextTurn();
  }
  const pages = before - pragmaNumber(database, "page_count");
  // The file itself gets smaller when the log is written into it.
  if (pages > 0 && !database.memory) await checkpointInThread(database.name, "TRUNCATE");
  return Math.max(0, pages * pragmaNumber(database, "page_size"));
}

/**
 * Does `work`, a transaction that frees space. When the disk is full, the log is written into the file and emptied,
 * and `work` is tried once more with `again` set; a small transaction then fits into the emptied log.
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

/** One statement deletes at most so much, because more would block the event loop. */
const ROWS = 200;

/** Deletes some of the rows of `table` that meet `where`. */
export type DeletePiece = Statement<[{ thread: string }]>;

export interface Rows {
  table: string;
  /** The columns that identify a row. */
  key: string;
  /** SQL for the size of a row. */
  bytes: string;
  where: string;
}

export const preparePiece = (database: Database, { table, key, bytes, where }: Rows): DeletePiece =>
  database.prepare(`
DELETE FROM ${table} WHERE (${key}) IN (
  SELECT ${key} FROM (
    SELECT ${key}, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM (SELECT ${key}, ${bytes} AS bytes FROM ${table} WHERE ${where} LIMIT ${ROWS})
  ) WHERE before < 2000000
)`);

/** Deletes all rows, a piece in each turn of the event loop. Each transaction calls `assertMay`. */
export async function deleteInPieces(
  pieces: readonly DeletePiece[],
  thread: string,
  assertMay: () => void = () => undefined,
): Promise<void> {
  for (const piece of pieces) {
    const { database } = piece;
    const some = (): number =>
      inTransaction(database, () => {
        assertMay();
        return piece.run({ thread }).changes;
      });
    while ((await inOwnRoom(database, () => whenUnlocked(database, some))) > 0) await nextTurn();
  }
}
