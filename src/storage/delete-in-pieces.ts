import { setImmediate as nextTurn } from "node:timers/promises";
import type { Statement } from "better-sqlite3";
import type { Database } from "./database.ts";
import { inOwnRoom } from "./free-space.ts";
import { whenUnlocked } from "./lock-wait.ts";

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
