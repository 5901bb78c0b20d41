import type { Statement } from "better-sqlite3";
import type { Database } from "./database.ts";
import type { Migration } from "./migrations.ts";

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

export const STORE_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "items and their full-text index",
    up(database: Database): void {
      database.exec(TABLES);
    },
  },
  {
    version: 2,
    name: "lifetimes and vectors of items",
    up(database: Database): void {
      database.exec(LIFETIMES_AND_VECTORS);
    },
  },
];

export interface ItemRow {
  id: number;
  namespace: string;
  key: string;
  value: string;
  version: number;
  created_at: number;
  updated_at: number;
  ttl: number | null;
}

/** What is written; the times are milliseconds since the epoch. */
export interface ItemWrite {
  namespace: string;
  key: string;
  value: string;
  text: string | null;
  indexed: 0 | 1;
  now: number;
  /** Milliseconds; `null` for ever. */
  ttl: number | null;
}

/** Encoded namespaces from `from` up to, not including, `to`. */
export interface NamespaceRange {
  from: string;
  to: string;
}

/** Where a listing goes on: after this item. */
export interface ItemPosition {
  namespace: string;
  key: string;
}

/** A hit of the index; SQLite's rank is smaller for better hits. */
export interface RankedRow {
  id: number;
  rank: number;
}

/** Items that have expired by then are not there. */
interface Page {
  limit: number;
  now: number;
}

export interface StoreStatements {
  get: Statement<[{ namespace: string; key: string; now: number }], ItemRow>;
  getById: Statement<[number], ItemRow>;
  bodyById: Statement<[number], string>;
  put: Statement<[ItemWrite], Pick<ItemRow, "id" | "version">>;
  delete: Statement<[string, string]>;
  deleteExpired: Statement<[{ namespace: string; key: string; now: number }]>;
  refresh: Statement<[{ id: number; now: number }]>;
  sweep: Statement<[{ now: number; limit: number }]>;
  putVector: Statement<[{ item: number; field: string; vector: Uint8Array }]>;
  deleteVectors: Statement<[number]>;
  items: Statement<[NamespaceRange & Page & { offset: number }], ItemRow>;
  itemsBetween: Statement<[{ namespace: string; from: string; to: string } & Page], ItemRow>;
  itemsAfter: Statement<[ItemPosition & Page & { to: string }], ItemRow>;
  textsAfter: Statement<[ItemPosition & Page & { to: string }], ItemPosition & { id: number; text: string }>;
  namespaces: Statement<[NamespaceRange & { now: number }], string>;
  ranked: Statement<[NamespaceRange & Page & { match: string }], RankedRow>;
}

const ITEM = "SELECT id, namespace, key, value, version, created_at, updated_at, ttl FROM store_items";

const LIVE = "(expires_at IS NULL OR expires_at > @now)";

/** What a search for parts of words reads. */
const TEXT = "CASE WHEN indexed THEN key || char(10) || coalesce(body, '') ELSE '' END";

const AFTER = `
WHERE (namespace, key) > (@namespace, @key) AND namespace < @to AND ${LIVE} ORDER BY namespace, key LIMIT @limit`;

/** One look-up per namespace, however many items each has. */
const NAMESPACES = `
WITH RECURSIVE found (namespace) AS (
  SELECT min(namespace) FROM store_items WHERE namespace >= @from AND namespace < @to AND ${LIVE}
  UNION ALL
  SELECT (SELECT min(i.namespace) FROM store_items AS i WHERE i.namespace > found.namespace AND i.namespace < @to
    AND ${LIVE})
  FROM found WHERE found.namespace IS NOT NULL
)
SELECT namespace FROM found WHERE namespace IS NOT NULL`;

export function prepareStatements(database: Database): StoreStatements {
  return {
    get: database.prepare(`${ITEM} WHERE namespace = @namespace AND key = @key AND ${LIVE}`),
    getById: database.prepare(`${ITEM} WHERE id = ?`),
    bodyById: database
      .prepare<[number], string>("SELECT coalesce(body, '') FROM store_items WHERE id = ?")
      .pluck(),
    put: database.prepare(`
INSERT INTO store_items (namespace, key, value, text, indexed, version, created_at, updated_at, ttl, expires_at)
VALUES (@namespace, @key, @value, @text, @indexed, 1, @now, @now, @ttl, @now + @ttl)
ON CONFLICT (namespace, key) DO UPDATE SET
  value = excluded.value, text = excluded.text, indexed = excluded.indexed,
  version = version + 1, updated_at = excluded.updated_at, ttl = excluded.ttl, expires_at = excluded.expires_at
RETURNING id, version`),
    delete: database.prepare("DELETE FROM store_items WHERE namespace = ? AND key = ?"),
    deleteExpired: database.prepare(
      "DELETE FROM store_items WHERE namespace = @namespace AND key = @key AND expires_at <= @now",
    ),
    refresh: database.prepare("UPDATE store_items SET expires_at = @now + ttl WHERE id = @id"),
    sweep: database.prepare(`
DELETE FROM store_items WHERE id IN (SELECT id FROM store_items WHERE expires_at <= @now LIMIT @limit)`),
    putVector: database.prepare(
      "INSERT OR REPLACE INTO store_vectors (item, field, vector) VALUES (@item, @field, @vector)",
    ),
    deleteVectors: database.prepare("DELETE FROM store_vectors WHERE item = ?"),
    items: database.prepare(`
${ITEM} WHERE namespace >= @from AND namespace < @to AND ${LIVE}
ORDER BY namespace, key LIMIT @limit OFFSET @offset`),
    itemsBetween: database.prepare(`
${ITEM} WHERE namespace = @namespace AND key >= @from AND key < @to AND ${LIVE} ORDER BY key LIMIT @limit`),
    itemsAfter: database.prepare(`${ITEM} ${AFTER}`),
    textsAfter: database.prepare(`
SELECT id, namespace, key, ${TEXT} AS text FROM store_items ${AFTER}`),
    namespaces: database.prepare<[NamespaceRange & { now: number }], string>(NAMESPACES).pluck(),
    ranked: database.prepare(`
SELECT i.id, bm25(store_text, 2.0, 1.0) AS rank FROM store_text JOIN store_items AS i ON i.id = store_text.rowid
WHERE store_text MATCH @match AND i.namespace >= @from AND i.namespace < @to AND ${LIVE}
ORDER BY rank, i.namespace, i.key LIMIT @limit`),
  };
}
