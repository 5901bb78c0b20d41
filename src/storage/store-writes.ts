import type { Transaction } from "better-sqlite3";
import type { PutOperation } from "@langchain/langgraph-checkpoint";
import type { Database } from "./database.ts";
import { gramsOf } from "./store-grams.ts";
import { encodeNamespace } from "./store-match.ts";
import type { ItemRow, StoreStatements } from "./store-sql.ts";
import { searchedText, textToIndex } from "./store-text.ts";
import type { FieldVector } from "./store-vectors.ts";

/** A put with all that is known before its transaction begins. */
export interface PreparedPut extends PutOperation {
  /** Milliseconds; `null` for ever. */
  ttl: number | null;
  vectors: readonly FieldVector[];
  now: number;
}

/** The writes of a store, each list of them in one transaction. */
export class ItemWriter {
  readonly #sql: StoreStatements;
  readonly #writeAll: Transaction<(puts: readonly PreparedPut[]) => void>;
  readonly #writeIf: Transaction<(put: PreparedPut, expected: string | null) => string | undefined>;

  constructor(database: Database, sql: StoreStatements) {
    this.#sql = sql;
    this.#writeAll = database.transaction((puts) => {
      for (const put of puts) this.#write(put);
    });
    this.#writeIf = database.transaction((put, expected) => {
      const { namespace, key, now } = put;
      const row = sql.get.get({ namespace: encodeNamespace(namespace), key, now });
      return (row === undefined ? null : versionOf(row)) === expected ? this.#write(put) : undefined;
    });
  }

  all(puts: readonly PreparedPut[]): void {
    this.#writeAll.immediate(puts);
  }

  /** The new version, or undefined when the item is not the expected version any more. */
  putIf(put: PreparedPut, expected: string | null): string | undefined {
    return this.#writeIf.immediate(put, expected);
  }

  #write({ namespace, key, value, index, ttl, vectors, now }: PreparedPut): string | undefined {
    const place = { namespace: encodeNamespace(namespace), key, now };
    if (value === null) {
      this.#sql.delete.run(place.namespace, key);
      return undefined;
    }
    // An item that has expired is not there: what is put in its place is new.
    this.#sql.deleteExpired.run(place);
    const row = this.#sql.put.get({
      ...place,
      value: JSON.stringify(value),
      text: textToIndex(value, index === false ? undefined : index),
      indexed: index === false ? 0 : 1,
      ttl,
    });
    if (row === undefined) return undefined;
    const grams = index === false ? "" : gramsOf(`${key}\n${searchedText(value, index)}`);
    if (grams !== "") this.#sql.putGrams.run(row.id, grams);
    this.#sql.deleteVectors.run(row.id);
    for (const vector of vectors) this.#sql.putVector.run({ item: row.id, ...vector });
    return versionOf(row);
  }
}

export const versionOf = ({ id, version }: Pick<ItemRow, "id" | "version">): string => `${id}.${version}`;
