import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, systemClock } from "../../../core/clock.ts";
import type { Embedder } from "../../../core/embedder.ts";
import { headOf } from "../../../core/text.ts";
import { inTransaction, quickly } from "../commit.ts";
import { type Database, whenUnlocked } from "../database.ts";
import type { ItemPosition } from "./items.ts";
import { rangeBelow } from "../../memories/namespaces.ts";
import {
  type EmbeddingStatements,
  type UnembeddedRow,
  bytesOf,
  prepareEmbeddings,
  prepareForgetting,
  product,
  unitVector,
} from "./vectors.ts";

/** The most characters of a passage; services read that much of one text in any script. */
const PASSAGE_LENGTH = 1500;
/** The most passages of one item; text beyond them is found by its words only. */
const MAX_PASSAGES = 40;
/** The most characters that the passages of one item have together. */
export const PASSAGES_LENGTH: number = PASSAGE_LENGTH * MAX_PASSAGES;

/**
 * The parts of an item that get a vector each, cut between paragraphs, lines or words where that is possible.
 * Each begins with the key, which most often says what the item is about.
 */
export function passagesOf(key: string, text: string): string[] {
  const passages: string[] = [];
  let rest = text.trim();
  while (rest !== "" && passages.length < MAX_PASSAGES) {
    const passage = firstPassage(rest);
    passages.push(`${key}\n${passage.trim()}`);
    rest = rest.slice(passage.length).trimStart();
  }
  return passages.length === 0 ? [key] : passages;
}

function firstPassage(text: string): string {
  const head = headOf(text, PASSAGE_LENGTH);
  if (head.length === text.length) return head;
  for (const border of ["\n\n", "\n", " "]) {
    const at = head.lastIndexOf(border);
    if (at > PASSAGE_LENGTH / 2) return head.slice(0, at);
  }
  return head;
}

/** The passage of an item that is most similar to a query. */
export interface NearPassage {
  id: number;
  /** Its index in `passagesOf`. */
  number: number;
  /** Cosine, from -1 to 1. */
  likeness: number;
}

/** One state of an item with the vectors of its passages. */
export interface EmbeddedItem {
  item: UnembeddedRow;
  vectors: readonly (readonly number[])[];
}

/** Items whose vectors are compared between two turns of the event loop; each may have many. */
const ITEMS_PER_TURN = 16;
/** How long no other process takes an item that one took, in milliseconds. */
const CLAIM_MS = 120_000;
/** Old items put into the queue in one transaction. */
const FILL = 500;

/**
 * The vectors that one model gives to the items of a store, and the queue of items without one. They are in the
 * database of the store. Any number of processes work on the queue; one of them embeds each item.
 */
export class EmbeddingIndex {
  readonly embedder: Embedder;
  readonly #database: Database;
  readonly #sql: EmbeddingStatements;
  readonly #clock: Clock;

  /** Works on the `database` of a store, which has made the tables. */
  constructor(database: Database, embedder: Embedder, clock: Clock = systemClock) {
    this.embedder = embedder;
    this.#database = database;
    this.#sql = prepareEmbeddings(database);
    this.#clock = clock;
  }

  /** Counts the items in the queue, up to `limit`. */
  async waiting(limit: number): Promise<number> {
    const model = await this.#use();
    await this.#fill(model);
    return this.#sql.waiting.get({ model, limit }) ?? 0;
  }

  /** Takes some items from the queue, newest first. The caller must store their vectors or give them back. */
  async claim(limit: number): Promise<UnembeddedRow[]> {
    if ((await this.waiting(1)) === 0) return [];
    const model = await this.#use();
    const now = this.#clock();
    const ids = await this.#write(() => this.#sql.claim.all({ model, now, until: now + CLAIM_MS, limit }));
    const items = ids.map((id) => ({ id, row: this.#sql.item.get({ id, length: PASSAGES_LENGTH }) }));
    const gone = items.filter(({ row }) => row === undefined);
    if (gone.length > 0) {
      await this.#write(() => gone.forEach(({ id }) => this.#sql.done.run({ model, item: id })));
    }
    return items.flatMap(({ row }) => row ?? []);
  }

  /** Gives items back that could not be embedded now. */
  async release(items: readonly UnembeddedRow[]): Promise<void> {
    const model = await this.#use();
    await this.#write(() => items.forEach(({ id }) => this.#sql.release.run({ model, item: id })));
  }

  /** Removes items from the queue until they change; they have no vector then. */
  async giveUp(items: readonly UnembeddedRow[]): Promise<void> {
    const model = await this.#use();
    await this.#write(() => {
      for (const item of items) if (this.#isCurrent(item)) this.#sql.done.run({ model, item: item.id });
    });
  }

  /** Stores vectors of items. An item that changed meanwhile stays in the queue. */
  async store(embedded: readonly EmbeddedItem[]): Promise<void> {
    const model = await this.#use();
    const dims = embedded.flatMap(({ vectors }) => vectors).at(0)?.length;
    if (dims !== undefined) await this.#expectDims(dims);
    const prepared = embedded.map(({ item, vectors }) => ({
      item,
      vectors: vectors.map((vector) => bytesOf(unitVector(vector))),
    }));
    await this.#write(() => {
      for (const { item, vectors } of prepared) {
        if (!this.#isCurrent(item)) continue;
        this.#sql.clear.run({ model, item: item.id });
        for (const [number, vector] of vectors.entries()) {
          this.#sql.put.run({ item: item.id, model, number, vector });
        }
        this.#sql.done.run({ model, item: item.id });
      }
    });
  }

  /**
   * The items at or below the prefix that have a passage like the query, the most alike first.
   *
   * @throws {EmbeddingFailure} when the service cannot be asked
   */
  async nearest(
    namespacePrefix: string[],
    query: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<NearPassage[]> {
    const model = await this.#use();
    const [numbers = []] = await this.embedder.embed([query], "query", signal);
    await this.#expectDims(numbers.length);
    const wanted = unitVector(numbers);
    const range = rangeBelow(namespacePrefix);
    const best = new Map<number, NearPassage>();
    let after: ItemPosition = { namespace: range.from.slice(0, -1), key: "" };
    for (;;) {
      const page = { ...after, to: range.to, now: this.#clock(), model, limit: ITEMS_PER_TURN };
      const rows = this.#sql.passagesAfter.all(page);
      for (const { id, number, vector } of rows) {
        const likeness = vector === null ? undefined : product(wanted, vector);
        if (likeness === undefined || number === null) continue;
        if (likeness > (best.get(id)?.likeness ?? -Infinity)) best.set(id, { id, number, likeness });
      }
      const last = rows.at(-1);
      if (last === undefined) break;
      after = { namespace: last.namespace, key: last.key };
      await nextTurn();
    }
    return [...best.values()].sort((a, b) => b.likeness - a.likeness).slice(0, limit);
  }

  /** Notes that the model is in use: others are forgotten after a while. */
  async touch(): Promise<void> {
    await this.#write(() => this.#sql.useModel.run({ name: this.embedder.name, now: this.#clock() }));
  }

  async #use(): Promise<number> {
    const known = this.#sql.model.get(this.embedder.name);
    if (known !== undefined) return known.id;
    await this.touch();
    return this.#use();
  }

  async #fill(model: number): Promise<void> {
    while (this.#sql.oldItems.get({ model, limit: 1 }) !== undefined) {
      await this.#write(() => {
        const old = this.#sql.oldItems.all({ model, limit: FILL });
        for (const item of old) this.#sql.enqueue.run({ model, item });
        const last = old.at(-1);
        if (last !== undefined) this.#sql.filledTo.run({ model, item: last });
      });
      await nextTurn();
    }
  }

  /** Puts all items into the queue when a service gives vectors of another length than before. */
  async #expectDims(dims: number): Promise<void> {
    const known = this.#sql.model.get(this.embedder.name);
    if (known === undefined || known.dims === dims) return;
    await this.#write(() => {
      this.#sql.setDims.run({ model: known.id, dims });
      if (known.dims !== null) this.#sql.refill.run({ model: known.id });
    });
  }

  #isCurrent({ id, version }: UnembeddedRow): boolean {
    return this.#sql.version.get(id) === version;
  }

  /** Writes without waiting for the disk, because what a power cut undoes is embedded again. */
  #write<T>(work: () => T): Promise<T> {
    return quickly(this.#database, () => inTransaction(this.#database, work));
  }
}

/** Forgets the vectors of models that nobody has used since; a piece in each turn of the event loop. */
export async function forgetUnusedModels(
  database: Database,
  { usedBefore, signal }: { usedBefore: number; signal: AbortSignal },
): Promise<void> {
  const sql = prepareForgetting(database);
  while (!signal.aborted) {
    const model = sql.unusedModel.get({ usedBefore });
    if (model === undefined) return;
    const { changes } = await whenUnlocked(database, () => sql.forgetPassages.run({ model, limit: FILL }));
    if (changes === 0) {
      const forget = (): void => {
        sql.forgetQueue.run({ model });
        sql.forgetModel.run({ model });
      };
      await whenUnlocked(database, () => inTransaction(database, forget));
    }
    await nextTurn();
  }
}
