/** A store whose `search` finds items by their meaning, as LangGraph's stores with an `index` do. */
import type { IndexConfig } from "@langchain/langgraph-checkpoint";
import { ownTurn } from "../../../core/concurrency.ts";
import type { MemoryDatabase, StorePut } from "../../memories/contracts.ts";
import { AFTER, IN_ORDER, type ItemPosition, rangeStretch } from "../../memories/items.ts";
import type { NamespaceRange } from "../../memories/namespaces.ts";
import { vectorBytes, product, unitVector } from "../../memories/passages.ts";
import { valuesAt } from "../../memories/text-query.ts";
import { type Steps, all, change } from "../../../runs/sql/steps.ts";

/** LangGraph's `IndexConfig`, or with a function for its model. */
export type VectorIndexConfig = Pick<IndexConfig, "dims" | "fields"> &
  ({ embeddings: Pick<IndexConfig["embeddings"], "embedDocuments" | "embedQuery"> } | { embed: Embed });

/** One vector of `dims` numbers for each text, in their order. */
export type Embed = (texts: string[]) => Promise<number[][]>;

/**
 * Adds vectors of items: 32-bit floats of length 1, compared with each query one by one. That is exact and needs no
 * index; a search takes time in proportion to the vectors below its prefix.
 */
export function withVectors(memories: MemoryDatabase, config: VectorIndexConfig): MemoryDatabase {
  const { dims, fields = ["$"] } = config;
  const embed =
    "embed" in config ? config.embed : (texts: string[]) => config.embeddings.embedDocuments(texts);
  const embedQuery = async (text: string): Promise<number[] | undefined> =>
    "embed" in config ? (await config.embed([text]))[0] : config.embeddings.embedQuery(text);
  return {
    ...memories,
    async index(puts) {
      const texts = puts.map((put) => indexedTexts(put, fields));
      const distinct = [...new Set(texts.flat().map(({ text }) => text))];
      const vectors = distinct.length === 0 ? [] : await embed(distinct);
      const known = new Map(distinct.map((text, index) => [text, vectorBytes(unit(vectors[index], dims))]));
      const indexed = await memories.index(puts);
      return indexed.map(({ values, after }, index) => ({
        values,
        *after(item): Steps<void> {
          yield* after?.(item) ?? [];
          yield* change("DELETE FROM store_vectors WHERE item = @item", { item });
          for (const { field, text } of texts[index] ?? [])
            yield* change(
              "INSERT INTO store_vectors (item, field, vector) VALUES (@item, @field, @vector) ON CONFLICT DO NOTHING",
              { item, field, vector: known.get(text) ?? null },
            );
        },
      }));
    },
    async byMeaning(range, query, now) {
      return rank(memories, range, now, unit(await embedQuery(query), dims));
    },
  };
}

/** The items of the range, those most like the query first; those without a vector come last, without a score. */
async function rank({ engine }: MemoryDatabase, range: NamespaceRange, now: number, wanted: Float32Array) {
  type Row = ItemPosition & { id: number; vector: Uint8Array | null };
  const best = new Map<number, number | undefined>();
  const values = { ...rangeStretch(range), now, limit: 128 };
  for (;;) {
    const sql = `
SELECT i.id, i.namespace, i.key, v.vector
FROM (SELECT id, namespace, key FROM store_items WHERE ${AFTER} ${IN_ORDER}) AS i
LEFT JOIN store_vectors AS v ON v.item = i.id ORDER BY i.namespace, i.key`;
    const rows = await engine.read(() => all<Row>(sql, values));
    for (const { id, vector } of rows) {
      const score = vector === null ? undefined : product(wanted, vector);
      const known = best.get(id);
      best.set(id, known === undefined || (score ?? -Infinity) > known ? score : known);
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    Object.assign(values, { namespace: last.namespace, key: last.key });
    await ownTurn();
  }
  const ranked = [...best].map(([id, score]) => ({ id, ...(score === undefined ? {} : { score }) }));
  return ranked.sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity) || 0);
}

function unit(vector: readonly number[] | undefined, dims: number): Float32Array {
  if (vector?.length === dims) return unitVector(vector);
  throw new TypeError(
    `The embedding model gave ${vector?.length ?? 0} numbers instead of ${dims}: set index.dims to that number.`,
  );
}

function indexedTexts({ value, index }: StorePut, fields: readonly string[]) {
  if (value === null || index === false) return [];
  return (index ?? fields).flatMap((path) => {
    const found = valuesAt(value, path).filter((one) => one !== null && one !== undefined);
    const texts = found.map((one) => (typeof one === "string" ? one : JSON.stringify(one, null, 2)));
    return texts.map((text, at) => ({ field: texts.length > 1 ? `${path}.${at}` : path, text }));
  });
}
