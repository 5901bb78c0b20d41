import type { Statement } from "../api.ts";
import { ownTurn } from "../../../core/concurrency.ts";
import { StorageError } from "../../../core/errors.ts";
import { unreadable } from "../errors.ts";
import { quickly } from "../commit.ts";
import { type Database, databaseName } from "../database.ts";

/**
 * Texts of items that are too long to be written or read in one turn of the event loop.
 *
 * - `store_values` has a row for the long texts of each value. `unused_since` is `NULL` while an item has them, 0 when
 *   no item ever will again, and otherwise the time at which storing them began.
 * - `store_parts` holds their pieces as JSON, so that a character that is cut in two is restored.
 */
export const PART_TABLES = `
CREATE TABLE store_values (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  unused_since INTEGER
) STRICT;
CREATE INDEX store_values_unused ON store_values (unused_since) WHERE unused_since IS NOT NULL;
CREATE TABLE store_parts (
  value INTEGER NOT NULL,
  number INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (value, number)
) STRICT;
CREATE TRIGGER store_items_parts_replaced AFTER UPDATE OF parts ON store_items
WHEN OLD.parts IS NOT NULL AND OLD.parts IS NOT NEW.parts
BEGIN UPDATE store_values SET unused_since = 0 WHERE id = OLD.parts; END;
CREATE TRIGGER store_items_parts_deleted AFTER DELETE ON store_items WHEN OLD.parts IS NOT NULL
BEGIN UPDATE store_values SET unused_since = 0 WHERE id = OLD.parts; END;`;

/** Texts of at least so many characters are stored apart from their value. */
export const LONG = 64 * 1024;
/** Characters of one piece; serialising, writing or parsing more at once would block the event loop. */
const PIECE = 128 * 1024;
/** Pieces deleted in one transaction. */
const DELETED_PER_TURN = 8;
/** Storing one value never takes so long, in milliseconds. */
const STORING_MS = 3_600_000;

/** Replaces a text in a stored value; names its first piece and the one after its last. */
const PREFIX = "deepagent-parts:";
const REFERENCE = /^deepagent-parts:(\d+)-(\d+)$/;

/** A value as it is stored in its row, and the texts that are stored apart from it, in pieces. */
export interface DividedValue {
  json: string;
  pieces: (() => string)[];
}

/** Leaves short texts in the value, except those that look like a reference. */
export function divided(value: Record<string, unknown>): DividedValue {
  const pieces: (() => string)[] = [];
  const json = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "string" || (part.length < LONG && !part.startsWith(PREFIX))) return part;
    const first = pieces.length;
    for (let at = 0; at < part.length; at += PIECE) pieces.push(() => part.slice(at, at + PIECE));
    return `${PREFIX}${first}-${pieces.length}`;
  });
  return { json, pieces };
}

/** The long texts of values, written and read a piece in each turn of the event loop. */
export class ValueParts {
  readonly #database: Database;
  readonly #begin: Statement<[number], number>;
  readonly #put: Statement<[number, number, string]>;
  readonly #take: Statement<[number]>;
  readonly #giveUp: Statement<[number]>;
  readonly #get: Statement<[number, number], string>;
  readonly #unused: Statement<[number], number>;
  readonly #deletePieces: Statement<[number]>;
  readonly #deleteValue: Statement<[number]>;

  constructor(database: Database) {
    this.#database = database;
    this.#begin = database
      .prepare<[number], number>("INSERT INTO store_values (unused_since) VALUES (?) RETURNING id")
      .pluck();
    this.#put = database.prepare("INSERT INTO store_parts (value, number, text) VALUES (?, ?, ?)");
    this.#take = database.prepare("UPDATE store_values SET unused_since = NULL WHERE id = ?");
    this.#giveUp = database.prepare("UPDATE store_values SET unused_since = 0 WHERE id = ?");
    this.#get = database
      .prepare<[number, number], string>("SELECT text FROM store_parts WHERE value = ? AND number = ?")
      .pluck();
    this.#unused = database
      .prepare<[number], number>(`
SELECT id FROM store_values WHERE unused_since <= ?
  AND NOT EXISTS (SELECT 1 FROM store_batch_puts AS p WHERE p.parts = store_values.id) LIMIT 1`)
      .pluck();
    this.#deletePieces = database.prepare(`
DELETE FROM store_parts WHERE rowid IN (SELECT rowid FROM store_parts WHERE value = ? LIMIT ${DELETED_PER_TURN})`);
    this.#deleteValue = database.prepare("DELETE FROM store_values WHERE id = ?");
  }

  /** Stores the pieces of a value; gives their id. Nobody finds them before an item is put with it. */
  async store(pieces: DividedValue["pieces"], now: number): Promise<number> {
    const id = await this.#write(() => this.#begin.get(now));
    if (id === undefined) throw new Error("A value got no id.");
    for (const [number, piece] of pieces.entries()) {
      await ownTurn();
      await this.#write(() => this.#put.run(id, number, JSON.stringify(piece())));
    }
    return id;
  }

  /** Gives the pieces to an item. Belongs into the transaction that puts it. */
  take(id: number): void {
    if (this.#take.run(id).changes === 0) {
      throw new Error("Storing a long memory took more than an hour, and was given up.");
    }
  }

  /** Marks the pieces as ones that no item will have. */
  async giveUp(id: number): Promise<void> {
    await this.#write(() => this.#giveUp.run(id));
  }

  /** Gives the value of a row; `undefined` when its parts are gone because the item was written again. */
  async valueOf({
    value: json,
    parts,
  }: {
    value: string;
    parts: number | null;
  }): Promise<Record<string, unknown> | undefined> {
    if (parts === null) return parsed(json);
    const texts = new Map<string, string>();
    for (const reference of referencesIn(parsed(json))) {
      const [, first = 0, end = 0] = (REFERENCE.exec(reference) ?? []).map(Number);
      // Joining the pieces one by one copies none of them.
      let whole = "";
      for (let number = first; number < end; number += 1) {
        await ownTurn();
        const text = this.#get.get(parts, number);
        if (text === undefined) return undefined;
        whole += JSON.parse(text) as string; // written above
      }
      texts.set(reference, whole);
    }
    return parsed(json, (_key, part) => (typeof part === "string" ? (texts.get(part) ?? part) : part));
  }

  /** Makes the error for a row whose parts are missing, as in a damaged file only. */
  lost(): StorageError {
    return new StorageError(
      "storage_corrupt",
      `The database ${databaseName(this.#database.name)} lacks a part of a memory. ` +
        `Restore a backup copy, or delete the memory.`,
    );
  }

  /** Deletes pieces that no item has, some in each turn. What a crash leaves goes with the next call. */
  async deleteUnused(now: number): Promise<void> {
    for (;;) {
      const id = this.#unused.get(now - STORING_MS);
      if (id === undefined) return;
      while ((await this.#write(() => this.#deletePieces.run(id))).changes > 0) await ownTurn();
      await this.#write(() => this.#deleteValue.run(id));
    }
  }

  /** Writes without waiting for the disk, because nothing of this was acknowledged. */
  #write<T>(work: () => T): Promise<T> {
    return quickly(this.#database, work);
  }
}

function parsed(json: string, reviver?: (key: string, part: unknown) => unknown): Record<string, unknown> {
  try {
    // `divided` wrote it from a value of this type.
    return JSON.parse(json, reviver) as Record<string, unknown>;
  } catch (thrown) {
    throw unreadable(thrown, "the database of memories");
  }
}

function referencesIn(part: unknown): string[] {
  if (typeof part === "string") return REFERENCE.test(part) ? [part] : [];
  return typeof part === "object" && part !== null ? Object.values(part).flatMap(referencesIn) : [];
}
