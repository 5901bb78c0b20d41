-- Version 1: none
-- This number was used before the first release. Data that has it is refused, because its tables exist.

-- Version 2: items, their indexes and vectors
-- - `namespace` is its encoded path (see `encodeNamespace`), so that everything below a prefix is one range.
-- - `id` is never used again, so `id` and `version` together name one state of one item.
-- - `body` is the text that a search reads: `text` when the item's words are not its `content`.
-- - `indexed` is 0 for items that a search leaves out.
-- - `store_searched` is the source of the index, so that FTS5 can check and rebuild it.
-- - `ttl` (milliseconds) is how long an item lives after it was written, or read where that counts; `expires_at`
--   is when it ends, and it is invisible from then on.
-- - `store_vectors` holds 32-bit floats, one vector for each indexed text of an item; it has row ids because rows
--   of that length would overflow the pages of a table without.
-- - `store_text` indexes beginnings of three letters, so that a word that begins many others is cheap. Text beyond
--   the first 200,000 characters is not indexed. `store_grams` has the words of `characterPairs`, by the id of their item;
--   the program writes them, and the triggers delete them.
--
-- - `store_models`: the embedding models in use. Items that are older than the model are put in the queue from
--   `to_fill` downwards, newer and changed ones by the triggers. `dims`: length of its vectors, once known.
-- - `store_unembedded`: the queue of each model. A process that works on an item moves `due_at` ahead, so that
--   another takes it up only if that process is gone; a change of the item moves it back.
-- - `store_passages`: vectors of length 1 as 32-bit floats, one for each passage of an item.
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
BEGIN DELETE FROM store_vectors WHERE item = OLD.id; END;
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
BEGIN INSERT INTO store_unembedded (model, item) SELECT id, NEW.id FROM store_models; END;
CREATE TRIGGER store_items_to_embed_again AFTER UPDATE OF key, value, text, indexed ON store_items
BEGIN
  DELETE FROM store_passages WHERE item = OLD.id;
  DELETE FROM store_unembedded WHERE item = OLD.id AND model IN (SELECT id FROM store_models);
  INSERT INTO store_unembedded (model, item) SELECT id, NEW.id FROM store_models WHERE NEW.indexed;
END;
CREATE TRIGGER store_items_not_to_embed AFTER DELETE ON store_items
BEGIN
  DELETE FROM store_passages WHERE item = OLD.id;
  DELETE FROM store_unembedded WHERE item = OLD.id AND model IN (SELECT id FROM store_models);
END;
