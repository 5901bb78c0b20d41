import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, systemClock } from "../../../core/clock.ts";
import type { Embedder } from "../../../core/embedder.ts";
import { inTransaction, quickly } from "../commit.ts";
import { type Database, whenUnlocked } from "../database.ts";
import type { ItemPosition } from "./items.ts";
import { rangeBelow } from "../../memories/namespaces.ts";
import {
  CLAIM_MS,
  type EmbeddedItem,
  type NearPassage,
  Nearest,
  PASSAGES_LENGTH,
  type PassageIndex,
  type UnembeddedItem,
  bytesOf,
  unitVector,
} from "../../memories/passages.ts";
import { type EmbeddingStatements, prepareEmbeddings, prepareForgetting } from "./vectors.ts";

/** Items whose vectors are compared between two turns of the event loop; each may have many. */
const ITEMS_PER_TURN = 16;
/** Old items put into the queue in one transaction. */
const FILL = 500;

/** The vectors and the queue in the database of the store. */
export class EmbeddingIndex implements PassageIndex {
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

  async waiting(limit: number): Promise<number> {
    const model = await this.#use();
    await this.#fill(model);
    return this.#sql.waiting.get({ model, limit }) ?? 0;
  }

  async claim(limit: number): Promise<UnembeddedItem[]> {
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

  async release(items: readonly UnembeddedItem[]): Promise<void> {
    const model = await this.#use();
    await this.#write(() => items.forEach(({ id }) => this.#sql.release.run({ model, item: id })));
  }

  async giveUp(items: readonly UnembeddedItem[]): Promise<void> {
    const model = await this.#use();
    await this.#write(() => {
      for (const item of items) if (this.#isCurrent(item)) this.#sql.done.run({ model, item: item.id });
    });
  }

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

  async nearest(
    namespacePrefix: string[],
    query: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<NearPassage[]> {
    const model = await this.#use();
    const [numbers = []] = await this.embedder.embed([query], "query", signal);
    await this.#expectDims(numbers.length);
    const nearest = new Nearest(numbers);
    const range = rangeBelow(namespacePrefix);
    let after: ItemPosition = { namespace: range.from.slice(0, -1), key: "" };
    for (;;) {
      const page = { ...after, to: range.to, now: this.#clock(), model, limit: ITEMS_PER_TURN };
      const rows = this.#sql.passagesAfter.all(page);
      for (const row of rows) nearest.add(row);
      const last = rows.at(-1);
      if (last === undefined) return nearest.first(limit);
      after = { namespace: last.namespace, key: last.key };
      await nextTurn();
    }
  }

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

  #isCurrent({ id, version }: UnembeddedItem): boolean {
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
