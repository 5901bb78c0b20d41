import { setImmediate as nextTurn } from "node:timers/promises";
import type {
  GetOperation,
  Item,
  ListNamespacesOperation,
  SearchItem,
  SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Clock } from "../../../core/clock.ts";
import { ownTurn } from "../../../core/concurrency.ts";
import { isTransient } from "../../../core/errors.ts";
import type { TextHit, VersionedItem } from "../../memories/contracts.ts";
import { MAX_COUNT, countOf, itemOf, listed, versionOf } from "../../memories/item-store.ts";
import {
  decodeNamespace,
  encodeNamespace,
  literalPrefix,
  matchesFilter,
  rangeBelow,
} from "../../memories/namespaces.ts";
import { type NearPassage, fuse, passageStart } from "../../memories/passages.ts";
import { excerpt, parseQuery } from "../../memories/text-query.ts";
import { withoutWaiting } from "../commit.ts";
import type { Database } from "../database.ts";
import type { Batches } from "./batches.ts";
import type { ItemRow, StoreStatements } from "./items.ts";
import type { ValueParts } from "./parts.ts";
import { itemsOf, rankItems } from "./text-search.ts";
import type { VectorIndex } from "./vectors.ts";

/** Whether reading an item starts its lifetime again. Default: as the store says. */
interface Refresh {
  refreshTtl?: boolean;
}

export interface ReadContext {
  database: Database;
  sql: StoreStatements;
  parts: ValueParts;
  batches: Batches;
  clock: Clock;
  vectors: VectorIndex | undefined;
  refreshOnRead: boolean;
}

/** Reads a store. Expired items are left out, also those that are not deleted yet. */
export class ItemReader {
  readonly #context: ReadContext;
  readonly #sql: StoreStatements;

  constructor(context: ReadContext) {
    this.#context = context;
    this.#sql = context.sql;
  }

  async get({ namespace, key, refreshTtl }: GetOperation & Refresh): Promise<Item | null> {
    const read = await this.#get(namespace, key, refreshTtl);
    return read === undefined ? null : toItem(read);
  }

  async versioned(namespace: string[], key: string): Promise<VersionedItem | null> {
    const read = await this.#get(namespace, key, undefined);
    return read === undefined ? null : { ...toItem(read), version: versionOf(read.row) };
  }

  async #get(
    namespace: string[],
    key: string,
    refreshTtl: boolean | undefined,
  ): Promise<ReadRow | undefined> {
    const { batches, clock } = this.#context;
    const row = await batches.read(() =>
      this.#sql.get.get({ namespace: encodeNamespace(namespace), key, now: clock() }),
    );
    if (row === undefined) return undefined;
    this.#refresh([row], refreshTtl);
    return this.#read(row);
  }

  /** Gives the row with its value; when the item is written again meanwhile, its new state. */
  async #read(row: ItemRow): Promise<ReadRow | undefined> {
    const { parts } = this.#context;
    for (let current: ItemRow | undefined = row; ;) {
      const value = await parts.valueOf(current);
      if (value !== undefined) return { row: current, value };
      const next = this.#sql.getById.get(current.id);
      if (next === undefined) return undefined;
      if (next.parts === current.parts) throw parts.lost();
      current = next;
    }
  }

  async between(
    namespace: string[],
    { from, to, limit }: { from: string; to: string; limit: number },
  ): Promise<Item[]> {
    const within = { namespace: encodeNamespace(namespace), to, now: this.#context.clock() };
    const items: Item[] = [];
    let next = from;
    for (let left = countOf(limit); left > 0; left -= ITEMS_PER_TURN) {
      const rows = this.#sql.itemsBetween.all({
        ...within,
        from: next,
        limit: Math.min(left, ITEMS_PER_TURN),
      });
      this.#refresh(rows, undefined);
      for (const row of rows) {
        const read = await this.#read(row);
        if (read !== undefined) items.push(toItem(read));
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < ITEMS_PER_TURN) break;
      // No key is between the two.
      next = `${last.key}\0`;
      await ownTurn();
    }
    return items;
  }

  async text(
    namespacePrefix: string[],
    query: string,
    limit: number,
    near?: readonly NearPassage[],
  ): Promise<TextHit[]> {
    await this.#context.batches.settle();
    const parsed = parseQuery(query);
    const page = { limit: countOf(limit), now: this.#context.clock() };
    const byWords = await rankItems(this.#sql, rangeBelow(namespacePrefix), parsed, page);
    const ranked = near === undefined ? byWords : fuse([byWords, near]).slice(0, page.limit);
    const passages = new Map(near?.map(({ id, number }) => [id, number]));
    for (const { id } of byWords) passages.delete(id);
    const hits: TextHit[] = [];
    for (const { id, score } of ranked) {
      const place = this.#sql.placeById.get(id);
      if (place === undefined) continue;
      const { namespace, key } = place;
      const body = this.#sql.bodyById.get(id) ?? "";
      const passage = passages.get(id);
      const snippet = passage === undefined ? excerpt(body, parsed) : passageStart(key, body, passage);
      hits.push({ namespace: decodeNamespace(namespace), key, snippet, score });
      if (body.length > LONG_TEXT) await nextTurn();
    }
    return hits;
  }

  async search(operation: SearchOperation & Refresh): Promise<SearchItem[]> {
    const { filter, refreshTtl } = operation;
    const limit = countOf(operation.limit ?? 10);
    const offset = countOf(operation.offset ?? 0);
    const found: (ReadRow & { score?: number })[] = [];
    let skipped = 0;
    for await (const item of this.#candidates(operation, limit + offset)) {
      if (found.length >= limit) break;
      if (filter === undefined && skipped < offset) {
        skipped += 1;
        continue;
      }
      const read = await this.#read(item.row);
      if (read === undefined || (filter !== undefined && !matchesFilter(read.value, filter))) continue;
      if (skipped < offset) skipped += 1;
      else found.push({ ...item, ...read });
    }
    this.#refresh(
      found.map(({ row }) => row),
      refreshTtl,
    );
    return found.map(({ score, ...read }) => ({
      ...toItem(read),
      ...(score === undefined ? {} : { score }),
    }));
  }

  /** Gives the items that a search looks at, in its order; without a filter `wanted` of them are enough. */
  async *#candidates(
    { namespacePrefix, query, filter }: SearchOperation,
    wanted: number,
  ): AsyncGenerator<{ row: ItemRow; score?: number }> {
    const range = rangeBelow(namespacePrefix);
    const now = this.#context.clock();
    const limit = filter === undefined ? wanted : MAX_COUNT;
    if (!query && limit <= ITEMS_PER_TURN) {
      const page = { ...range, limit, offset: 0, now };
      for (const row of await this.#context.batches.read(() => this.#sql.items.all(page))) yield { row };
      return;
    }
    await this.#context.batches.settle();
    if (!query) {
      for await (const row of itemsOf(this.#sql, range, now)) yield { row };
      return;
    }
    const ranked = await (this.#context.vectors?.rank(range, query, now) ??
      rankItems(this.#sql, range, parseQuery(query), { limit, now }));
    for (const [index, { id, ...score }] of ranked.entries()) {
      if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await ownTurn();
      const row = this.#sql.getById.get(id);
      if (row !== undefined) yield { row, ...score };
    }
  }

  async namespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const prefix = literalPrefix(operation.matchConditions ?? []);
    const range = { ...rangeBelow(prefix), now: this.#context.clock() };
    return listed(await this.#context.batches.read(() => this.#sql.namespaces.all(range)), operation);
  }

  /** Starts the lifetime of items that were read again. A failure to write this does not fail the read. */
  #refresh(rows: readonly Pick<ItemRow, "id" | "ttl">[], wanted = this.#context.refreshOnRead): void {
    const limited = wanted ? rows.filter(({ ttl }) => ttl !== null) : [];
    if (limited.length === 0) return;
    const now = this.#context.clock();
    try {
      withoutWaiting(this.#context.database, () => {
        for (const { id } of limited) this.#sql.refresh.run({ id, now });
      });
    } catch (thrown) {
      if (!isTransient(thrown)) throw thrown;
    }
  }
}

/** Items read between two turns of the event loop; their long texts get turns of their own. */
const ITEMS_PER_TURN = 32;
/** Searching a text of so many characters takes a while. */
const LONG_TEXT = 20_000;
/** A row, and its value whole. */
interface ReadRow {
  row: ItemRow;
  value: Record<string, unknown>;
}

const toItem = ({ row, value }: ReadRow): Item => itemOf(row, value);
