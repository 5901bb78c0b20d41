import type { PutOperation } from "@langchain/langgraph-checkpoint";
import { versionOf } from "../../memories/item-store.ts";
import { encodeNamespace } from "../../memories/namespaces.ts";
import { gramsOf, searchedText, textToIndex } from "../../memories/text-query.ts";
import type { StoreStatements } from "./items.ts";
import type { ValueParts } from "./parts.ts";
import type { FieldVector } from "./vectors.ts";

/** A put with everything that is computed before its transaction begins. */
export interface PreparedPut {
  /** Encoded. */
  namespace: string;
  key: string;
  /** The value as it is stored in its row; `null`: the item is deleted. */
  json: string | null;
  /** The id of the long texts of the value, if it has any. */
  parts: number | null;
  /** The text that a search reads, unless it is in the value. */
  text: string | null;
  indexed: 0 | 1;
  grams: string;
  /** Milliseconds; `null` for ever. */
  ttl: number | null;
  vectors: readonly FieldVector[];
}

/** Facts about a put that its operation does not have. */
interface Facts extends Pick<PreparedPut, "parts" | "ttl" | "vectors"> {
  json: string;
}

export function preparedPut(
  { namespace: path, key, value, index }: Pick<PutOperation, "namespace" | "key" | "value" | "index">,
  { json, ...facts }: Facts,
): PreparedPut {
  const namespace = encodeNamespace(path);
  if (value === null) return { namespace, key, json: null, text: null, indexed: 0, grams: "", ...facts };
  const fields = index === false ? undefined : index;
  return {
    namespace,
    key,
    json,
    // The index reads short texts itself from where they are.
    text: facts.parts === null ? textToIndex(value, fields) : searchedText(value, fields),
    indexed: index === false ? 0 : 1,
    grams: index === false ? "" : gramsOf(`${key}\n${searchedText(value, fields)}`),
    ...facts,
  };
}

/** Writes items; each method belongs into a transaction. */
export class ItemWriter {
  readonly #sql: StoreStatements;
  readonly #parts: ValueParts;

  constructor(sql: StoreStatements, parts: ValueParts) {
    this.#sql = sql;
    this.#parts = parts;
  }

  /** Puts the item if it still has the expected version; gives the new version, or undefined when it has not. */
  putIf(put: PreparedPut, expected: string | null, now: number): string | undefined {
    const { namespace, key } = put;
    const row = this.#sql.get.get({ namespace, key, now });
    return (row === undefined ? null : versionOf(row)) === expected ? this.put(put, now) : undefined;
  }

  /** Puts or deletes the item; gives the new version, or undefined when it was deleted. */
  put(
    { namespace, key, json, parts, text, indexed, grams, ttl, vectors }: PreparedPut,
    now: number,
  ): string | undefined {
    if (json === null) {
      this.#sql.delete.run(namespace, key);
      return undefined;
    }
    // An expired item counts as deleted, so the new one gets an id of its own.
    this.#sql.deleteExpired.run({ namespace, key, now });
    const row = this.#sql.put.get({ namespace, key, value: json, parts, text, indexed, now, ttl });
    if (row === undefined) return undefined;
    if (parts !== null) this.#parts.take(parts);
    if (grams !== "") this.#sql.putGrams.run(row.id, grams);
    this.#sql.deleteVectors.run(row.id);
    for (const vector of vectors) this.#sql.putVector.run({ item: row.id, ...vector });
    return versionOf(row);
  }
}
