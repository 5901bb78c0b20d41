import type { Migration } from "../migrations.ts";
import { BATCH_TABLES } from "./batches.ts";
import { PART_TABLES } from "./parts.ts";
import { EMBEDDING_TABLES } from "./vectors.ts";

/**
 * - `namespace` is its encoded path (see `encodeNamespace`), so that everything below a prefix is one range.
 * - `id` is never used again, so `id` and `version` together name one state of one item.
 * - `body` is what a full-text search reads: `text` when the item's words are not its `content`.
 * - `indexed` is 0 for items that a full-text search leaves out.
 * - `store_searched` is what the index is made of, so that FTS5 can check and rebuild it.
 * - `ttl` (milliseconds) is how long an item lives after it was written, or read where that counts; `expires_at`
 *   is when it ends, and it is invisible from then on. `parts` names the pieces of long texts.
 * - `store_vectors` holds 32-bit floats, one vector for each indexed text of an item; it has row ids because rows
 *   of that length would overflow the pages of a table without.
 * - `store_text` indexes beginnings of three letters, so that a word that begins many others is cheap. Text beyond
 *   the first 200,000 characters is not indexed. `store_grams` has the words of `gramsOf`, by the id of their item;
 *   the program writes them, and the triggers forget them. Only changes of what is searched touch the indexes.
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
  ttl INTEGER,
  expires_at INTEGER,
  parts INTEGER,
  UNIQUE (namespace, key)
) STRICT;
CREATE INDEX store_items_expiring ON store_items (expires_at) WHERE expires_at IS NOT NULL;

CREATE VIEW store_searched AS SELECT id, key, substr(body, 1, 200000) AS body FROM store_items WHERE indexed;
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
  INSERT INTO store_text (rowid, key, body) VALUES (NEW.id, NEW.key, substr(NEW.body, 1, 200000));
END;
CREATE TRIGGER store_items_updated AFTER UPDATE OF key, value, text, indexed ON store_items
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body)
  SELECT 'delete', OLD.id, OLD.key, substr(OLD.body, 1, 200000) WHERE OLD.indexed;
  INSERT INTO store_text (rowid, key, body)
  SELECT NEW.id, NEW.key, substr(NEW.body, 1, 200000) WHERE NEW.indexed;
  DELETE FROM store_grams WHERE rowid = OLD.id;
END;
CREATE TRIGGER store_items_deleted AFTER DELETE ON store_items
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body)
  SELECT 'delete', OLD.id, OLD.key, substr(OLD.body, 1, 200000) WHERE OLD.indexed;
  DELETE FROM store_grams WHERE rowid = OLD.id;
END;

CREATE TABLE store_vectors (
  item INTEGER NOT NULL,
  field TEXT NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (item, field)
) STRICT;
CREATE TRIGGER store_items_vectors_deleted AFTER DELETE ON store_items
BEGIN DELETE FROM store_vectors WHERE item = OLD.id; END;`;

export const STORE_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "items, their indexes and vectors",
    sql: [TABLES, EMBEDDING_TABLES, PART_TABLES, BATCH_TABLES].join("\n"),
  },
];
