/** The tables of memories in SQLite. */
import type { Migration } from "../../sql/migration.ts";

/** Brings the indexes up to date when something that is searched changed, and nothing else. */
const INDEX_AGAIN = `
CREATE TRIGGER store_items_updated AFTER UPDATE OF key, value, text, indexed ON store_items
BEGIN
  INSERT INTO store_text (store_text, rowid, key, body)
  SELECT 'delete', OLD.id, OLD.key, substr(OLD.body, 1, 200000) WHERE OLD.indexed;
  INSERT INTO store_text (rowid, key, body)
  SELECT NEW.id, NEW.key, substr(NEW.body, 1, 200000) WHERE NEW.indexed;
  DELETE FROM store_grams WHERE rowid = OLD.id;
END;`;

const EMBED_AGAIN = `
CREATE TRIGGER store_items_to_embed_again AFTER UPDATE OF key, value, text, indexed ON store_items
BEGIN
  DELETE FROM store_passages WHERE item = OLD.id;
  DELETE FROM store_unembedded WHERE item = OLD.id AND model IN (SELECT id FROM store_models);
  INSERT INTO store_unembedded (model, item) SELECT id, NEW.id FROM store_models WHERE NEW.indexed;
END;`;

/**
 * - `namespace` is its encoded path (see `encodeNamespace`), so that everything below a prefix is one range.
 * - `id` is never used again, so `id` and `version` together name one state of one item.
 * - `body` is the text that a search reads: `text` when the item's words are not its `content`.
 * - `indexed` is 0 for items that a search leaves out.
 * - `store_searched` is what the index is made of, so that FTS5 can check and rebuild it.
 * - `ttl` (milliseconds) is how long an item lives after it was written, or read where that counts; `expires_at`
 *   is when it ends, and it is invisible from then on.
 * - `store_vectors` holds 32-bit floats, one vector for each indexed text of an item; it has row ids because rows
 *   of that length would overflow the pages of a table without.
 * - `store_text` indexes beginnings of three letters, so that a word that begins many others is cheap. Text beyond
 *   the first 200,000 characters is not indexed. `store_grams` has the words of `gramsOf`, by the id of their item;
 *   the program writes them, and the triggers forget them.
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
END;${INDEX_AGAIN}
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

/**
 * - `store_models`: the embedding models in use. Items that are older than the model are put in the queue from
 *   `to_fill` downwards, newer and changed ones by the triggers. `dims`: length of its vectors, once known.
 * - `store_unembedded`: the queue of each model. A process that works on an item moves `due_at` ahead, so that
 *   another takes it up only if that process is gone; a change of the item moves it back.
 * - `store_passages`: vectors of length 1 as 32-bit floats, one for each passage of an item.
 */
const EMBEDDING_TABLES = `
CREATE TABLE store_models (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  dims INTEGER,
  to_fill INTEGER NOT NULL,
  used_at INTEGER NOT NULL
) STRICT;
CREATE TABLE store_unembedded (
  model INTEGER NOT NULL,
  item INTEGER NOT NULL,
  due_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (model, item)
) WITHOUT ROWID, STRICT;
CREATE TABLE store_passages (
  item INTEGER NOT NULL,
  model INTEGER NOT NULL,
  number INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (item, model, number)
) STRICT;

CREATE TRIGGER store_items_to_embed AFTER INSERT ON store_items WHEN NEW.indexed
BEGIN INSERT INTO store_unembedded (model, item) SELECT id, NEW.id FROM store_models; END;${EMBED_AGAIN}
CREATE TRIGGER store_items_not_to_embed AFTER DELETE ON store_items
BEGIN
  DELETE FROM store_passages WHERE item = OLD.id;
  DELETE FROM store_unembedded WHERE item = OLD.id AND model IN (SELECT id FROM store_models);
END;`;

/** Version 1 stored long texts in pieces, and large batches before it carried them out. */
const PART_TABLES = `
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
const BATCH_TABLES = `
CREATE TABLE store_batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  begun_at INTEGER NOT NULL,
  whole_at INTEGER
) STRICT;
CREATE UNIQUE INDEX store_batches_whole ON store_batches ((1)) WHERE whole_at IS NOT NULL;
CREATE TABLE store_batch_puts (
  batch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  put TEXT NOT NULL,
  parts INTEGER,
  PRIMARY KEY (batch, number)
) STRICT;
CREATE INDEX store_batch_puts_parts ON store_batch_puts (parts) WHERE parts IS NOT NULL;`;

/**
 * Carries out what a process that ended had left of a whole batch, whose writes count as done. Its vectors of fields
 * are in a form that SQL cannot read: such items come last in a search by meaning until they are written again.
 */
const FINISH_BATCHES = `
CREATE TEMP TABLE store_rest AS
SELECT p.number, p.put ->> 'namespace' AS namespace, p.put ->> 'key' AS key, p.put ->> 'json' AS value, p.parts,
  p.put ->> 'text' AS text, p.put ->> 'indexed' AS indexed, p.put ->> 'grams' AS grams, p.put ->> 'ttl' AS ttl,
  b.whole_at AS now
FROM store_batch_puts AS p JOIN store_batches AS b ON b.id = p.batch WHERE b.whole_at IS NOT NULL;
DELETE FROM store_rest WHERE EXISTS (
  SELECT 1 FROM store_rest AS later
  WHERE later.namespace = store_rest.namespace AND later.key = store_rest.key AND later.number > store_rest.number
);
DELETE FROM store_items WHERE EXISTS (
  SELECT 1 FROM store_rest AS r WHERE r.namespace = store_items.namespace AND r.key = store_items.key
    AND (r.value IS NULL OR store_items.expires_at <= r.now)
);
INSERT INTO store_items
  (namespace, key, value, parts, text, indexed, version, created_at, updated_at, ttl, expires_at)
SELECT namespace, key, value, parts, text, indexed, 1, now, now, ttl, now + ttl FROM store_rest WHERE value IS NOT NULL
ON CONFLICT (namespace, key) DO UPDATE SET
  value = excluded.value, parts = excluded.parts, text = excluded.text, indexed = excluded.indexed,
  version = version + 1, updated_at = excluded.updated_at, ttl = excluded.ttl, expires_at = excluded.expires_at;
DELETE FROM store_vectors WHERE item IN (SELECT id FROM store_items JOIN store_rest USING (namespace, key));
INSERT INTO store_grams (rowid, grams)
SELECT i.id, r.grams FROM store_items AS i JOIN store_rest AS r USING (namespace, key) WHERE r.grams <> '';
DROP TABLE store_rest;
DROP TABLE store_batch_puts;
DROP TABLE store_batches;`;

/**
 * Puts the pieces of long texts back into their values. A value names them by texts such as `deepagent-parts:0-3`: the
 * first piece and the one after the last. Each piece is a text of JSON, so that what joins them is one too. An escape
 * keeps keys and parts of other texts that look like such a name from being read as one. The index stays as it is,
 * because nothing that it reads changes.
 */
const JOIN_PARTS = `
DROP TRIGGER store_items_updated;
DROP TRIGGER store_items_to_embed_again;
DROP TRIGGER store_items_parts_replaced;
DROP TRIGGER store_items_parts_deleted;
UPDATE store_items SET value = (
  WITH RECURSIVE
  names (number, name, span) AS (
    SELECT row_number() OVER (), value, substr(value, 17) FROM (
      SELECT DISTINCT value FROM json_tree(store_items.value)
      WHERE type = 'text' AND value GLOB 'deepagent-parts:[0-9]*-[0-9]*'
    )
  ),
  texts (number, name, text) AS (
    SELECT number, '"' || name || '"', (
      SELECT '"' || replace(
        group_concat(substr(text, 2, length(text) - 2), '' ORDER BY number), 'deepagent-parts:', '\\u0064eepagent-parts:'
      ) || '"'
      FROM store_parts WHERE store_parts.value = store_items.parts AND number >= CAST(span AS INTEGER)
        AND number < CAST(substr(span, instr(span, '-') + 1) AS INTEGER)
    )
    FROM names
  ),
  joined (number, value) AS (
    SELECT 0, replace(store_items.value, '\\"deepagent-parts:', '\\"\\u0064eepagent-parts:')
    UNION ALL
    SELECT t.number, replace(
      replace(j.value, t.name || ':', '"\\u0064' || substr(t.name, 3) || ':'), t.name, coalesce(t.text, t.name)
    )
    FROM joined AS j JOIN texts AS t ON t.number = j.number + 1
  )
  SELECT value FROM joined ORDER BY number DESC LIMIT 1
) WHERE parts IS NOT NULL;${INDEX_AGAIN}${EMBED_AGAIN}
DROP TABLE store_parts;
DROP TABLE store_values;
ALTER TABLE store_items DROP COLUMN parts;`;

export const STORE_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "items, their indexes and vectors",
    sql: [TABLES, EMBEDDING_TABLES, PART_TABLES, BATCH_TABLES].join("\n"),
  },
  { version: 2, name: "whole values in their rows", sql: `${FINISH_BATCHES}${JOIN_PARTS}` },
];
