import { type Clock, systemClock } from "../../../core/clock.ts";
import type { Embedder } from "../../../core/embedder.ts";
import { encodeNamespace, rangeBelow } from "../../memories/namespaces.ts";
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
import { change, first } from "../../sql/steps.ts";
import type { Access } from "../access.ts";
import { postgresEngine, query } from "../engine.ts";

/** Old items put into the queue by one statement. */
const FILL = 500;
/** Items whose vectors one query of a search reads; each may have many. */
const PAGE = 100;

/** Makes writers of items and this wait for each other: every item counts either as old or as new. */
const LOCK_ITEMS = "LOCK TABLE store_items IN SHARE MODE";
const USE = `
INSERT INTO store_models (name, used_at, to_fill) SELECT @name, @now, coalesce(max(id), 0) FROM store_items
ON CONFLICT (name) DO UPDATE SET used_at = excluded.used_at`;
const TOUCH = "UPDATE store_models SET used_at = @now WHERE name = @name";
const MODEL = "SELECT id, dims FROM store_models WHERE name = @name";
const FILL_QUEUE = `
WITH old AS (
  SELECT id FROM store_items
  WHERE id <= (SELECT to_fill FROM store_models WHERE id = @model) AND body IS NOT NULL ORDER BY id DESC LIMIT @limit
), queued AS (
  INSERT INTO store_unembedded (model, item) SELECT @model::bigint, id FROM old ON CONFLICT DO NOTHING
)
UPDATE store_models SET to_fill = least(to_fill, (SELECT min(id) FROM old) - 1)
WHERE id = @model AND EXISTS (SELECT 1 FROM old) RETURNING id`;
const WAITING = `
SELECT count(*) AS waiting FROM (SELECT 1 FROM store_unembedded WHERE model = @model LIMIT @limit) AS queue`;
const CLAIM = `
UPDATE store_unembedded SET due_at = @until WHERE model = @model AND item IN (
  SELECT item FROM store_unembedded WHERE model = @model AND (due_at <= @now OR due_at > @until)
  ORDER BY item DESC LIMIT @limit FOR UPDATE SKIP LOCKED
) RETURNING item`;
const ITEMS = `
SELECT id, version, key, left(body, ${PASSAGES_LENGTH}) AS text FROM store_items
WHERE id = ANY (@ids::bigint[]) AND body IS NOT NULL ORDER BY id DESC`;
const RELEASE = "UPDATE store_unembedded SET due_at = 0 WHERE model = @model AND item = ANY (@ids::bigint[])";
const DONE = "DELETE FROM store_unembedded WHERE model = @model AND item = @item";
const GONE = "DELETE FROM store_unembedded WHERE model = @model AND item = ANY (@ids::bigint[])";
/** Keeps the item as it is until the transaction is over. */
const CURRENT =
  "SELECT 1 FROM store_items WHERE id = @item AND version = @version AND body IS NOT NULL FOR SHARE";
const CLEAR = "DELETE FROM store_passages WHERE item = @item AND model = @model";
const PUT =
  "INSERT INTO store_passages (item, model, number, vector) VALUES (@item, @model, @number, @vector::bytea)";
const PASSAGES = `
SELECT i.id, i.namespace, i.key, p.number, p.vector FROM (
  SELECT id, namespace, key FROM store_items
  WHERE (namespace, key) > (@afterNamespace, @afterKey) AND namespace >= @from AND namespace < @to
    AND (expires_at IS NULL OR expires_at > @now)
  ORDER BY namespace, key LIMIT @limit
) AS i LEFT JOIN store_passages AS p ON p.item = i.id AND p.model = @model ORDER BY i.namespace, i.key`;
const UNUSED = "SELECT id FROM store_models WHERE used_at < @usedBefore LIMIT 1";
const FORGET_SOME = `
DELETE FROM store_passages WHERE ctid IN (SELECT ctid FROM store_passages WHERE model = @model LIMIT @limit)
RETURNING model`;

interface PassageRow {
  id: number;
  namespace: string;
  key: string;
  number: number | null;
  vector: Uint8Array | null;
}

/** The vectors and the queue in the schema of the store. A search compares all vectors below its prefix. */
export class PostgresEmbeddingIndex implements PassageIndex {
  readonly embedder: Embedder;
  readonly #access: Access;
  readonly #clock: Clock;

  constructor(access: Access, embedder: Embedder, clock: Clock = systemClock) {
    this.embedder = embedder;
    this.#access = access;
    this.#clock = clock;
  }

  async waiting(limit: number): Promise<number> {
    const { id: model } = await this.#model();
    while ((await query(this.#access, FILL_QUEUE, { model, limit: FILL })).length > 0);
    const [row] = await query<{ waiting: number }>(this.#access, WAITING, { model, limit });
    return row?.waiting ?? 0;
  }

  async claim(limit: number): Promise<UnembeddedItem[]> {
    if ((await this.waiting(1)) === 0) return [];
    const { id: model } = await this.#model();
    const now = this.#clock();
    const claim = { model, now, until: now + CLAIM_MS, limit };
    const claimed = await query<{ item: number }>(this.#access, CLAIM, claim);
    const ids = claimed.map(({ item }) => item);
    const items = await query<UnembeddedItem>(this.#access, ITEMS, { ids });
    const gone = ids.filter((id) => !items.some((item) => item.id === id));
    if (gone.length > 0) await query(this.#access, GONE, { model, ids: gone });
    return items;
  }

  async release(items: readonly UnembeddedItem[]): Promise<void> {
    const { id: model } = await this.#model();
    await query(this.#access, RELEASE, { model, ids: items.map(({ id }) => id) });
  }

  async giveUp(items: readonly UnembeddedItem[]): Promise<void> {
    await this.#store(items.map((item) => ({ item, vectors: [] })));
  }

  async store(embedded: readonly EmbeddedItem[]): Promise<void> {
    const dims = embedded.flatMap(({ vectors }) => vectors).at(0)?.length;
    if (dims !== undefined) await this.#expectDims(dims);
    await this.#store(embedded);
  }

  async #store(embedded: readonly EmbeddedItem[]): Promise<void> {
    const { id: model } = await this.#model();
    // In the order in which others take their locks.
    const sorted = embedded.toSorted((one, other) => one.item.id - other.item.id);
    await postgresEngine(this.#access).note(function* () {
      for (const { item, vectors } of sorted) {
        const place = { model, item: item.id };
        if ((yield* first(CURRENT, { item: item.id, version: item.version })) === undefined) continue;
        yield* change(CLEAR, place);
        for (const [number, vector] of vectors.entries()) {
          yield* change(PUT, { ...place, number, vector: bytesOf(unitVector(vector)) });
        }
        yield* change(DONE, place);
      }
    });
  }

  async nearest(
    namespacePrefix: string[],
    text: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<NearPassage[]> {
    const { id: model } = await this.#model();
    const [numbers = []] = await this.embedder.embed([text], "query", signal);
    await this.#expectDims(numbers.length);
    const nearest = new Nearest(numbers);
    const access = this.#access.within(encodeNamespace(namespacePrefix));
    const range = { ...rangeBelow(namespacePrefix), now: this.#clock(), model, limit: PAGE };
    for (let [afterNamespace, afterKey] = ["", ""]; ;) {
      const rows = await query<PassageRow>(access, PASSAGES, { ...range, afterNamespace, afterKey });
      for (const row of rows) nearest.add(row);
      const last = rows.at(-1);
      if (last === undefined) return nearest.first(limit);
      [afterNamespace, afterKey] = [last.namespace, last.key];
    }
  }

  async touch(): Promise<void> {
    await this.#model();
    await query(this.#access, TOUCH, { name: this.embedder.name, now: this.#clock() });
  }

  async #model(): Promise<{ id: number; dims: number | null }> {
    const { name } = this.embedder;
    for (;;) {
      const [known] = await query<{ id: number; dims: number | null }>(this.#access, MODEL, { name });
      if (known !== undefined) return known;
      const use = { name, now: this.#clock() };
      await postgresEngine(this.#access).write(function* () {
        yield* change(LOCK_ITEMS);
        yield* change(USE, use);
      });
    }
  }

  /** Puts all items into the queue when a service gives vectors of another length than before. */
  async #expectDims(dims: number): Promise<void> {
    const known = await this.#model();
    if (known.dims === dims) return;
    const refill = known.dims === null ? "" : ", to_fill = (SELECT coalesce(max(id), 0) FROM store_items)";
    const sql = `UPDATE store_models SET dims = @dims${refill} WHERE id = @model`;
    await query(this.#access, sql, { model: known.id, dims });
  }
}

/** Forgets the vectors of models that nobody has used since, some in each transaction. */
export async function forgetUnusedModels(
  access: Access,
  { usedBefore, signal }: { usedBefore: number; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    const [unused] = await query<{ id: number }>(access, UNUSED, { usedBefore });
    if (unused === undefined) return;
    const forgotten = await query(access, FORGET_SOME, { model: unused.id, limit: FILL });
    if (forgotten.length === 0)
      await query(access, "DELETE FROM store_models WHERE id = @id", { id: unused.id });
  }
}
