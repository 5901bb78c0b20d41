/** Memories in Postgres. */
import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Pool } from "pg";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Lifetime, MemoryStore, TextHit, TtlConfig, VersionedItem } from "../memories/contracts.ts";
import {
  checkAddress,
  checkRoot,
  decodeNamespace,
  encodeNamespace,
  literalPrefix,
  matchesFilter,
  matchesNamespace,
  rangeBelow,
} from "../memories/namespaces.ts";
import { excerpt, fold, parseQuery, searchedText } from "../memories/text-query.ts";
import { ItemTurns } from "../memories/turns.ts";
import { type Statement, all, change } from "../sql/steps.ts";
import { postgresEngine, query } from "./engine.ts";
import { wordQuery, wordVector } from "./words.ts";

interface ItemRow {
  id: number;
  namespace: string;
  key: string;
  value: string;
  version: number;
  created_at: number;
  updated_at: number;
  ttl: number | null;
}

const ITEM = "id, namespace, key, value, version, created_at, updated_at, ttl";
const IS_THERE = "(expires_at IS NULL OR expires_at > @now)";
const BELOW = `namespace >= @from AND namespace < @to AND ${IS_THERE}`;

const GET = `SELECT ${ITEM} FROM store_items WHERE namespace = @namespace AND key = @key AND ${IS_THERE}`;
const LIST = `
SELECT ${ITEM} FROM store_items WHERE ${BELOW} AND (namespace, key) > (@afterNamespace, @afterKey)
ORDER BY namespace, key LIMIT @limit`;
const BETWEEN = `
SELECT ${ITEM} FROM store_items WHERE namespace = @namespace AND key >= @from AND key < @to AND ${IS_THERE}
ORDER BY key LIMIT @limit`;
const NAMESPACES = `SELECT DISTINCT namespace FROM store_items WHERE ${BELOW} ORDER BY namespace`;

/** An expired item counts as deleted, so that the new one gets an id of its own. */
const DELETE_EXPIRED =
  "DELETE FROM store_items WHERE namespace = @namespace AND key = @key AND expires_at <= @now";
const FIELDS = "value, body, words, updated_at, ttl, expires_at";
const VALUES = "@value, @body, @words::tsvector, @now, @ttl, @now + @ttl::bigint";
const SET = `(${FIELDS}) = (${VALUES}), version = store_items.version + 1`;
const INSERT = `
INSERT INTO store_items (namespace, key, created_at, ${FIELDS}) VALUES (@namespace, @key, @now, ${VALUES})
ON CONFLICT (namespace, key) DO`;
const PUT = `${INSERT} UPDATE SET ${SET}`;
const PUT_NEW = `${INSERT} NOTHING RETURNING id, version`;
const PUT_OVER = `
UPDATE store_items SET ${SET} WHERE namespace = @namespace AND key = @key AND id || '.' || version = @expected
  AND ${IS_THERE}
RETURNING id, version`;

const MATCHES = `
SELECT ${ITEM}, left(body, 200000) AS body, ts_rank(words, query) AS score
FROM store_items, to_tsquery('simple', @words) AS query
WHERE ${BELOW} AND words @@ query ORDER BY score DESC, namespace, key LIMIT @limit`;
const TEXTS = `
SELECT id, namespace, key, body FROM store_items
WHERE ${BELOW} AND words IS NOT NULL AND (namespace, key) > (@afterNamespace, @afterKey)
ORDER BY namespace, key LIMIT @limit`;

/** Rows that one query of a listing reads. */
const PAGE = 100;
/** Items that one statement of a sweep deletes. */
const SWEPT = 1000;
const MINUTE_MS = 60_000;
const MAX_COUNT = 2 ** 31 - 1;

interface Match extends ItemRow {
  body: string;
  score: number;
}

export interface PostgresStoreOptions {
  clock?: Clock;
  ttl?: TtlConfig;
}

/**
 * LangGraph's `BaseStore` in Postgres. Listings are ordered by namespace and key. `search` with a `query` gives the
 * items that contain any of its words or words that start with them, best first. The writes of one batch happen
 * together or not at all; of several writes of one item the last that was asked for counts.
 */
export class PostgresStore extends BaseStore implements MemoryStore {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #ttl: TtlConfig;
  readonly #turns = new ItemTurns();

  constructor(pool: Pool, { clock = systemClock, ttl = {} }: PostgresStoreOptions = {}) {
    super();
    this.#pool = pool;
    this.#clock = clock;
    this.#ttl = ttl;
  }

  override async batch<Operations extends Operation[]>(
    operations: Operations,
  ): Promise<OperationResults<Operations>> {
    const puts: (PutOperation & Lifetime)[] = operations.filter((operation) => "value" in operation);
    for (const { namespace, key, value } of puts) if (value !== null) checkAddress(namespace, key);
    return this.#inTurn(puts, async (come) => {
      const results: unknown[] = [];
      for (const operation of operations) results.push(await this.#read(operation));
      await come;
      const statements = puts.flatMap((put) => this.#statementsOf(put));
      if (statements.length > 0) {
        await postgresEngine(this.#pool).write(function* () {
          for (const { sql, values } of statements) yield* change(sql, values);
        });
      }
      return results;
      // Each operation has one result, of its kind.
    }) as Promise<OperationResults<Operations>>;
  }

  /** Gives the result of one read; `undefined` for a put. */
  async #read(operation: Operation): Promise<unknown> {
    if ("namespacePrefix" in operation) return this.#search(operation);
    if ("value" in operation) return undefined;
    return "key" in operation ? this.#get(operation) : this.#namespaces(operation);
  }

  /** Does `work`, which writes these items when its turn has come; whoever comes later for one of them waits. */
  async #inTurn<T>(
    puts: readonly Pick<PutOperation, "namespace" | "key">[],
    work: (come: Promise<unknown>) => Promise<T>,
  ): Promise<T> {
    const items = puts.map(({ namespace, key }) => JSON.stringify([...namespace, key]));
    const { come, done } = this.#turns.take(new Set(items));
    try {
      return await work(come);
    } finally {
      done();
    }
  }

  #statementsOf(put: PutOperation & Lifetime): Statement[] {
    const place = { namespace: encodeNamespace(put.namespace), key: put.key };
    if (put.value === null) {
      return [{ sql: "DELETE FROM store_items WHERE namespace = @namespace AND key = @key", values: place }];
    }
    const values = this.#valuesOf(put);
    return [
      { sql: DELETE_EXPIRED, values: { ...place, now: values.now } },
      { sql: PUT, values },
    ];
  }

  #valuesOf({ namespace, key, value, index, ttl }: PutOperation & Lifetime) {
    const minutes = ttl === undefined ? (this.#ttl.defaultTtl ?? null) : ttl;
    const body = index === false ? null : searchedText(value ?? {}, index);
    return {
      namespace: encodeNamespace(namespace),
      key,
      value: JSON.stringify(value),
      body,
      words: body === null ? null : wordVector(key, body),
      now: this.#clock(),
      ttl: minutes === null ? null : Math.max(0, Math.round(minutes * MINUTE_MS)),
    };
  }

  /** As inherited, but parts of the namespace may contain dots, and the item may have a lifetime. */
  override async put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: false | string[],
    lifetime: Pick<Lifetime, "ttl"> = {},
  ): Promise<void> {
    checkRoot(namespace);
    await this.batch([{ namespace, key, value, ...(index === undefined ? {} : { index }), ...lifetime }]);
  }

  override async get(
    namespace: string[],
    key: string,
    lifetime: Pick<Lifetime, "refreshTtl"> = {},
  ): Promise<Item | null> {
    return this.#get({ namespace, key, ...lifetime });
  }

  override async search(
    namespacePrefix: string[],
    options: Omit<SearchOperation, "namespacePrefix"> & Pick<Lifetime, "refreshTtl"> = {},
  ): Promise<SearchItem[]> {
    return this.#search({ namespacePrefix, ...options });
  }

  async getVersioned(namespace: string[], key: string): Promise<VersionedItem | null> {
    const row = await this.#row({ namespace, key });
    return row === undefined ? null : { ...toItem(row), version: versionOf(row) };
  }

  /** The first items of exactly this namespace with `from <= key < to`, in the order of their keys. */
  async itemsBetween(
    namespace: string[],
    { from, to, limit }: { from: string; to: string; limit: number },
  ): Promise<Item[]> {
    const values = {
      namespace: encodeNamespace(namespace),
      from,
      to,
      limit: count(limit),
      now: this.#clock(),
    };
    const rows = await query<ItemRow>(this.#pool, BETWEEN, values);
    await this.#refresh(rows);
    return rows.map(toItem);
  }

  /**
   * Puts the item only if it still is what `expected` names (`null`: it does not exist). Gives the new version, or
   * undefined when somebody else was faster.
   */
  async putIf(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    expected: string | null,
  ): Promise<string | undefined> {
    checkRoot(namespace);
    checkAddress(namespace, key);
    return this.#inTurn([{ namespace, key }], async (come) => {
      await come;
      const values = this.#valuesOf({ namespace, key, value });
      return postgresEngine(this.#pool).write(function* () {
        const place = { namespace: values.namespace, key, now: values.now };
        if (expected === null) yield* change(DELETE_EXPIRED, place);
        const [row] = yield* all<Pick<ItemRow, "id" | "version">>(
          expected === null ? PUT_NEW : PUT_OVER,
          expected === null ? values : { ...values, expected },
        );
        return row && versionOf(row);
      });
    });
  }

  async searchText(namespacePrefix: string[], text: string, limit: number): Promise<TextHit[]> {
    const parsed = parseQuery(text);
    const hit = (row: Pick<Match, "namespace" | "key" | "body">, score: number): TextHit => ({
      namespace: decodeNamespace(row.namespace),
      key: row.key,
      snippet: excerpt(row.body, parsed),
      score,
    });
    const matches = await this.#matches(namespacePrefix, text, count(limit));
    if (matches.length > 0 || parsed.words.length === 0) return matches.map((row) => hit(row, row.score));
    const hits: TextHit[] = [];
    for await (const row of this.#rows<Match>(TEXTS, namespacePrefix)) {
      if (hits.length >= limit) break;
      const folded = fold(row.body);
      if (parsed.words.every((word) => folded.includes(word))) hits.push(hit(row, 0));
    }
    return hits;
  }

  async #matches(namespacePrefix: string[], text: string, limit: number): Promise<Match[]> {
    const words = wordQuery(text);
    const values = { ...rangeBelow(namespacePrefix), now: this.#clock(), words, limit };
    return words === "" ? [] : query<Match>(this.#pool, MATCHES, values);
  }

  async sweepExpiredItems(signal?: AbortSignal): Promise<number> {
    const sql = `DELETE FROM store_items WHERE id IN
      (SELECT id FROM store_items WHERE expires_at <= @now LIMIT @limit) RETURNING id`;
    let swept = 0;
    for (;;) {
      const deleted = await query(this.#pool, sql, { now: this.#clock(), limit: SWEPT });
      swept += deleted.length;
      if (deleted.length < SWEPT || signal?.aborted === true) return swept;
    }
  }

  async #get({ namespace, key, refreshTtl }: GetOperation & Lifetime): Promise<Item | null> {
    const row = await this.#row({ namespace, key, refreshTtl });
    return row === undefined ? null : toItem(row);
  }

  async #row({
    namespace,
    key,
    refreshTtl,
  }: GetOperation & { refreshTtl?: boolean | undefined }): Promise<ItemRow | undefined> {
    const values = { namespace: encodeNamespace(namespace), key, now: this.#clock() };
    const [row] = await query<ItemRow>(this.#pool, GET, values);
    if (row !== undefined) await this.#refresh([row], refreshTtl);
    return row;
  }

  async #search({
    namespacePrefix,
    query: text,
    filter,
    limit = 10,
    offset = 0,
    refreshTtl,
  }: SearchOperation & Lifetime): Promise<SearchItem[]> {
    const found: (ItemRow & { score?: number })[] = [];
    let skipped = 0;
    const candidates = text
      ? await this.#matches(namespacePrefix, text, MAX_COUNT)
      : this.#rows<ItemRow & { score?: number }>(LIST, namespacePrefix);
    for await (const row of candidates) {
      if (found.length >= count(limit)) break;
      if (filter !== undefined && !matchesFilter(valueOf(row), filter)) continue;
      if (skipped < count(offset)) skipped += 1;
      else found.push(row);
    }
    await this.#refresh(found, refreshTtl);
    return found.map((row) => ({
      ...toItem(row),
      ...(row.score === undefined ? {} : { score: row.score }),
    }));
  }

  /** Every row below the prefix, in order, a page at a time. */
  async *#rows<Row extends { namespace: string; key: string }>(
    sql: string,
    namespacePrefix: string[],
  ): AsyncGenerator<Row> {
    const range = { ...rangeBelow(namespacePrefix), now: this.#clock(), limit: PAGE };
    for (let [afterNamespace, afterKey] = ["", ""]; ;) {
      const rows = await query<Row>(this.#pool, sql, { ...range, afterNamespace, afterKey });
      yield* rows;
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return;
      [afterNamespace, afterKey] = [last.namespace, last.key];
    }
  }

  async #namespaces({
    matchConditions = [],
    maxDepth,
    limit,
    offset,
  }: ListNamespacesOperation): Promise<string[][]> {
    const range = { ...rangeBelow(literalPrefix(matchConditions)), now: this.#clock() };
    const rows = await query<{ namespace: string }>(this.#pool, NAMESPACES, range);
    const matching = rows
      .map(({ namespace }) => decodeNamespace(namespace))
      .filter((namespace) => matchesNamespace(namespace, matchConditions))
      .map((namespace) => namespace.slice(0, maxDepth));
    const cut = [...new Map(matching.map((one) => [encodeNamespace(one), one])).values()];
    const first = count(offset ?? 0);
    return cut.slice(first, first + count(limit ?? MAX_COUNT));
  }

  /** Starts the lifetime of items that were read again. */
  async #refresh(
    rows: readonly Pick<ItemRow, "id" | "ttl">[],
    wanted = this.#ttl.refreshOnRead ?? true,
  ): Promise<void> {
    const ids = wanted ? rows.filter(({ ttl }) => ttl !== null).map(({ id }) => id) : [];
    if (ids.length === 0) return;
    const sql = "UPDATE store_items SET expires_at = @now + ttl WHERE id = ANY (@ids::bigint[])";
    await query(this.#pool, sql, { now: this.#clock(), ids });
  }
}

const versionOf = ({ id, version }: Pick<ItemRow, "id" | "version">): string => `${id}.${version}`;

// Stored by `put` only.
const valueOf = ({ value }: ItemRow): Record<string, unknown> => JSON.parse(value) as Record<string, unknown>;

const toItem = (row: ItemRow): Item => ({
  namespace: decodeNamespace(row.namespace),
  key: row.key,
  value: valueOf(row),
  createdAt: new Date(row.created_at),
  updatedAt: new Date(row.updated_at),
});

/** Turns a number into a limit or offset that Postgres accepts. */
const count = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, 0), MAX_COUNT));
