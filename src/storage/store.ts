import type { Transaction } from "better-sqlite3";
import { BaseStore } from "@langchain/langgraph-checkpoint";
import type {
  Item,
  ListNamespacesOperation,
  Operation,
  OperationResults,
  PutOperation,
  SearchItem,
  SearchOperation,
} from "@langchain/langgraph-checkpoint";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Database } from "./database.ts";
import { migrate } from "./migrations.ts";
import {
  checkAddress,
  decodeNamespace,
  encodeNamespace,
  literalPrefix,
  matchesFilter,
  matchesNamespace,
  rangeBelow,
} from "./store-match.ts";
import { itemsOf, rankItems } from "./store-search.ts";
import { prepareStatements, STORE_MIGRATIONS } from "./store-sql.ts";
import type { ItemRow, NamespaceRange, StoreStatements } from "./store-sql.ts";
import { excerpt, parseQuery, textToIndex } from "./store-text.ts";

/** An item and the name of the state it was read in. */
export interface VersionedItem extends Item {
  /** Changes with every write, and is never used again, not even after the item was deleted. */
  version: string;
}

export interface TextHit {
  namespace: string[];
  key: string;
  value: Record<string, unknown>;
  /** The text around the first match, on one line. */
  snippet: string;
  /** Higher is better; 0 for a match inside a word. */
  score: number;
}

export interface StoreOptions {
  clock?: Clock;
}

/** The store over `database`, which stays the caller's to close. Makes its tables when they are missing. */
export function createStore(database: Database, options: StoreOptions = {}): SqliteStore {
  migrate(database, "store", STORE_MIGRATIONS);
  return new SqliteStore(database, options);
}

/**
 * LangGraph's `BaseStore` in SQLite.
 *
 * Listings are ordered by namespace and key. `search` with a `query` gives the items that contain any of
 * its words (or words that start with them), best first, ranked by bm25 over the key and the text of the
 * value: its `content`, else all texts in it, or the fields named by `put`. In one batch the reads see
 * what was stored before it; its writes happen together or not at all.
 */
export class SqliteStore extends BaseStore {
  readonly #sql: StoreStatements;
  readonly #clock: Clock;
  readonly #writeAll: Transaction<(operations: readonly PutOperation[]) => void>;
  readonly #writeIf: Transaction<(operation: PutOperation, expected: string | null) => string | undefined>;

  constructor(database: Database, options: StoreOptions = {}) {
    super();
    this.#sql = prepareStatements(database);
    this.#clock = options.clock ?? systemClock;
    this.#writeAll = database.transaction((operations) => {
      for (const operation of operations) this.#write(operation);
    });
    this.#writeIf = database.transaction((operation, expected) => {
      const row = this.#sql.get.get(encodeNamespace(operation.namespace), operation.key);
      return (row === undefined ? null : versionOf(row)) === expected ? this.#write(operation) : undefined;
    });
  }

  override async batch<Operations extends Operation[]>(
    operations: Operations,
  ): Promise<OperationResults<Operations>> {
    const results: unknown[] = [];
    const puts: PutOperation[] = [];
    for (const operation of operations) {
      if ("namespacePrefix" in operation) results.push(await this.#search(operation));
      else if ("value" in operation) {
        if (operation.value !== null) checkAddress(operation.namespace, operation.key);
        puts.push(operation);
        results.push(undefined);
      } else if ("key" in operation) results.push(this.#get(operation.namespace, operation.key));
      else results.push(this.#namespaces(operation));
    }
    if (puts.length > 0) this.#writeAll.immediate(puts);
    // One result for each operation, by its kind.
    return results as OperationResults<Operations>;
  }

  /** As inherited, but parts of the namespace may contain dots. */
  override async put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: false | string[],
  ): Promise<void> {
    await this.batch([{ namespace, key, value, ...(index === undefined ? {} : { index }) }]);
  }

  async getVersioned(namespace: string[], key: string): Promise<VersionedItem | null> {
    const row = this.#sql.get.get(encodeNamespace(namespace), key);
    return row === undefined ? null : { ...toItem(row), version: versionOf(row) };
  }

  /**
   * Puts the item only if it still is what `expected` names (`null`: it does not exist). Gives the new
   * version, or undefined when somebody else was faster; safe against other processes.
   */
  async putIf(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    expected: string | null,
  ): Promise<string | undefined> {
    checkAddress(namespace, key);
    return this.#writeIf.immediate({ namespace, key, value }, expected);
  }

  /** The first items of exactly this namespace with `from <= key < to`, in the order of their keys. */
  async itemsBetween(
    namespace: string[],
    { from, to, limit }: { from: string; to: string; limit: number },
  ): Promise<Item[]> {
    const range = { namespace: encodeNamespace(namespace), from, to, limit: count(limit) };
    return this.#sql.itemsBetween.all(range).map(toItem);
  }

  /** The items at or below `namespacePrefix` that `search` with this query finds, with the text around the match. */
  async searchText(namespacePrefix: string[], query: string, limit: number): Promise<TextHit[]> {
    const parsed = parseQuery(query);
    const ranked = await rankItems(this.#sql, rangeBelow(namespacePrefix), parsed, count(limit));
    return ranked.flatMap((item) => {
      const row = this.#sql.getById.get(item.id);
      if (row === undefined) return [];
      const { namespace, key, value } = toItem(row);
      return [
        {
          namespace,
          key,
          value,
          snippet: excerpt(this.#sql.bodyById.get(item.id) ?? "", parsed),
          score: item.score,
        },
      ];
    });
  }

  #get(namespace: string[], key: string): Item | null {
    const row = this.#sql.get.get(encodeNamespace(namespace), key);
    return row === undefined ? null : toItem(row);
  }

  #write({ namespace, key, value, index }: PutOperation): string | undefined {
    const encoded = encodeNamespace(namespace);
    if (value === null) {
      this.#sql.delete.run(encoded, key);
      return undefined;
    }
    const row = this.#sql.put.get({
      namespace: encoded,
      key,
      value: JSON.stringify(value),
      text: textToIndex(value, index === false ? undefined : index),
      indexed: index === false ? 0 : 1,
      now: this.#clock(),
    });
    return row === undefined ? undefined : versionOf(row);
  }

  async #search(operation: SearchOperation): Promise<SearchItem[]> {
    const range = rangeBelow(operation.namespacePrefix);
    const limit = count(operation.limit ?? 10);
    const offset = count(operation.offset ?? 0);
    const { filter, query } = operation;
    if (filter === undefined && !query) {
      return this.#sql.items.all({ ...range, limit, offset }).map(toItem);
    }
    const found: SearchItem[] = [];
    let skipped = 0;
    for await (const item of query
      ? this.#ranked(range, query, filter ? MAX_COUNT : limit + offset)
      : this.#all(range)) {
      if (found.length >= limit) break;
      if (filter !== undefined && !matchesFilter(item.value, filter)) continue;
      if (skipped < offset) skipped += 1;
      else found.push(item);
    }
    return found;
  }

  async *#all(range: NamespaceRange): AsyncGenerator<SearchItem> {
    for await (const row of itemsOf(this.#sql, range)) yield toItem(row);
  }

  async *#ranked(range: NamespaceRange, query: string, limit: number): AsyncGenerator<SearchItem> {
    for (const { id, score } of await rankItems(this.#sql, range, parseQuery(query), limit)) {
      const row = this.#sql.getById.get(id);
      if (row !== undefined) yield { ...toItem(row), score };
    }
  }

  #namespaces({ matchConditions = [], maxDepth, limit, offset }: ListNamespacesOperation): string[][] {
    const stored = this.#sql.namespaces.all(rangeBelow(literalPrefix(matchConditions))).map(decodeNamespace);
    const matching = stored.filter((namespace) => matchesNamespace(namespace, matchConditions));
    const cut = new Map(
      matching.map((one) => one.slice(0, maxDepth)).map((one) => [encodeNamespace(one), one]),
    );
    const first = count(offset ?? 0);
    return [...cut.values()].slice(first, first + count(limit ?? MAX_COUNT));
  }
}

const MAX_COUNT = 2 ** 31 - 1;

/** A limit or offset SQLite takes. */
function count(value: number): number {
  return Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, 0), MAX_COUNT));
}

const versionOf = ({ id, version }: Pick<ItemRow, "id" | "version">): string => `${id}.${version}`;

function toItem(row: ItemRow): Item {
  return {
    namespace: decodeNamespace(row.namespace),
    key: row.key,
    // Written by this class, from a value of this type.
    value: JSON.parse(row.value) as Record<string, unknown>,
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  };
}
