/** Memories in Postgres. */
import type {
  GetOperation,
  Item,
  ListNamespacesOperation,
  SearchItem,
  SearchOperation,
} from "@langchain/langgraph-checkpoint";
import { type Clock, systemClock } from "../../../core/clock.ts";
import type { Lifetime, MemoryStore, TextHit, TtlConfig, VersionedItem } from "../../memories/contracts.ts";
import {
  type ItemFacts,
  ItemStore,
  MAX_COUNT,
  type StorePut,
  countOf,
  itemOf,
  lifetimeOf,
  listed,
  versionOf,
} from "../../memories/item-store.ts";
import {
  decodeNamespace,
  encodeNamespace,
  literalPrefix,
  matchesFilter,
  rangeBelow,
} from "../../memories/namespaces.ts";
import { type NearPassage, fuse, passageStart } from "../../memories/passages.ts";
import { SEARCHED_LENGTH, excerpt, fold, parseQuery, searchedText } from "../../memories/text-query.ts";
import type { ItemTurns, WriteTurn } from "../../memories/turns.ts";
import { type Engine, type Statement, all, change } from "../../sql/steps.ts";
import type { Access } from "../access.ts";
import { postgresEngine, query } from "../engine.ts";
import { wordQuery, wordVector } from "./words.ts";

interface ItemRow extends ItemFacts {
  value: string;
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
SELECT ${ITEM}, left(body, ${SEARCHED_LENGTH}) AS body, ts_rank(words, query) AS score
FROM store_items, to_tsquery('simple', @words) AS query
WHERE ${BELOW} AND words @@ query ORDER BY score DESC, namespace, key LIMIT @limit`;
const TEXTS = `
SELECT id, namespace, key, body FROM store_items
WHERE ${BELOW} AND words IS NOT NULL AND (namespace, key) > (@afterNamespace, @afterKey)
ORDER BY namespace, key LIMIT @limit`;

const BY_ID = `
SELECT id, namespace, key, left(body, ${SEARCHED_LENGTH}) AS body FROM store_items
WHERE id = ANY (@ids::bigint[]) AND body IS NOT NULL`;

/** Rows that one query of a listing reads. */
const PAGE = 100;
/** Items that one statement of a sweep deletes. */
const SWEPT = 1000;

type TextRow = Pick<ItemRow, "id" | "namespace" | "key"> & { body: string };
type Scored = TextRow & { score: number };
type Match = ItemRow & Scored;

export interface PostgresStoreOptions {
  clock?: Clock;
  ttl?: TtlConfig;
}

/**
 * LangGraph's `BaseStore` in Postgres. Listings are ordered by namespace and key. `search` with a `query` gives the
 * items that contain any of its words or words that start with them, best first. The writes of one batch happen
 * together or not at all.
 */
export class PostgresStore extends ItemStore implements MemoryStore {
  readonly #access: Access;
  readonly #clock: Clock;
  readonly #ttl: TtlConfig;
  readonly #engine: Engine;

  constructor(
    access: Access,
    { clock = systemClock, ttl = {} }: PostgresStoreOptions = {},
    turns?: ItemTurns,
  ) {
    super(turns);
    this.#access = access;
    this.#engine = postgresEngine(access);
    this.#clock = clock;
    this.#ttl = ttl;
  }

  /** The same for what is at and below a namespace, with writes of one item in the same order. */
  within(namespace: string[]): PostgresStore {
    const options = { clock: this.#clock, ttl: this.#ttl };
    return new PostgresStore(this.#access.within(encodeNamespace(namespace)), options, this.turns);
  }

  protected override async writeAll(puts: readonly StorePut[], turn: WriteTurn): Promise<void> {
    await turn.come;
    const statements = puts.flatMap((put) => this.#statementsOf(put));
    await this.#engine.write(function* () {
      for (const { sql, values } of statements) yield* change(sql, values);
    });
  }

  #statementsOf(put: StorePut): Statement[] {
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

  #valuesOf({ namespace, key, value, index, ttl }: StorePut) {
    const minutes = ttl === undefined ? (this.#ttl.defaultTtl ?? null) : ttl;
    const body = index === false ? null : searchedText(value ?? {}, index);
    return {
      namespace: encodeNamespace(namespace),
      key,
      value: JSON.stringify(value),
      body,
      words: body === null ? null : wordVector(key, body),
      now: this.#clock(),
      ttl: lifetimeOf(minutes),
    };
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
      limit: countOf(limit),
      now: this.#clock(),
    };
    const rows = await query<ItemRow>(this.#access, BETWEEN, values);
    await this.#refresh(rows);
    return rows.map(toItem);
  }

  protected override async writeIf(
    put: StorePut,
    expected: string | null,
    turn: WriteTurn,
  ): Promise<string | undefined> {
    await turn.come;
    const values = this.#valuesOf(put);
    return this.#engine.write(function* () {
      const { namespace, key, now } = values;
      if (expected === null) yield* change(DELETE_EXPIRED, { namespace, key, now });
      const [row] = yield* all<Pick<ItemRow, "id" | "version">>(
        expected === null ? PUT_NEW : PUT_OVER,
        expected === null ? values : { ...values, expected },
      );
      return row && versionOf(row);
    });
  }

  /** As in SQLite: with `near` the items that contain words together with those, by reciprocal rank fusion. */
  async searchText(
    namespacePrefix: string[],
    text: string,
    limit: number,
    near?: readonly NearPassage[],
  ): Promise<TextHit[]> {
    const parsed = parseQuery(text);
    const byWords = await this.#byWords(namespacePrefix, text, countOf(limit));
    const found = new Map<number, TextRow>(byWords.map((row) => [row.id, row]));
    const passages = new Map(near?.map(({ id, number }) => [id, number]));
    const others = [...passages.keys()].filter((id) => !found.has(id));
    if (others.length > 0) {
      for (const row of await query<TextRow>(this.#access, BY_ID, { ids: others })) found.set(row.id, row);
    }
    const ranked = near === undefined ? byWords : fuse([byWords, near]).slice(0, countOf(limit));
    const wordHits = new Set(byWords.map(({ id }) => id));
    return ranked.flatMap(({ id, score }) => {
      const row = found.get(id);
      if (row === undefined) return [];
      const { namespace, key, body } = row;
      const passage = wordHits.has(id) ? undefined : passages.get(id);
      const snippet = passage === undefined ? excerpt(body, parsed) : passageStart(key, body, passage);
      return [{ namespace: decodeNamespace(namespace), key, snippet, score }];
    });
  }

  /** Items that contain words of the text; when there are none, those that contain all of them inside of others. */
  async #byWords(namespacePrefix: string[], text: string, limit: number): Promise<Scored[]> {
    const { words } = parseQuery(text);
    const matches = await this.#matches(namespacePrefix, text, limit);
    if (matches.length > 0 || words.length === 0) return matches;
    const found: Scored[] = [];
    for await (const row of this.#rows<TextRow>(TEXTS, namespacePrefix)) {
      if (found.length >= limit) break;
      const folded = fold(row.body);
      if (words.every((word) => folded.includes(word))) found.push({ ...row, score: 0 });
    }
    return found;
  }

  async #matches(namespacePrefix: string[], text: string, limit: number): Promise<Match[]> {
    const words = wordQuery(text);
    const values = { ...rangeBelow(namespacePrefix), now: this.#clock(), words, limit };
    return words === "" ? [] : query<Match>(this.#access, MATCHES, values);
  }

  async sweepExpiredItems(signal?: AbortSignal): Promise<number> {
    const sql = `DELETE FROM store_items WHERE id IN
      (SELECT id FROM store_items WHERE expires_at <= @now LIMIT @limit) RETURNING id`;
    let swept = 0;
    for (;;) {
      const deleted = await query(this.#access, sql, { now: this.#clock(), limit: SWEPT });
      swept += deleted.length;
      if (deleted.length < SWEPT || signal?.aborted === true) return swept;
    }
  }

  protected override async read({
    namespace,
    key,
    refreshTtl,
  }: GetOperation & Lifetime): Promise<Item | null> {
    const row = await this.#row({ namespace, key, refreshTtl });
    return row === undefined ? null : toItem(row);
  }

  async #row({
    namespace,
    key,
    refreshTtl,
  }: GetOperation & { refreshTtl?: boolean | undefined }): Promise<ItemRow | undefined> {
    const values = { namespace: encodeNamespace(namespace), key, now: this.#clock() };
    const [row] = await query<ItemRow>(this.#access, GET, values);
    if (row !== undefined) await this.#refresh([row], refreshTtl);
    return row;
  }

  protected override async find({
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
      if (found.length >= countOf(limit)) break;
      if (filter !== undefined && !matchesFilter(valueOf(row), filter)) continue;
      if (skipped < countOf(offset)) skipped += 1;
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
      const rows = await query<Row>(this.#access, sql, { ...range, afterNamespace, afterKey });
      yield* rows;
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return;
      [afterNamespace, afterKey] = [last.namespace, last.key];
    }
  }

  protected override async namespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const prefix = literalPrefix(operation.matchConditions ?? []);
    const range = { ...rangeBelow(prefix), now: this.#clock() };
    const rows = await query<{ namespace: string }>(this.#access, NAMESPACES, range);
    return listed(
      rows.map(({ namespace }) => namespace),
      operation,
    );
  }

  /** Starts the lifetime of items that were read again. */
  async #refresh(
    rows: readonly Pick<ItemRow, "id" | "ttl">[],
    wanted = this.#ttl.refreshOnRead ?? true,
  ): Promise<void> {
    const ids = wanted ? rows.filter(({ ttl }) => ttl !== null).map(({ id }) => id) : [];
    if (ids.length === 0) return;
    const sql = "UPDATE store_items SET expires_at = @now + ttl WHERE id = ANY (@ids::bigint[])";
    await query(this.#access, sql, { now: this.#clock(), ids });
  }
}

// Stored by `put` only.
const valueOf = ({ value }: ItemRow): Record<string, unknown> => JSON.parse(value) as Record<string, unknown>;

const toItem = (row: ItemRow): Item => itemOf(row, valueOf(row));
