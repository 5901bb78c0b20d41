import { setImmediate as nextTurn } from "node:timers/promises";
import {
  BaseStore,
  type Item,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import { type Clock, systemClock } from "../../../core/clock.ts";
import { ownTurn } from "../../../core/concurrency.ts";
import { type OptionTable, readOptions } from "../../../core/options.ts";
import type { Lifetime, TextHit, TtlConfig, VersionedItem } from "../../memories/contracts.ts";
import { checkAddress, checkRoot } from "../../memories/namespaces.ts";
import { ItemTurns, type Turn } from "../../memories/turns.ts";
import { quickly } from "../commit.ts";
import type { Database } from "../database.ts";
import { migrate } from "../migrations.ts";
import { Batches, PUTS_PER_TURN } from "./batches.ts";
import type { NearPassage } from "./embedding-index.ts";
import { type StoreStatements, prepareStatements } from "./items.ts";
import { ValueParts, divided } from "./parts.ts";
import { ItemReader } from "./reads.ts";
import { STORE_MIGRATIONS } from "./schema.ts";
import { type FieldVector, VectorIndex, type VectorIndexConfig } from "./vectors.ts";
import { ItemWriter, type PreparedPut, preparedPut } from "./writes.ts";

export interface StoreOptions {
  clock?: Clock;
  ttl?: TtlConfig;
  /** Makes `search` with a query find items by their meaning instead of their words. */
  index?: VectorIndexConfig;
}

const OPTIONS: OptionTable<StoreOptions> = {
  clock: "a function",
  ttl: "a plain object",
  index: "a plain object",
};

/** Makes a store over `database`, and its tables when they are missing. The caller closes the database. */
export function createStore(database: Database, options: StoreOptions = {}): SqliteStore {
  const given = readOptions("createStore", options, OPTIONS);
  migrate(database, "store", STORE_MIGRATIONS);
  return new SqliteStore(database, given);
}

/**
 * LangGraph's `BaseStore` in SQLite.
 *
 * Listings are ordered by namespace and key. `search` with a `query` gives the items that contain any of
 * its words (or words that start with them), best first, ranked by bm25 over the key and the text of the
 * value: its `content`, else all texts in it, or the fields named by `put`. With `index` it gives all items
 * instead, those most like the query first, and those without indexed text last. In one batch the reads see
 * what was stored before it; its writes happen together or not at all. Of several writes of one item the last
 * that was asked for counts, awaited or not. An item whose time is over is not there, deleted or not.
 */
export class SqliteStore extends BaseStore {
  readonly #database: Database;
  readonly #sql: StoreStatements;
  readonly #clock: Clock;
  readonly #ttl: TtlConfig;
  readonly #vectors: VectorIndex | undefined;
  readonly #parts: ValueParts;
  readonly #writer: ItemWriter;
  readonly #batches: Batches;
  readonly #reader: ItemReader;
  readonly #turns = new ItemTurns();
  #sweptAt = 0;

  constructor(database: Database, { clock = systemClock, ttl = {}, index }: StoreOptions = {}) {
    super();
    this.#database = database;
    this.#sql = prepareStatements(database);
    this.#clock = clock;
    this.#ttl = ttl;
    this.#vectors = index && new VectorIndex(database, index);
    this.#parts = new ValueParts(database);
    this.#writer = new ItemWriter(this.#sql, this.#parts);
    this.#batches = new Batches(database, this.#writer);
    const refreshOnRead = ttl.refreshOnRead ?? true;
    const [parts, vectors, batches] = [this.#parts, this.#vectors, this.#batches];
    this.#reader = new ItemReader({
      database,
      sql: this.#sql,
      parts,
      batches,
      clock,
      vectors,
      refreshOnRead,
    });
  }

  override async batch<Operations extends Operation[]>(
    operations: Operations,
  ): Promise<OperationResults<Operations>> {
    const puts: (PutOperation & Lifetime)[] = operations.filter((operation) => "value" in operation);
    for (const { namespace, key, value } of puts) if (value !== null) checkAddress(namespace, key);
    // Each operation has one result, of its kind.
    return this.#inTurn(puts, async (turn) => {
      const results: unknown[] = [];
      for (const operation of operations) results.push(await this.#read(operation));
      if (puts.length > 0) await this.#writeAll(puts, turn);
      return results;
    }) as Promise<OperationResults<Operations>>;
  }

  /** Gives the result of one read; `undefined` for a put. */
  async #read(operation: Operation): Promise<unknown> {
    if ("namespacePrefix" in operation) return this.#reader.search(operation);
    if ("value" in operation) return undefined;
    return "key" in operation ? this.#reader.get(operation) : this.#reader.namespaces(operation);
  }

  async #writeAll(puts: readonly (PutOperation & Lifetime)[], turn: Turn): Promise<void> {
    const prepared = await this.#prepared(puts);
    await this.#batches.writeAll(prepared, { turn: turn.come, clock: this.#clock });
    turn.done();
    await this.#deleteUnused();
    this.#sweepSometimes();
  }

  /** Does `work`, which writes these items when its turn has come; whoever comes later for one of them waits. */
  async #inTurn<T>(
    puts: readonly Pick<PutOperation, "namespace" | "key">[],
    work: (turn: Turn) => Promise<T>,
  ): Promise<T> {
    const items = puts.map(({ namespace, key }) => JSON.stringify([...namespace, key]));
    const turn = this.#turns.take(new Set(items));
    try {
      return await work(turn);
    } finally {
      turn.done();
    }
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
    return this.#reader.get({ namespace, key, ...lifetime });
  }

  override async search(
    namespacePrefix: string[],
    options: Omit<SearchOperation, "namespacePrefix"> & Pick<Lifetime, "refreshTtl"> = {},
  ): Promise<SearchItem[]> {
    return this.#reader.search({ namespacePrefix, ...options });
  }

  async getVersioned(namespace: string[], key: string): Promise<VersionedItem | null> {
    return this.#reader.versioned(namespace, key);
  }

  /** The first items of exactly this namespace with `from <= key < to`, in the order of their keys. */
  async itemsBetween(
    namespace: string[],
    range: { from: string; to: string; limit: number },
  ): Promise<Item[]> {
    return this.#reader.between(namespace, range);
  }

  /**
   * The items at or below `namespacePrefix` that contain words of the query, with the text around the match;
   * with `near` together with those, by reciprocal rank fusion.
   */
  async searchText(
    namespacePrefix: string[],
    query: string,
    limit: number,
    near?: readonly NearPassage[],
  ): Promise<TextHit[]> {
    return this.#reader.text(namespacePrefix, query, limit, near);
  }

  /** Deletes the items whose time is over, some in each turn of the event loop; gives their number. */
  async sweepExpiredItems(signal?: AbortSignal): Promise<number> {
    this.#sweptAt = this.#clock();
    const some = { now: this.#sweptAt, limit: ITEMS_PER_SWEEP };
    let swept = 0;
    for (;;) {
      // Items that a power cut brings back have expired all the same.
      const { changes } = await quickly(this.#database, () => this.#sql.sweep.run(some));
      swept += changes;
      if (changes === 0 || signal?.aborted === true) return swept;
      await nextTurn();
    }
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
    checkRoot(namespace);
    checkAddress(namespace, key);
    return this.#inTurn([{ namespace, key }], async (turn) => {
      const [put] = await this.#prepared([{ namespace, key, value }]);
      if (put === undefined) return undefined;
      await turn.come;
      const version = await this.#batches.write(() => this.#writer.putIf(put, expected, this.#clock()));
      turn.done();
      if (version === undefined && put.parts !== null) await this.#parts.giveUp(put.parts);
      await this.#deleteUnused();
      return version;
    });
  }

  /** Puts with what only the embedding model and the store's settings know. */
  async #prepared(puts: readonly (PutOperation & Lifetime)[]): Promise<PreparedPut[]> {
    const values = puts.map(({ value, index }) => ({
      value: value ?? {},
      index: value === null ? false : index,
    }));
    const vectors: FieldVector[][] = (await this.#vectors?.vectorsOf(values)) ?? [];
    const prepared: PreparedPut[] = [];
    for (const [index, { ttl = this.#ttl.defaultTtl ?? null, ...put }] of puts.entries()) {
      if (index % PUTS_PER_TURN === PUTS_PER_TURN - 1) await ownTurn();
      const { json, pieces } = divided(put.value ?? {});
      const facts = {
        ttl: ttl === null ? null : Math.max(0, Math.round(ttl * MINUTE_MS)),
        json,
        parts: pieces.length === 0 ? null : await this.#parts.store(pieces, Date.now()),
        vectors: vectors[index] ?? [],
      };
      prepared.push(preparedPut(put, facts));
    }
    return prepared;
  }

  /** Deletes unused pieces; the next write does what fails here. */
  async #deleteUnused(): Promise<void> {
    await this.#parts.deleteUnused(Date.now()).catch(() => undefined);
    await this.#batches.deleteAbandoned(Date.now()).catch(() => undefined);
  }

  #sweepSometimes(): void {
    const { sweepIntervalMinutes = 60 } = this.#ttl;
    if (Math.abs(this.#clock() - this.#sweptAt) < sweepIntervalMinutes * MINUTE_MS) return;
    // Items that cannot be deleted now are invisible, and are deleted later.
    this.sweepExpiredItems().catch(() => undefined);
  }
}

const MINUTE_MS = 60_000;
/** Items deleted in one transaction. */
const ITEMS_PER_SWEEP = 10;
