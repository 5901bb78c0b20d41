/** The vectors of memories that one embedding model made, and the queue of memories without one. */
import { type Clock, systemClock } from "../../core/clock.ts";
import { ownTurn } from "../../core/concurrency.ts";
import type { Embedder } from "../../core/embedder.ts";
import { type Engine, type Steps, all, change, count, exists, first, insert } from "../../runs/sql/steps.ts";
import type { MemoryDatabase } from "./contracts.ts";
import { AFTER, IDS, IN_ORDER, type ItemPosition, idList, rangeStretch } from "./items.ts";
import { rangeBelow } from "./namespaces.ts";
import type { EmbeddedItem, NearPassage, UnembeddedItem } from "./passages.ts";
import { CLAIM_MS, PASSAGES_LENGTH, product, vectorBytes, unitVector } from "./passages.ts";

/** Old items put into the queue in one transaction. */
const FILL = 500;
/** Vectors compared in one turn of the event loop. */
const VECTORS_PER_TURN = 128;

const DONE = `DELETE FROM store_unembedded WHERE model = @model AND item IN ${IDS}`;

interface PassageRow extends ItemPosition {
  id: number;
  /** `null` for an item that has no vector. */
  number: number | null;
  vector: Uint8Array | null;
}

interface ModelRow {
  id: number;
  dims: number | null;
}

/**
 * The vectors of memories by one model, and the queue of memories without one. Any number of processes work on
 * the queue; one of them embeds each item. A search compares all vectors below its prefix. Writes do not wait for the
 * disk: lost vectors are embedded again.
 */
export class EmbeddingIndex {
  readonly embedder: Embedder;
  readonly #database: MemoryDatabase;
  readonly #engine: Engine;
  readonly #clock: Clock;

  constructor(database: MemoryDatabase, embedder: Embedder, clock: Clock = systemClock) {
    this.embedder = embedder;
    this.#database = database;
    this.#engine = database.engine;
    this.#clock = clock;
  }

  /** Counts the items in the queue, up to `limit`. */
  async waiting(limit: number): Promise<number> {
    const { id: model } = await this.#model();
    const old = () => this.#oldItems(model, 1);
    while ((await this.#engine.read(old)).length > 0) {
      await this.#engine.note(() => this.#fill(model));
      await ownTurn();
    }
    const sql = `
SELECT count(*) AS count FROM (SELECT 1 FROM store_unembedded WHERE model = @model LIMIT @limit) AS queue`;
    return this.#engine.read(() => count(sql, { model, limit }));
  }

  #oldItems(model: number, limit: number): Steps<{ id: number }[]> {
    const sql = `
SELECT id FROM store_items WHERE id <= (SELECT to_fill FROM store_models WHERE id = @model)
  AND ${this.#database.isSearched} ORDER BY id DESC LIMIT @limit`;
    return all(sql, { model, limit });
  }

  *#fill(model: number): Steps<void> {
    const old = yield* this.#oldItems(model, FILL);
    const last = old.at(-1);
    if (last === undefined) return;
    const sql = `
INSERT INTO store_unembedded (model, item) SELECT CAST(@model AS BIGINT), id FROM store_items WHERE id IN ${IDS}
ON CONFLICT DO NOTHING`;
    yield* change(sql, { model, ids: idList(old) });
    const filled = "UPDATE store_models SET to_fill = @last - 1 WHERE id = @model AND to_fill >= @last";
    yield* change(filled, { model, last: last.id });
  }

  /** Takes some items from the queue, newest first. The caller must store their vectors or release them. */
  async claim(limit: number): Promise<UnembeddedItem[]> {
    if ((await this.waiting(1)) === 0) return [];
    const { id: model } = await this.#model();
    const now = this.#clock();
    const sql = `
SELECT id, version, key, substr(coalesce(body, ''), 1, ${PASSAGES_LENGTH}) AS text FROM store_items
WHERE id IN ${IDS} AND ${this.#database.isSearched} ORDER BY id DESC`;
    return this.#engine.note(function* () {
      const claim = `
UPDATE store_unembedded SET due_at = @until WHERE model = @model AND item IN (
  SELECT item FROM store_unembedded WHERE model = @model AND (due_at <= @now OR due_at > @until)
  ORDER BY item DESC LIMIT @limit FOR UPDATE SKIP LOCKED
) RETURNING item AS id`;
      const claimed = yield* all<{ id: number }>(claim, { model, now, until: now + CLAIM_MS, limit });
      const items = yield* all<UnembeddedItem>(sql, { ids: idList(claimed) });
      const gone = claimed.filter(({ id }) => !items.some((item) => item.id === id));
      if (gone.length > 0) yield* change(DONE, { model, ids: idList(gone) });
      return items;
    });
  }

  /** Returns items to the queue that could not be embedded now. */
  async release(items: readonly UnembeddedItem[]): Promise<void> {
    const { id: model } = await this.#model();
    const sql = `UPDATE store_unembedded SET due_at = 0 WHERE model = @model AND item IN ${IDS}`;
    await this.#engine.note(() => change(sql, { model, ids: idList(items) }));
  }

  /** Removes items from the queue until they change; they have no vector then. */
  async giveUp(items: readonly UnembeddedItem[]): Promise<void> {
    await this.#store(items.map((item) => ({ item, vectors: [] })));
  }

  /** Stores vectors of items. An item that has changed since stays in the queue. */
  async store(embedded: readonly EmbeddedItem[]): Promise<void> {
    const dims = embedded.flatMap(({ vectors }) => vectors).at(0)?.length;
    if (dims !== undefined) await this.#expectDims(dims);
    await this.#store(embedded);
  }

  async #store(embedded: readonly EmbeddedItem[]): Promise<void> {
    const { id: model } = await this.#model();
    const prepared = embedded.map(({ item, vectors }) => ({
      item,
      vectors: vectors.map((vector) => vectorBytes(unitVector(vector))),
    }));
    // In the order in which others take their locks. An item cannot change until the transaction ends.
    const sorted = prepared.toSorted((one, other) => one.item.id - other.item.id);
    const isCurrent = `
SELECT 1 AS yes FROM store_items WHERE id = @item AND version = @version AND ${this.#database.isSearched} FOR SHARE`;
    await this.#engine.note(function* () {
      for (const { item, vectors } of sorted) {
        const place = { model, item: item.id };
        if (!(yield* exists(isCurrent, { item: item.id, version: item.version }))) continue;
        yield* change("DELETE FROM store_passages WHERE item = @item AND model = @model", place);
        for (const [number, vector] of vectors.entries())
          yield* insert("store_passages", { ...place, number, vector });
        yield* change(DONE, { model, ids: idList([item]) });
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
    const { id: model } = await this.#model();
    const [numbers = []] = await this.embedder.embed([query], "query", signal);
    await this.#expectDims(numbers.length);
    const wanted = unitVector(numbers);
    /** The passage of each item that is most like the query. */
    const best = new Map<number, NearPassage>();
    const { engine } = this.#database.within(namespacePrefix);
    const values = { ...rangeStretch(rangeBelow(namespacePrefix)), now: this.#clock(), model };
    for (let [after, size]: [object, number] = [{}, VECTORS_PER_TURN / 8]; ;) {
      const page = { ...values, ...after, limit: size };
      const sql = `
SELECT i.id, i.namespace, i.key, p.number, p.vector
FROM (SELECT id, namespace, key FROM store_items WHERE ${AFTER} ${IN_ORDER}) AS i
LEFT JOIN store_passages AS p ON p.item = i.id AND p.model = @model ORDER BY i.namespace, i.key`;
      const rows = await engine.read(() => all<PassageRow>(sql, page));
      for (const { id, number, vector } of rows) {
        const likeness = vector === null ? undefined : product(wanted, vector);
        if (likeness === undefined || number === null) continue;
        if (likeness > (best.get(id)?.likeness ?? -Infinity)) best.set(id, { id, number, likeness });
      }
      const last = rows.at(-1);
      if (last === undefined)
        return [...best.values()].sort((a, b) => b.likeness - a.likeness).slice(0, limit);
      // Items have one vector or many.
      [after, size] = [
        { namespace: last.namespace, key: last.key },
        Math.ceil((size * VECTORS_PER_TURN) / rows.length),
      ];
      await ownTurn();
    }
  }

  /** Notes that the model is in use: others are deleted after a while. */
  async touch(): Promise<void> {
    await this.#model();
    const sql = "UPDATE store_models SET used_at = @now WHERE name = @name";
    await this.#engine.note(() => change(sql, { name: this.embedder.name, now: this.#clock() }));
  }

  async #model(): Promise<ModelRow> {
    const { name } = this.embedder;
    for (;;) {
      const known = await this.#engine.read(() =>
        first<ModelRow>("SELECT id, dims FROM store_models WHERE name = @name", { name }),
      );
      if (known !== undefined) return known;
      const use = { name, now: this.#clock() };
      await this.#engine.write(function* () {
        // Makes writers of items and this wait for each other: every item counts either as old or as new.
        yield { sql: "LOCK TABLE store_items IN SHARE MODE", values: {}, isLock: true };
        const sql = `
INSERT INTO store_models (name, used_at, to_fill) SELECT @name, @now, coalesce(max(id), 0) FROM store_items WHERE true
ON CONFLICT (name) DO UPDATE SET used_at = excluded.used_at`;
        yield* change(sql, use);
      });
    }
  }

  /** Puts all items into the queue when a service returns vectors of another length than before. */
  async #expectDims(dims: number): Promise<void> {
    const known = await this.#model();
    if (known.dims === dims) return;
    const refill = known.dims === null ? "" : ", to_fill = (SELECT coalesce(max(id), 0) FROM store_items)";
    const sql = `UPDATE store_models SET dims = @dims${refill} WHERE id = @model`;
    await this.#engine.note(() => change(sql, { model: known.id, dims }));
  }
}

/** Deletes the vectors of models that were not used since, some in each transaction. */
export async function forgetUnusedModels(
  { engine }: MemoryDatabase,
  { usedBefore, signal }: { usedBefore: number; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    const sql = "SELECT id FROM store_models WHERE used_at < @usedBefore LIMIT 1";
    const unused = await engine.read(() => first<{ id: number }>(sql, { usedBefore }));
    if (unused === undefined) return;
    const model = unused.id;
    await engine.note(function* () {
      const forgetSome = `
DELETE FROM store_passages WHERE model = @model
  AND item IN (SELECT item FROM store_passages WHERE model = @model LIMIT @limit)`;
      if ((yield* change(forgetSome, { model, limit: FILL })) > 0) return;
      yield* change("DELETE FROM store_unembedded WHERE model = @model", { model });
      yield* change("DELETE FROM store_models WHERE id = @model", { model });
    });
    await ownTurn();
  }
}
