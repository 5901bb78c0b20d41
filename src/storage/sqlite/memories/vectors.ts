import type { IndexConfig } from "@langchain/langgraph-checkpoint";
import type { Statement } from "better-sqlite3";
import type { Database } from "../database.ts";
import type { ItemPosition, NamespaceRange } from "./items.ts";
import { type RankedItem, valuesAt } from "./text-search.ts";

/** A vector of length 1: the product of two is their cosine, from -1 to 1. */
export function unitVector(numbers: readonly number[]): Float32Array {
  let squares = 0;
  for (const number of numbers) squares += number * number;
  const length = Math.sqrt(squares) || 1;
  return Float32Array.from(numbers, (number) => number / length);
}

export const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Gives the product of two vectors; undefined when their lengths differ, as those of two models do. */
export function product(wanted: Float32Array, stored: Uint8Array): number | undefined {
  if (stored.byteLength !== wanted.byteLength) return undefined;
  // SQLite's bytes may begin anywhere; floats begin at multiples of their size.
  const aligned = stored.byteOffset % 4 === 0 ? stored : stored.slice();
  const other = new Float32Array(aligned.buffer, aligned.byteOffset, wanted.length);
  let sum = 0;
  for (let index = 0; index < wanted.length; index += 1) sum += (wanted[index] ?? 0) * (other[index] ?? 0);
  return sum;
}

/** How items are found by their meaning: LangGraph's `IndexConfig`, or with a function for its model. */
export type VectorIndexConfig = Pick<IndexConfig, "dims" | "fields"> &
  ({ embeddings: Pick<IndexConfig["embeddings"], "embedDocuments" | "embedQuery"> } | { embed: Embed });

/** One vector of `dims` numbers for each text, in their order. */
export type Embed = (texts: string[]) => Promise<number[][]>;

/** A text of an item, with the path it was found at. */
export interface FieldVector {
  field: string;
  vector: Uint8Array;
}

type VectorRow = ItemPosition & { id: number; vector: Uint8Array | null };
type Scan = ItemPosition & { to: string; now: number; limit: number };

/** Vectors compared between two turns of the event loop. */
const VECTORS_PER_TURN = 128;

/**
 * Vectors of items: 32-bit floats of length 1, compared with each query one by one. That is exact and
 * needs no index; a search takes time in proportion to the vectors below its prefix.
 */
export class VectorIndex {
  readonly #dims: number;
  readonly #fields: readonly string[];
  readonly #embedDocuments: Embed;
  readonly #embedQuery: (text: string) => Promise<number[]>;
  readonly #scan: Statement<[Scan], VectorRow>;

  constructor(database: Database, config: VectorIndexConfig) {
    const { dims, fields = ["$"] } = config;
    this.#dims = dims;
    this.#fields = fields;
    this.#embedDocuments =
      "embed" in config ? config.embed : (texts) => config.embeddings.embedDocuments(texts);
    this.#embedQuery =
      "embed" in config
        ? async (text) => (await config.embed([text]))[0] ?? []
        : (text) => config.embeddings.embedQuery(text);
    this.#scan = database.prepare(`
SELECT i.id, i.namespace, i.key, v.vector FROM (
  SELECT id, namespace, key FROM store_items
  WHERE (namespace, key) > (@namespace, @key) AND namespace < @to AND (expires_at IS NULL OR expires_at > @now)
  ORDER BY namespace, key LIMIT @limit
) AS i LEFT JOIN store_vectors AS v ON v.item = i.id ORDER BY i.namespace, i.key`);
  }

  /** The vectors of several values at once, each text embedded once. `index` as in a put. */
  async vectorsOf(
    values: readonly { value: Record<string, unknown>; index: false | string[] | undefined }[],
  ): Promise<FieldVector[][]> {
    const texts = values.map(({ value, index }) =>
      index === false ? [] : (index ?? this.#fields).flatMap((field) => textsAt(value, field)),
    );
    const distinct = [...new Set(texts.flat().map(({ text }) => text))];
    const vectors = distinct.length === 0 ? [] : await this.#embedDocuments(distinct);
    const known = new Map(distinct.map((text, index) => [text, this.#unit(vectors[index])]));
    return texts.map((found) =>
      found.flatMap(({ field, text }) => {
        const vector = known.get(text);
        return vector === undefined ? [] : [{ field, vector: bytesOf(vector) }];
      }),
    );
  }

  /** The items of the range, those most like the query first; those without a vector come last, without a score. */
  async rank(
    range: NamespaceRange,
    query: string,
    now: number,
  ): Promise<(Pick<RankedItem, "id"> & Partial<RankedItem>)[]> {
    const wanted = this.#unit(await this.#embedQuery(query));
    const best = new Map<number, number | undefined>();
    let after: ItemPosition = { namespace: range.from.slice(0, -1), key: "" };
    for (;;) {
      const rows = this.#scan.all({ ...after, to: range.to, now, limit: VECTORS_PER_TURN });
      for (const { id, vector } of rows) {
        const score = vector === null ? undefined : product(wanted, vector);
        const known = best.get(id);
        best.set(id, known === undefined || (score ?? -Infinity) > known ? score : known);
      }
      const last = rows.at(-1);
      if (last === undefined) break;
      after = { namespace: last.namespace, key: last.key };
      await new Promise(setImmediate);
    }
    const ranked = [...best].map(([id, score]) => ({ id, ...(score === undefined ? {} : { score }) }));
    return ranked.sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity) || 0);
  }

  #unit(vector: readonly number[] | undefined): Float32Array {
    if (vector?.length !== this.#dims) {
      throw new TypeError(
        `The embedding model gave ${vector?.length ?? 0} numbers instead of ${this.#dims}: set index.dims to what it gives.`,
      );
    }
    return unitVector(vector);
  }
}

function textsAt(value: Record<string, unknown>, path: string): { field: string; text: string }[] {
  const found = valuesAt(value, path).filter((one) => one !== null && one !== undefined);
  const texts = found.map((one) => (typeof one === "string" ? one : JSON.stringify(one, null, 2)));
  return texts.map((text, index) => ({ field: texts.length > 1 ? `${path}.${index}` : path, text }));
}
