/** The rows of memories, and the statements that read and write them in any database. */
import type { Item } from "@langchain/langgraph-checkpoint";
import { MemoryTooLarge, StorageError } from "../../core/errors.ts";
import { fill } from "../../core/text.ts";
import type { MemoryDatabase } from "./contracts.ts";
import { type NamespaceRange, decodeNamespace } from "./namespaces.ts";
import texts from "../texts.json" with { type: "json" };

/** A place in the order of items. Its namespace is encoded. */
export interface ItemPosition {
  namespace: string;
  key: string;
}

/** The items from a place up to another, which is not among them. */
export type Stretch = { namespace: string; key: string; toNamespace: string; toKey: string };

/** Start of a statement: with the item at the place, or behind it. */
export type Start = ">=" | ">";

export interface ItemRow extends ItemPosition {
  id: number;
  value: string;
  version: number;
  /** Milliseconds since the epoch, as `updated_at`. */
  created_at: number;
  updated_at: number;
  /** Milliseconds; `null` for ever. */
  ttl: number | null;
}

/** The part of an item's text that searches inside of words and snippets look at. */
const BODY = "substr(coalesce(body, ''), 1, 100000) AS body";

export interface TextRow extends ItemPosition {
  id: number;
  body: string;
}

/** The condition of items that have not expired at the time `@now`. */
export const IS_THERE = "(expires_at IS NULL OR expires_at > @now)";
/** The ids of `idList`. */
export const IDS = "(SELECT CAST(value AS BIGINT) FROM json_each(@ids))";
export const idList = (items: readonly { id: number }[]): string => JSON.stringify(items.map(({ id }) => id));

const AT = "namespace = @namespace AND key = @key";
const within = (start: Start): string =>
  `(namespace, key) ${start} (@namespace, @key) AND (namespace, key) < (@toNamespace, @toKey)`;
/** The items of a stretch behind its beginning. */
export const AFTER: string = `${within(">")} AND ${IS_THERE}`;
export const IN_ORDER = "ORDER BY namespace, key LIMIT @limit";
const SELECT =
  "SELECT id, namespace, key, value, version, created_at, updated_at, ttl FROM store_items WHERE";

/** Returns the stretch of a range's items; no item has the place at which it begins. */
export const rangeStretch = ({ from, to }: NamespaceRange): Stretch => ({
  namespace: from.slice(0, -1),
  key: "",
  toNamespace: to,
  toKey: "",
});

export function itemStatements({ columns, isSearched, contains }: MemoryDatabase) {
  const names = ["value", "updated_at", "ttl", "expires_at", ...Object.keys(columns)];
  const values = ["@value", "@now", "@ttl", "@now + CAST(@ttl AS BIGINT)", ...Object.values(columns)];
  const set = names.map((name, index) => `${name} = ${values[index]}`).join(", ");
  const insert = `
INSERT INTO store_items (namespace, key, version, created_at, ${names.join(", ")})
VALUES (@namespace, @key, 1, @now, ${values.join(", ")}) ON CONFLICT (namespace, key) DO`;
  const written = "RETURNING id, version";
  return {
    get: `${SELECT} ${AT} AND ${IS_THERE}`,
    byIds: `${SELECT} id IN ${IDS}`,
    listed: (start: Start) => `${SELECT} ${within(start)} AND ${IS_THERE} ${IN_ORDER}`,
    /** Those of one page that contain any of so many texts: `@text0`, `@text1`. */
    containing: (start: Start, count: number) => {
      const any = Array.from({ length: count }, (_, index) => contains.sql(`@text${index}`)).join(" OR ");
      return `
${SELECT} (namespace, key) ${start} (@namespace, @key) AND (namespace, key) <= (@namespace, @last)
  AND ${IS_THERE} AND (${any}) ORDER BY key`;
    },
    /** The last key of a page, and the bytes of the values up to it. */
    extent: (start: Start) => `
SELECT max(key) AS last, sum(bytes) AS bytes
FROM (SELECT key, octet_length(value) AS bytes FROM store_items WHERE ${within(start)} ${IN_ORDER}) AS page`,
    texts: (start: Start) => `
SELECT id, namespace, key, ${BODY} FROM store_items WHERE ${within(start)} AND ${IS_THERE} AND ${isSearched} ${IN_ORDER}`,
    textsByIds: `SELECT id, namespace, key, ${BODY} FROM store_items WHERE id IN ${IDS}`,
    /** One look-up for each namespace, however many items it has. */
    namespaces: `
WITH RECURSIVE found (namespace) AS (
  SELECT min(namespace) FROM store_items WHERE namespace >= @from AND namespace < @to AND ${IS_THERE}
  UNION ALL
  SELECT (SELECT min(i.namespace) FROM store_items AS i WHERE i.namespace > found.namespace AND i.namespace < @to
    AND ${IS_THERE})
  FROM found WHERE found.namespace IS NOT NULL
)
SELECT namespace FROM found WHERE namespace IS NOT NULL`,
    delete: `DELETE FROM store_items WHERE ${AT}`,
    /** An expired item counts as deleted, so that the new one gets an id of its own. */
    deleteExpired: `DELETE FROM store_items WHERE ${AT} AND expires_at <= @now`,
    put: `${insert} UPDATE SET ${set}, version = store_items.version + 1 ${written}`,
    putNew: `${insert} NOTHING ${written}`,
    putOver: `
UPDATE store_items SET ${set}, version = version + 1 WHERE ${AT} AND id || '.' || version = @expected AND ${IS_THERE}
${written}`,
    refresh: `UPDATE store_items SET expires_at = @now + ttl WHERE id IN ${IDS}`,
    sweep: `
DELETE FROM store_items WHERE id IN (SELECT id FROM store_items WHERE expires_at <= @now LIMIT @limit)`,
  };
}

export type ItemStatements = ReturnType<typeof itemStatements>;

export const itemVersion = ({ id, version }: Pick<ItemRow, "id" | "version">): string => `${id}.${version}`;

/** @throws StorageError for a row that no version wrote */
export const toItem = (row: ItemRow): Item => ({
  namespace: decodeNamespace(row.namespace),
  key: row.key,
  value: parseValue(row),
  createdAt: new Date(row.created_at),
  updatedAt: new Date(row.updated_at),
});

function parseValue({ key, value }: ItemRow): Record<string, unknown> {
  try {
    // `valueJson` wrote it from a value of this type.
    return JSON.parse(value) as Record<string, unknown>;
  } catch (thrown) {
    throw new StorageError("storage_corrupt", fill(texts.damagedMemory, key), { cause: thrown });
  }
}

/** The most bytes of texts, names and numbers that one memory has. */
const MAX_BYTES = 2 ** 20;

/** Serializes a value for storage. @throws MemoryTooLarge */
export function valueJson(key: string, value: Record<string, unknown>): string {
  const json = JSON.stringify(value);
  if (Buffer.byteLength(json) > MAX_BYTES) {
    const bytes = countBytes(JSON.parse(json));
    if (bytes > MAX_BYTES) throw new MemoryTooLarge(key, bytes, MAX_BYTES);
  }
  return json;
}

/** Counts without the quotes and escapes of the stored form. */
function countBytes(part: unknown): number {
  if (Array.isArray(part)) return part.reduce<number>((sum, one) => sum + countBytes(one), 0);
  if (typeof part !== "object" || part === null) return Buffer.byteLength(String(part));
  return Object.entries(part).reduce(
    (sum, [name, one]) => sum + Buffer.byteLength(name) + countBytes(one),
    0,
  );
}

/** Converts a lifetime to milliseconds; `null` is for ever. */
export const lifetimeMs = (minutes: number | null): number | null =>
  minutes === null ? null : Math.max(0, Math.round(minutes * 60_000));
