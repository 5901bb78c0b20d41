import { setImmediate as nextTurn } from "node:timers/promises";
import type {
  GetOperation,
  Item,
  ListNamespacesOperation,
  SearchItem,
  SearchOperation,
} from "@langchain/langgraph-checkpoint";
import { type Clock, systemClock } from "../../../core/clock.ts";
import { ownTurn } from "../../../core/concurrency.ts";
import { type OptionTable, readOptions } from "../../../core/options.ts";
import type { Lifetime, TextHit, TtlConfig, VersionedItem } from "../../memories/contracts.ts";
import { ItemStore, type StorePut, lifetimeOf } from "../../memories/item-store.ts";
import type { NearPassage } from "../../memories/passages.ts";
import type { WriteTurn } from "../../memories/turns.ts";
import { quickly } from "../commit.ts";
import type { Database } from "../database.ts";
import { migrate } from "../migrations.ts";
import { Batches, PUTS_PER_TURN } from "./batches.ts";
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
 * instead, those most like the query first, and those without indexed text last. The writes of one batch happen
 * together or not at all. An item whose time is over is not there, deleted or not.
 */
export class SqliteStore extends ItemStore {
  readonly #database: Database;
  readonly #sql: StoreStatements;
  readonly #clock: Clock;
  readonly #ttl: TtlConfig;
  readonly #vectors: VectorIndex | undefined;
  readonly #parts: ValueParts;
  readonly #writer: ItemWriter;
  readonly #batches: Batches;
  readonly #reader: ItemReader;
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

  protected override read(operation: GetOperation & Lifetime): Promise<Item | null> {
    return this.#reader.get(operation);
  }

  protected override find(operation: SearchOperation & Lifetime): Promise<SearchItem[]> {
    return this.#reader.search(operation);
  }

  protected override namespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    return this.#reader.namespaces(operation);
  }

  protected override async writeAll(puts: readonly StorePut[], turn: WriteTurn): Promise<void> {
    const prepared = await this.#prepared(puts);
    await this.#batches.writeAll(prepared, { turn: turn.come, clock: this.#clock });
    turn.done();
    await this.#deleteUnused();
    this.#sweepSometimes();
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

  protected override async writeIf(
    wanted: StorePut,
    expected: string | null,
    turn: WriteTurn,
  ): Promise<string | undefined> {
    const [put] = await this.#prepared([wanted]);
    if (put === undefined) return undefined;
    await turn.come;
    const version = await this.#batches.write(() => this.#writer.putIf(put, expected, this.#clock()));
    turn.done();
    if (version === undefined && put.parts !== null) await this.#parts.giveUp(put.parts);
    await this.#deleteUnused();
    return version;
  }

  /** Puts with what only the embedding model and the store's settings know. */
  async #prepared(puts: readonly StorePut[]): Promise<PreparedPut[]> {
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
        ttl: lifetimeOf(ttl),
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
