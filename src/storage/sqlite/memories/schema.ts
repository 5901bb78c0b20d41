import type { Database } from "../database.ts";
import type { Migration, Rewrite } from "../migrations.ts";
import { BATCH_TABLES } from "./batches.ts";
import { EMBEDDING_TABLES } from "./embedding-tables.ts";
import { PART_TABLES } from "./parts.ts";
import { gramsOf } from "./text-search.ts";

/*
 * Threads have the sources of these functions: they use each other, and nothing else of a module. The sizes, and
 * the form of what they store, are those of the step they belong to; see `store-parts.ts`.
 */

/** What is damaged stays as it is, as whoever reads it is told. */
function dividedItem(json: string): { json: string; pieces: string[] } {
  const pieces: string[] = [];
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { json, pieces };
  }
  const light = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "string" || (part.length < 65_536 && !part.startsWith("deepagent-parts:")))
      return part;
    const first = pieces.length;
    for (let at = 0; at < part.length; at += 131_072)
      pieces.push(JSON.stringify(part.slice(at, at + 131_072)));
    return `deepagent-parts:${first}-${pieces.length}`;
  });
  return { json: light, pieces };
}

/** What the triggers of an update see to stays as it is: the words of an item, and what they mean. */
function withoutTriggers(database: Database, work: () => void): void {
  const triggers = database
    .prepare<[], { name: string; sql: string }>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'store_items' AND sql LIKE '% AFTER UPDATE OF %'",
    )
    .all();
  for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`);
  work();
  for (const { sql } of triggers) database.exec(sql);
}

/** Long texts of items that were stored whole. */
export const DIVIDE_ITEMS: Rewrite = {
  rewrite: function divideItems(database: Database): void {
    const ids = database
      .prepare<[], number>("SELECT id FROM store_items WHERE parts IS NULL AND octet_length(value) > 65536")
      .pluck()
      .all();
    const read = database.prepare<[number], string>("SELECT value FROM store_items WHERE id = ?").pluck();
    // The index reads the text of such an item from there: as much as it read before.
    const write = database.prepare(
      "UPDATE store_items SET text = substr(body, 1, 200000), value = ?, parts = ? WHERE id = ?",
    );
    const begin = database
      .prepare<[], number>("INSERT INTO store_values (unused_since) VALUES (NULL) RETURNING id")
      .pluck();
    const put = database.prepare("INSERT INTO store_parts (value, number, text) VALUES (?, ?, ?)");
    withoutTriggers(database, () => {
      for (const id of ids) {
        const { json, pieces } = dividedItem(read.get(id) ?? "{}");
        if (pieces.length === 0) continue;
        const parts = begin.get();
        for (const [number, piece] of pieces.entries()) put.run(parts, number, piece);
        write.run(json, parts, id);
      }
    });
  },
  uses: [dividedItem, withoutTriggers],
};

/**
 * - `namespace` is its encoded path (see `encodeNamespace`), so that everything below a prefix is one range.
 * - `id` is never used again, so `id` and `version` together name one state of one item.
 * - `body` is what a full-text search reads: `text` when the item's words are not its `content`.
 * - `indexed` is 0 for items that a full-text search leaves out.
 * - `store_searched` is what the index is made of, so that FTS5 can check and rebuild it.
 */
const TABLES = `
CREATE TABLE store_items (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  text TEXT,
  indexed INTEGER NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  body TEXT GENERATED ALWAYS AS (coalesce(text, value ->> '$.content')) VIRTUAL,
  UNIQUE (namespace, key)
) STRICT;

CREATE VIEW store_searched AS SELECT id, key, body FROM store_items WHERE indexed;

CREATE VIRTUAL TABLE store_text USING fts5 (
  key, body, content = 'store_searched', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TRIGGER store_items_inserted AFTER INSERT ON store_items WHEN NEW.indexed
BEGIN INSERT INTO store_text (rowid, key, body) VALUES (NEW.id, NEW.key, NEW.body); END;

CREATE TRIGGER store_items_updated AFTER UPDATE ON store_items
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body)
  SELECT 'delete', OLD.id, OLD.key, OLD.body WHERE OLD.indexed;
  INSERT INTO store_text (rowid, key, body) SELECT NEW.id, NEW.key, NEW.body WHERE NEW.indexed;
END;

CREATE TRIGGER store_items_deleted AFTER DELETE ON store_items WHEN OLD.indexed
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body) VALUES ('delete', OLD.id, OLD.key, OLD.body);
END;`;

/**
 * `ttl` (milliseconds) is how long an item lives after it was written, or read where that counts;
 * `expires_at` is when it ends, and it is invisible from then on. Only changes of what is searched touch
 * the full-text index. `store_vectors` holds 32-bit floats, one vector for each indexed text of an item; it
 * has row ids because rows of that length would overflow the pages of a table without.
 */
const LIFETIMES_AND_VECTORS = `
ALTER TABLE store_items ADD COLUMN ttl INTEGER;
ALTER TABLE store_items ADD COLUMN expires_at INTEGER;
CREATE INDEX store_items_expiring ON store_items (expires_at) WHERE expires_at IS NOT NULL;

DROP TRIGGER store_items_updated;
CREATE TRIGGER store_items_updated AFTER UPDATE OF key, value, text, indexed ON store_items
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body)
  SELECT 'delete', OLD.id, OLD.key, OLD.body WHERE OLD.indexed;
  INSERT INTO store_text (rowid, key, body) SELECT NEW.id, NEW.key, NEW.body WHERE NEW.indexed;
END;

CREATE TABLE store_vectors (
  item INTEGER NOT NULL,
  field TEXT NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (item, field)
) STRICT;
CREATE TRIGGER store_items_vectors_deleted AFTER DELETE ON store_items
BEGIN DELETE FROM store_vectors WHERE item = OLD.id; END;`;

/** Characters of an item that are searched, as they were when the step below was made: it never changes. */
const LENGTH_OF_STEP_3 = 200_000;

/**
 * The index of beginnings makes a word of three letters cheap that begins many others. What is beyond
 * `LENGTH_OF_STEP_3` is not indexed. `store_grams` has the words of `gramsOf`, by the id of their item; the
 * program writes them, and the triggers forget them.
 */
const BOUNDED_SEARCH = `
DROP TRIGGER store_items_inserted;
DROP TRIGGER store_items_updated;
DROP TRIGGER store_items_deleted;
DROP TABLE store_text;
DROP VIEW store_searched;

CREATE VIEW store_searched AS SELECT id, key, substr(body, 1, ${LENGTH_OF_STEP_3}) AS body FROM store_items WHERE indexed;
CREATE VIRTUAL TABLE store_text USING fts5 (
  key, body, content = 'store_searched', content_rowid = 'id', prefix = '3',
  tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE store_grams USING fts5 (
  grams, content = '', contentless_delete = 1,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* S* Co'"
);

CREATE TRIGGER store_items_inserted AFTER INSERT ON store_items WHEN NEW.indexed
BEGIN
  INSERT INTO store_text (rowid, key, body) VALUES (NEW.id, NEW.key, substr(NEW.body, 1, ${LENGTH_OF_STEP_3}));
END;
CREATE TRIGGER store_items_updated AFTER UPDATE OF key, value, text, indexed ON store_items
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body)
  SELECT 'delete', OLD.id, OLD.key, substr(OLD.body, 1, ${LENGTH_OF_STEP_3}) WHERE OLD.indexed;
  INSERT INTO store_text (rowid, key, body)
  SELECT NEW.id, NEW.key, substr(NEW.body, 1, ${LENGTH_OF_STEP_3}) WHERE NEW.indexed;
  DELETE FROM store_grams WHERE rowid = OLD.id;
END;
CREATE TRIGGER store_items_deleted AFTER DELETE ON store_items
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body)
  SELECT 'delete', OLD.id, OLD.key, substr(OLD.body, 1, ${LENGTH_OF_STEP_3}) WHERE OLD.indexed;
  DELETE FROM store_grams WHERE rowid = OLD.id;
END;`;

/** What the index before step 3 is made of, in SQLite's own tables. */
const OLD_INDEX = ["store_text_data", "store_text_idx", "store_text_docsize"];
/** Each has up to 4 kB. */
const DELETED_PER_TURN = 250;

/** Dropped whole, a large index would hold up the event loop; that it is not whole meanwhile, nobody sees. */
function* emptyOldIndex(database: Database): Generator<void> {
  for (const table of OLD_INDEX) {
    const key = table.endsWith("_idx") ? "(segid, term)" : "id";
    const some = database.prepare(
      `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key === "id" ? key : "segid, term"} FROM ${table} LIMIT ${DELETED_PER_TURN})`,
    );
    while (some.run().changes > 0) yield;
  }
}

/** Items indexed between two turns of the event loop. */
const INDEXED_PER_TURN = 20;

function* indexAgain(database: Database): Generator<void> {
  const items = database.prepare<[number], { id: number; key: string; body: string | null }>(
    `SELECT id, key, body FROM store_searched WHERE id > ? ORDER BY id LIMIT ${INDEXED_PER_TURN}`,
  );
  const putText = database.prepare("INSERT INTO store_text (rowid, key, body) VALUES (?, ?, ?)");
  const putGrams = database.prepare("INSERT INTO store_grams (rowid, grams) VALUES (?, ?)");
  for (let last = 0; ;) {
    const found = items.all(last);
    for (const { id, key, body } of found) {
      putText.run(id, key, body);
      const grams = gramsOf(`${key}\n${body ?? ""}`);
      if (grams !== "") putGrams.run(id, grams);
      last = id;
    }
    if (found.length < INDEXED_PER_TURN) return;
    yield;
  }
}

export const STORE_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "items and their full-text index",
    sql: TABLES,
  },
  {
    version: 2,
    name: "lifetimes and vectors of items",
    sql: LIFETIMES_AND_VECTORS,
  },
  {
    version: 3,
    name: "searches that look at a part of all matches, in scripts without spaces too",
    *up(database: Database): Generator<void> {
      // SQLite keeps tables of an index from being written to by anybody else.
      database.unsafeMode(true);
      try {
        yield* emptyOldIndex(database);
      } finally {
        database.unsafeMode(false);
      }
      database.exec(BOUNDED_SEARCH);
      yield;
      yield* indexAgain(database);
    },
  },
  {
    version: 4,
    name: "vectors of passages, and the queue of what has none",
    sql: EMBEDDING_TABLES,
  },
  {
    version: 5,
    name: "long texts of items in pieces",
    sql: PART_TABLES,
  },
  {
    version: 6,
    name: "batches of many items",
    sql: BATCH_TABLES,
  },
  {
    version: 7,
    name: "long texts of older items in pieces",
    ...DIVIDE_ITEMS,
  },
];
