import type { Transaction } from "better-sqlite3";
import type { PutOperation } from "@langchain/langgraph-checkpoint";
import type { Database } from "./database.ts";
import { gramsOf } from "./store-grams.ts";
import { encodeNamespace } from "./store-match.ts";
import type { ValueParts } from "./store-parts.ts";
import type { ItemRow, StoreStatements } from "./store-sql.ts";
import { searchedText, textToIndex } from "./store-text.ts";
import type { FieldVector } from "./store-vectors.ts";

/** A put with all that is known before its transaction begins. */
export interface PreparedPut extends PutOperation {
  /** Milliseconds; `null` for ever. */
  ttl: number | null;
  /** The value as it is stored, and the id of its long texts if it has any. */
  json: string;
  parts: number | null;
  vectors: readonly FieldVector[];
}

/** The writes of a store, each list of them in one transaction. */
export class ItemWriter {
  readonly #sql: StoreStatements;
  readonly #parts: ValueParts;
  readonly #writeAll: Transaction<(puts: readonly PreparedPut[], now: number) => void>;
  readonly #writeIf: Transaction<
    (put: PreparedPut, expected: string | null, now: number) => string | undefined
  >;

  constructor(database: Database, sql: StoreStatements, parts: ValueParts) {
    this.#sql = sql;
    this.#parts = parts;
    this.#writeAll = database.transaction((puts, now) => {
      for (const put of puts) this.#write(put, now);
    });
    this.#writeIf = database.transaction((put, expected, now) => {
      const { namespace, key } = put;
      const row = sql.get.get({ namespace: encodeNamespace(namespace), key, now });
      return (row === undefined ? null : versionOf(row)) === expected ? this.#write(put, now) : undefined;
    });
  }

  all(puts: readonly PreparedPut[], now: number): void {
    this.#writeAll.immediate(puts, now);
  }

  /** The new version, or undefined when the item is not the expected version any more. */
  putIf(put: PreparedPut, expected: string | null, now: number): string | undefined {
    return this.#writeIf.immediate(put, expected, now);
  }

  #write(
    { namespace, key, value, json, parts, index, ttl, vectors }: PreparedPut,
    now: number,
  ): string | undefined {
    const place = { namespace: encodeNamespace(namespace), key, now };
    if (value === null) {
      this.#sql.delete.run(place.namespace, key);
      return undefined;
    }
    const fields = index === false ? undefined : index;
    // An item that has expired is not there: what is put in its place is new.
    this.#sql.deleteExpired.run(place);
    const row = this.#sql.put.get({
      ...place,
      value: json,
      parts,
      // The index reads short texts itself from where they are.
      text: parts === null ? textToIndex(value, fields) : searchedText(value, fields),
      indexed: index === false ? 0 : 1,
      ttl,
    });
    if (row === undefined) return undefined;
    if (parts !== null) this.#parts.take(parts);
    const grams = index === false ? "" : gramsOf(`${key}\n${searchedText(value, fields)}`);
    if (grams !== "") this.#sql.putGrams.run(row.id, grams);
    this.#sql.deleteVectors.run(row.id);
    for (const vector of vectors) this.#sql.putVector.run({ item: row.id, ...vector });
    return versionOf(row);
  }
}

export const versionOf = ({ id, version }: Pick<ItemRow, "id" | "version">): string => `${id}.${version}`;
