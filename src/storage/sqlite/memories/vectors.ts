/** The vectors of memories, and their tables. */
import type { IndexConfig } from "@langchain/langgraph-checkpoint";
import type { Statement } from "../api.ts";
import type { Database } from "../database.ts";
import type { ItemPosition } from "./items.ts";
import type { NamespaceRange } from "../../memories/namespaces.ts";
import { type UnembeddedItem, bytesOf, product, unitVector } from "../../memories/passages.ts";
import { valuesAt } from "../../memories/text-query.ts";
import type { RankedItem } from "./text-search.ts";

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

/**
 * - `store_models`: the embedding models in use. Items that are older than the model are put in the queue from
 *   `to_fill` downwards, newer and changed ones by the triggers. `dims`: length of its vectors, once known.
 * - `store_unembedded`: the queue of each model. A process that works on an item moves `due_at` ahead, so that
 *   another takes it up only if that process is gone; a change of the item moves it back.
 * - `store_passages`: vectors of length 1 as 32-bit floats, one for each passage of an item.
 */
export const EMBEDDING_TABLES = `
CREATE TABLE store_models (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  dims INTEGER,
  to_fill INTEGER NOT NULL,
  used_at INTEGER NOT NULL
) STRICT;
CREATE TABLE store_unembedded (
  model INTEGER NOT NULL,
  item INTEGER NOT NULL,
  due_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (model, item)
) WITHOUT ROWID, STRICT;
CREATE TABLE store_passages (
  item INTEGER NOT NULL,
  model INTEGER NOT NULL,
  number INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (item, model, number)
) STRICT;

CREATE TRIGGER store_items_to_embed AFTER INSERT ON store_items WHEN NEW.indexed
BEGIN INSERT INTO store_unembedded (model, item) SELECT id, NEW.id FROM store_models; END;
CREATE TRIGGER store_items_to_embed_again AFTER UPDATE OF key, value, text, indexed ON store_items
BEGIN
  DELETE FROM store_passages WHERE item = OLD.id;
  DELETE FROM store_unembedded WHERE item = OLD.id AND model IN (SELECT id FROM store_models);
  INSERT INTO store_unembedded (model, item) SELECT id, NEW.id FROM store_models WHERE NEW.indexed;
END;
CREATE TRIGGER store_items_not_to_embed AFTER DELETE ON store_items
BEGIN
  DELETE FROM store_passages WHERE item = OLD.id;
  DELETE FROM store_unembedded WHERE item = OLD.id AND model IN (SELECT id FROM store_models);
END;`;

interface ModelRow {
  id: number;
  dims: number | null;
}

interface PassageRow extends ItemPosition {
  id: number;
  /** `null` for an item that has no vector. */
  number: number | null;
  vector: Uint8Array | null;
}

export interface EmbeddingStatements {
  model: Statement<[string], ModelRow>;
  useModel: Statement<[{ name: string; now: number }]>;
  oldItems: Statement<[{ model: number; limit: number }], number>;
  enqueue: Statement<[{ model: number; item: number }]>;
  filledTo: Statement<[{ model: number; item: number }]>;
  claim: Statement<[{ model: number; now: number; until: number; limit: number }], number>;
  release: Statement<[{ model: number; item: number }]>;
  done: Statement<[{ model: number; item: number }]>;
  waiting: Statement<[{ model: number; limit: number }], number>;
  item: Statement<[{ id: number; length: number }], UnembeddedItem>;
  version: Statement<[number], number>;
  put: Statement<[{ item: number; model: number; number: number; vector: Uint8Array }]>;
  clear: Statement<[{ model: number; item: number }]>;
  setDims: Statement<[{ model: number; dims: number }]>;
  refill: Statement<[{ model: number }]>;
  passagesAfter: Statement<
    [ItemPosition & { to: string; now: number; model: number; limit: number }],
    PassageRow
  >;
}

export interface ForgettingStatements {
  unusedModel: Statement<[{ usedBefore: number }], number>;
  forgetPassages: Statement<[{ model: number; limit: number }]>;
  forgetModel: Statement<[{ model: number }]>;
  forgetQueue: Statement<[{ model: number }]>;
}

export function prepareEmbeddings(database: Database): EmbeddingStatements {
  return {
    useModel: database.prepare(`
INSERT INTO store_models (name, used_at, to_fill)
SELECT @name, @now, coalesce(max(id), 0) FROM store_items WHERE true
ON CONFLICT (name) DO UPDATE SET used_at = excluded.used_at`),
    model: database.prepare("SELECT id, dims FROM store_models WHERE name = ?"),
    oldItems: database
      .prepare<[{ model: number; limit: number }], number>(
        `
SELECT id FROM store_items WHERE id <= (SELECT to_fill FROM store_models WHERE id = @model) AND indexed
ORDER BY id DESC LIMIT @limit`,
      )
      .pluck(),
    enqueue: database.prepare("INSERT OR IGNORE INTO store_unembedded (model, item) VALUES (@model, @item)"),
    filledTo: database.prepare("UPDATE store_models SET to_fill = @item - 1 WHERE id = @model"),
    claim: database
      .prepare<[{ model: number; now: number; until: number; limit: number }], number>(
        `
UPDATE store_unembedded SET due_at = @until WHERE model = @model AND item IN (
  SELECT item FROM store_unembedded WHERE model = @model AND (due_at <= @now OR due_at > @until)
  ORDER BY item DESC LIMIT @limit
) RETURNING item`,
      )
      .pluck(),
    release: database.prepare("UPDATE store_unembedded SET due_at = 0 WHERE model = @model AND item = @item"),
    done: database.prepare("DELETE FROM store_unembedded WHERE model = @model AND item = @item"),
    waiting: database
      .prepare<[{ model: number; limit: number }], number>(
        "SELECT count(*) FROM (SELECT 1 FROM store_unembedded WHERE model = @model LIMIT @limit)",
      )
      .pluck(),
    item: database.prepare(`
SELECT id, version, key, substr(coalesce(body, ''), 1, @length) AS text FROM store_items WHERE id = @id AND indexed`),
    version: database
      .prepare<[number], number>("SELECT version FROM store_items WHERE id = ? AND indexed")
      .pluck(),
    put: database.prepare(
      "INSERT OR REPLACE INTO store_passages (item, model, number, vector) VALUES (@item, @model, @number, @vector)",
    ),
    clear: database.prepare("DELETE FROM store_passages WHERE item = @item AND model = @model"),
    setDims: database.prepare("UPDATE store_models SET dims = @dims WHERE id = @model"),
    refill: database.prepare(
      "UPDATE store_models SET to_fill = (SELECT coalesce(max(id), 0) FROM store_items) WHERE id = @model",
    ),
    passagesAfter: database.prepare(`
SELECT i.id, i.namespace, i.key, p.number, p.vector FROM (
  SELECT id, namespace, key FROM store_items
  WHERE (namespace, key) > (@namespace, @key) AND namespace < @to AND (expires_at IS NULL OR expires_at > @now)
  ORDER BY namespace, key LIMIT @limit
) AS i LEFT JOIN store_passages AS p ON p.item = i.id AND p.model = @model ORDER BY i.namespace, i.key`),
  };
}

/** Prepares the statements that delete a model with its vectors and queue. */
export function prepareForgetting(database: Database): ForgettingStatements {
  return {
    unusedModel: database
      .prepare<[{ usedBefore: number }], number>(
        "SELECT id FROM store_models WHERE used_at < @usedBefore LIMIT 1",
      )
      .pluck(),
    forgetPassages: database.prepare(
      "DELETE FROM store_passages WHERE rowid IN (SELECT rowid FROM store_passages WHERE model = @model LIMIT @limit)",
    ),
    forgetModel: database.prepare("DELETE FROM store_models WHERE id = @model"),
    forgetQueue: database.prepare("DELETE FROM store_unembedded WHERE model = @model"),
  };
}
