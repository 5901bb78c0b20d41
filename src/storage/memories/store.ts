/** The store of memories, whichever database has their tables. */
import {
  BaseStore,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, systemClock } from "../../core/clock.ts";
import { KeyedLock, ownTurn } from "../../core/concurrency.ts";
import { isTransient } from "../../core/errors.ts";
import { type Statement, type Steps, all, change, first } from "../../runs/sql/steps.ts";
import type {
  IndexedText,
  Lifetime,
  MemoryDatabase,
  MemoryStore,
  Ranked,
  StorePut,
  TextHit,
  TtlConfig,
  VersionedItem,
} from "./contracts.ts";
import type { ItemRow, ItemStatements, TextRow } from "./items.ts";
import { idList, toItem, itemStatements, valueJson, lifetimeMs, rangeStretch, itemVersion } from "./items.ts";
import {
  MAX_COUNT,
  type NamespaceRange,
  checkAddress,
  checkRoot,
  boundedCount,
  decodeNamespace,
  encodeNamespace,
  listedNamespaces,
  literalPrefix,
  matchesFilter,
  rangeBelow,
} from "./namespaces.ts";
import { itemPages, readPages } from "./pages.ts";
import { type NearPassage, fuse, passageStart } from "./passages.ts";
import { excerpt, fold, parseQuery } from "./text-query.ts";

export interface MemoryOptions {
  clock?: Clock;
  ttl?: TtlConfig;
}

/** A put with everything that is computed before its transaction begins. */
interface PreparedPut extends Pick<IndexedText, "after"> {
  values: Statement["values"];
  isDeletion: boolean;
}

/** Items that a search found and reads in one turn of the event loop. */
const FOUND = 16;
/** Items that one statement of a sweep deletes. */
const SWEPT = 50;

/**
 * LangGraph's `BaseStore` in a database.
 *
 * Listings are ordered by namespace and key. `search` with a `query` finds the items that contain any of its words (or
 * words that begin with them), best first: words of the key, and of the value its `content`, else all texts in it, or
 * the fields named by `put`. With an embedding model it finds all items instead, those most like the query first, and
 * those without indexed text last. The writes of one batch happen together or not at all; its reads see items stored
 * before. The last of several writes of one item counts, awaited or not. Expired items are in no answer.
 */
export class StoredMemories extends BaseStore implements MemoryStore {
  readonly #database: MemoryDatabase;
  readonly #clock: Clock;
  readonly #ttl: TtlConfig;
  readonly #writes: KeyedLock;
  readonly #sql: ItemStatements;
  readonly #pages: ReturnType<typeof itemPages>;
  #sweptAt = 0;

  constructor(
    database: MemoryDatabase,
    { clock = systemClock, ttl = {} }: MemoryOptions = {},
    writes: KeyedLock = new KeyedLock(),
  ) {
    super();
    this.#database = database;
    this.#clock = clock;
    this.#ttl = ttl;
    this.#writes = writes;
    this.#sql = itemStatements(database);
    this.#pages = itemPages(database, this.#sql);
  }

  /** Returns the store for a namespace and those below it; the order of writes to one item is shared. */
  within(namespace: readonly string[]): StoredMemories {
    const options = { clock: this.#clock, ttl: this.#ttl };
    return new StoredMemories(this.#database.within(namespace), options, this.#writes);
  }

  // LangGraph refuses some texts as parts of a namespace, such as dots and colons, which names of principals have.
  // The inherited methods check that, so each is replaced by one that accepts any text.

  override async batch<Operations extends Operation[]>(
    operations: Operations,
  ): Promise<OperationResults<Operations>> {
    const puts: StorePut[] = operations.filter((operation) => "value" in operation);
    for (const { namespace, key, value } of puts) if (value !== null) checkAddress(namespace, key);
    // Each operation has one result, of its kind.
    return this.#inTurn(puts, async () => {
      const results: unknown[] = [];
      for (const operation of operations) results.push(await this.#resultOf(operation));
      if (puts.length > 0) await this.#putAll(puts);
      return results;
    }) as Promise<OperationResults<Operations>>;
  }

  /** Returns the result of one read; `undefined` for a put. */
  async #resultOf(operation: Operation & Lifetime): Promise<unknown> {
    if ("namespacePrefix" in operation) return this.search(operation.namespacePrefix, operation);
    if ("value" in operation) return undefined;
    if (!("key" in operation)) return this.#namespaces(operation);
    return this.get(operation.namespace, operation.key, operation);
  }

  /** Does `work`, which writes these items; whoever comes later for one of them waits. */
  #inTurn<T>(puts: readonly StorePut[], work: () => Promise<T>): Promise<T> {
    const items = puts.map(({ namespace, key }) => JSON.stringify([...namespace, key]));
    return this.#writes.runAll(items, work);
  }

  /** Same as inherited; the item may have a lifetime. @throws MemoryTooLarge */
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

  override async delete(namespace: string[], key: string): Promise<void> {
    await this.batch([{ namespace, key, value: null }]);
  }

  /**
   * Puts the item only if its version is `expected` (`null`: it does not exist). Returns the new version, or
   * undefined when somebody else was faster; safe against other processes. @throws MemoryTooLarge
   */
  async putIf(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    expected: string | null,
  ): Promise<string | undefined> {
    checkRoot(namespace);
    checkAddress(namespace, key);
    const wanted = [{ namespace, key, value }];
    return this.#inTurn(wanted, async () => {
      const [put] = await this.#prepared(wanted);
      return put && this.#database.engine.write(() => this.#putIfExpected(put, expected));
    });
  }

  *#putIfExpected({ values, after }: PreparedPut, expected: string | null): Steps<string | undefined> {
    const { deleteExpired, putNew, putOver } = this.#sql;
    if (expected === null) yield* change(deleteExpired, values);
    const sql = expected === null ? putNew : putOver;
    const row = yield* first<Pick<ItemRow, "id" | "version">>(sql, { ...values, expected });
    if (row !== undefined) yield* after?.(row.id) ?? [];
    return row && itemVersion(row);
  }

  async #putAll(puts: readonly StorePut[]): Promise<void> {
    const prepared = await this.#prepared(puts);
    const { deleteExpired, put, delete: remove } = this.#sql;
    await this.#database.engine.write(function* () {
      for (const { values, isDeletion, after } of prepared) {
        if (isDeletion) {
          yield* change(remove, values);
          continue;
        }
        yield* change(deleteExpired, values);
        const row = yield* first<Pick<ItemRow, "id">>(put, values);
        if (row !== undefined) yield* after?.(row.id) ?? [];
      }
    });
    const { sweepIntervalMinutes = 60 } = this.#ttl;
    if (Math.abs(this.#clock() - this.#sweptAt) < sweepIntervalMinutes * 60_000) return;
    // Items that cannot be deleted now are invisible, and are deleted later.
    this.sweepExpiredItems().catch(() => undefined);
  }

  async #prepared(puts: readonly StorePut[]): Promise<PreparedPut[]> {
    const stored = puts.map(({ key, value }) => (value === null ? null : valueJson(key, value)));
    const indexed = await this.#database.index(puts);
    const now = this.#clock();
    return puts.map(({ namespace, key, ttl = this.#ttl.defaultTtl ?? null }, index) => {
      const { values = {}, after } = indexed[index] ?? {};
      const own = { namespace: encodeNamespace(namespace), key, value: stored[index] ?? null };
      const isDeletion = own.value === null;
      return {
        values: { ...values, ...own, now, ttl: lifetimeMs(ttl) },
        isDeletion,
        ...(after && { after }),
      };
    });
  }

  override async get(
    namespace: string[],
    key: string,
    lifetime: Pick<Lifetime, "refreshTtl"> = {},
  ): Promise<Item | null> {
    const row = await this.#row(namespace, key, lifetime.refreshTtl);
    return row === undefined ? null : toItem(row);
  }

  async getVersioned(namespace: string[], key: string): Promise<VersionedItem | null> {
    const row = await this.#row(namespace, key);
    return row === undefined ? null : { ...toItem(row), version: itemVersion(row) };
  }

  async #row(namespace: string[], key: string, refreshTtl?: boolean): Promise<ItemRow | undefined> {
    const values = { namespace: encodeNamespace(namespace), key, now: this.#clock() };
    const [row] = await this.#read<ItemRow>(this.#sql.get, values);
    if (row !== undefined) await this.#refresh([row], refreshTtl);
    return row;
  }

  /**
   * The first items of exactly this namespace with `from <= key < to`, in the order of their keys. With `containing`
   * only those that have one of these texts in their value, and some whose names or structure look like one. With `skip`,
   * without those in the folder that it names for an item before them, and maybe fewer, but none only at the end.
   */
  async itemsBetween(
    namespace: string[],
    page: {
      from: string;
      to: string;
      limit: number;
      containing?: readonly string[];
      skip?: (item: Item) => string | undefined;
    },
  ): Promise<Item[]> {
    const { from, to, limit, containing, skip } = page;
    // JSON escapes half of a character only where the other half is missing.
    const texts = containing?.every((text) => text.isWellFormed()) === true ? containing : [];
    const encoded = encodeNamespace(namespace);
    // Postgres has no NUL, which makes the next key of one.
    const isBehind = from.endsWith("\0");
    const key = isBehind ? from.slice(0, -1) : from;
    const stretch = { namespace: encoded, key, toNamespace: encoded, toKey: to };
    const start = isBehind ? (">" as const) : (">=" as const);
    if (skip) {
      const wanted = { ...stretch, now: this.#clock(), start, limit: boundedCount(limit) };
      const found = await this.#pages.firstInFolders(wanted, skip);
      await this.#refresh(found.map(({ row }) => row));
      return found.map(({ item }) => item);
    }
    const read = texts.length === 0 ? this.#pages.listed : this.#pages.containing(texts);
    const most = boundedCount(limit);
    const rows: ItemRow[] = [];
    for await (const some of readPages(read, { ...stretch, now: this.#clock() }, { start, most })) {
      rows.push(...some);
      if (rows.length >= most) break;
    }
    const found = rows.slice(0, most);
    await this.#refresh(found);
    return found.map(toItem);
  }

  override async search(
    namespacePrefix: string[],
    options: Omit<SearchOperation, "namespacePrefix"> & Pick<Lifetime, "refreshTtl"> = {},
  ): Promise<SearchItem[]> {
    const { query = "", filter, limit = 10, offset = 0, refreshTtl } = options;
    const range = rangeBelow(namespacePrefix);
    const [first, most] = [boundedCount(offset), boundedCount(limit)];
    const wanted = filter === undefined ? Math.min(first + most, MAX_COUNT) : MAX_COUNT;
    const pages =
      query === ""
        ? readPages(this.#pages.listed, { ...rangeStretch(range), now: this.#clock() }, { most: wanted })
        : this.#rankedPages(
            (await this.#database.byMeaning?.(range, query, this.#clock())) ??
              (await this.#byWords(range, query, wanted)),
          );
    const found: (ItemRow & Pick<Ranked, "score">)[] = [];
    let skipped = 0;
    for await (const page of pages) {
      for (const row of page) {
        if (found.length >= most) break;
        if (filter !== undefined && !matchesFilter(toItem(row).value, filter)) continue;
        if (skipped < first) skipped += 1;
        else found.push(row);
      }
      if (found.length >= most) break;
    }
    await this.#refresh(found, refreshTtl);
    return found.map((row) => ({
      ...toItem(row),
      ...(row.score === undefined ? {} : { score: row.score }),
    }));
  }

  async *#rankedPages(ranked: readonly Ranked[]): AsyncGenerator<(ItemRow & Pick<Ranked, "score">)[]> {
    for (let first = 0; first < ranked.length; first += FOUND) {
      if (first > 0) await ownTurn();
      const page = ranked.slice(first, first + FOUND);
      const rows = await this.#byIds<ItemRow>(this.#sql.byIds, page);
      yield page.flatMap(({ id, score }) => {
        const row = rows.get(id);
        return row === undefined ? [] : [{ ...row, ...(score === undefined ? {} : { score }) }];
      });
    }
  }

  async #byIds<Row extends { id: number }>(sql: string, items: readonly Pick<Ranked, "id">[]) {
    const rows = await this.#read<Row>(sql, { ids: idList(items) });
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** The items with any word of the query. If no item has one, those with all of its words inside of others. */
  async #byWords(range: NamespaceRange, query: string, limit: number): Promise<readonly Ranked[]> {
    const found = await this.#database.byWords(range, query, { limit, now: this.#clock() });
    const { words } = parseQuery(query);
    if (found.length > 0 || words.length === 0) return found;
    const inside: Ranked[] = [];
    const whole = { ...rangeStretch(range), now: this.#clock() };
    for await (const page of readPages(this.#pages.texts, whole)) {
      for (const { id, key, body } of page) {
        const folded = fold(`${key}\n${body}`);
        if (words.every((word) => folded.includes(word))) inside.push({ id, score: 0 });
        if (inside.length >= limit) return inside;
      }
    }
    return inside;
  }

  /** Adds the items of `near`, if any, by reciprocal rank fusion. */
  async searchText(
    namespacePrefix: string[],
    query: string,
    limit: number,
    near?: readonly NearPassage[],
  ): Promise<TextHit[]> {
    const byWords = await this.#byWords(rangeBelow(namespacePrefix), query, boundedCount(limit));
    const ranked = near === undefined ? byWords : fuse([byWords, near]).slice(0, boundedCount(limit));
    const rows = await this.#byIds<TextRow>(this.#sql.textsByIds, ranked);
    const passages = new Map(near?.map(({ id, number }) => [id, number]));
    for (const { id } of byWords) passages.delete(id);
    const parsed = parseQuery(query);
    const hits: TextHit[] = [];
    for (const { id, score = 0 } of ranked) {
      const row = rows.get(id);
      if (row === undefined) continue;
      const passage = passages.get(id);
      const snippet =
        passage === undefined ? excerpt(row.body, parsed) : passageStart(row.key, row.body, passage);
      hits.push({ namespace: decodeNamespace(row.namespace), key: row.key, snippet, score });
      // Making a snippet of so many characters takes a while.
      if (row.body.length > 20_000) await ownTurn();
    }
    return hits;
  }

  override async listNamespaces(
    wanted: Parameters<BaseStore["listNamespaces"]>[0] = {},
  ): Promise<string[][]> {
    const { prefix, suffix, limit = 100, offset = 0, ...depth } = wanted;
    const matchConditions: MatchCondition[] = [];
    if (prefix) matchConditions.push({ matchType: "prefix", path: prefix });
    if (suffix) matchConditions.push({ matchType: "suffix", path: suffix });
    return this.#namespaces({ matchConditions, limit, offset, ...depth });
  }

  async #namespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const range = rangeBelow(literalPrefix(operation.matchConditions ?? []));
    const values = { ...range, now: this.#clock() };
    const rows = await this.#read<{ namespace: string }>(this.#sql.namespaces, values);
    const stored = rows.map(({ namespace }) => namespace);
    return listedNamespaces(stored, operation);
  }

  /** Deletes expired items, some in each turn of the event loop; returns their number. */
  async sweepExpiredItems(signal?: AbortSignal): Promise<number> {
    this.#sweptAt = this.#clock();
    const values = { now: this.#sweptAt, limit: SWEPT };
    for (let swept = 0; ;) {
      // A power cut may restore items, which have expired all the same.
      const count = await this.#database.engine.note(() => change(this.#sql.sweep, values));
      swept += count;
      if (count < SWEPT || signal?.aborted === true) return swept;
      await nextTurn();
    }
  }

  /** Starts the lifetime of items that were read again. A failure to write this does not fail the read. */
  async #refresh(rows: readonly Pick<ItemRow, "id" | "ttl">[], wanted = this.#ttl.refreshOnRead ?? true) {
    const limited = wanted ? rows.filter(({ ttl }) => ttl !== null) : [];
    if (limited.length === 0) return;
    const values = { now: this.#clock(), ids: idList(limited) };
    try {
      await this.#database.engine.note(() => change(this.#sql.refresh, values));
    } catch (thrown) {
      if (!isTransient(thrown)) throw thrown;
    }
  }

  #read<Row extends object>(sql: string, values: Statement["values"]): Promise<Row[]> {
    return this.#database.engine.read(() => all<Row>(sql, values));
  }
}
