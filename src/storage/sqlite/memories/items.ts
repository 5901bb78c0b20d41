import type { Statement } from "../api.ts";
import type { ItemFacts } from "../../memories/item-store.ts";
import type { NamespaceRange } from "../../memories/namespaces.ts";
import type { Database } from "../database.ts";

export interface ItemRow extends ItemFacts {
  value: string;
  ttl: number | null;
  /** The id of its long texts, if it has any; see `parts.ts`. */
  parts: number | null;
}

/** The values of a write; times are milliseconds since the epoch. */
interface ItemWrite {
  namespace: string;
  key: string;
  value: string;
  parts: number | null;
  text: string | null;
  indexed: 0 | 1;
  now: number;
  /** Milliseconds; `null` for ever. */
  ttl: number | null;
}

/** The item after which a listing goes on. */
export interface ItemPosition {
  namespace: string;
  key: string;
}

/** A hit of an index; SQLite's rank is smaller for better hits. */
export interface MatchRow extends ItemPosition {
  id: number;
  rank: number;
  /** Whether it is in the range that is searched, and has not expired. */
  isThere: 0 | 1;
}

/** A full-text index: the newest matches of an expression, each with its rank. */
export interface TextIndex {
  /** Counts the matches, up to a limit. */
  count: Statement<[{ match: string; limit: number }], number>;
  newest: Statement<[NamespaceRange & Page & { match: string; before: number }], MatchRow>;
}

/** A page of a listing, without items that have expired at the time `now`. */
interface Page {
  limit: number;
  now: number;
}

export interface StoreStatements {
  get: Statement<[{ namespace: string; key: string; now: number }], ItemRow>;
  getById: Statement<[number], ItemRow>;
  placeById: Statement<[number], ItemPosition>;
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
  words: TextIndex;
  grams: TextIndex;
  putGrams: Statement<[number, string]>;
}

const ITEM = "SELECT id, namespace, key, value, version, created_at, updated_at, ttl, parts FROM store_items";

const LIVE = "(expires_at IS NULL OR expires_at > @now)";

/** The columns that a search for parts of words reads. */
const TEXT = "CASE WHEN indexed THEN key || char(10) || substr(coalesce(body, ''), 1, 100000) ELSE '' END";

/** Bytes of values that are read at a time, and the last of them whole. */
const BYTES_PER_PAGE = 250_000;

const AFTER = `
WHERE id IN (
  SELECT id FROM (
    SELECT id, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
      SELECT id, octet_length(value) AS bytes FROM store_items
      WHERE (namespace, key) > (@namespace, @key) AND namespace < @to AND ${LIVE}
      ORDER BY namespace, key LIMIT @limit
    )
  ) WHERE before < ${BYTES_PER_PAGE}
) ORDER BY namespace, key`;

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
    placeById: database.prepare("SELECT namespace, key FROM store_items WHERE id = ?"),
    bodyById: database
      .prepare<[number], string>("SELECT substr(coalesce(body, ''), 1, 100000) FROM store_items WHERE id = ?")
      .pluck(),
    put: database.prepare(`
INSERT INTO store_items
  (namespace, key, value, parts, text, indexed, version, created_at, updated_at, ttl, expires_at)
VALUES (@namespace, @key, @value, @parts, @text, @indexed, 1, @now, @now, @ttl, @now + @ttl)
ON CONFLICT (namespace, key) DO UPDATE SET
  value = excluded.value, parts = excluded.parts, text = excluded.text, indexed = excluded.indexed,
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
    words: textIndex(database, "store_text", "bm25(store_text, 2.0, 1.0)"),
    grams: textIndex(database, "store_grams", "bm25(store_grams)"),
    putGrams: database.prepare("INSERT INTO store_grams (rowid, grams) VALUES (?, ?)"),
  };
}

function textIndex(database: Database, table: string, rank: string): TextIndex {
  return {
    count: database
      .prepare<[{ match: string; limit: number }], number>(
        `SELECT count(*) FROM (SELECT 1 FROM ${table} WHERE ${table} MATCH @match LIMIT @limit)`,
      )
      .pluck(),
    newest: database.prepare(`
SELECT i.id, i.namespace, i.key, f.rank, i.namespace >= @from AND i.namespace < @to AND ${LIVE} AS isThere
FROM (
  SELECT rowid AS id, ${rank} AS rank FROM ${table} WHERE ${table} MATCH @match AND rowid < @before
  ORDER BY rowid DESC LIMIT @limit
) AS f JOIN store_items AS i ON i.id = f.id ORDER BY f.id DESC`),
  };
}
