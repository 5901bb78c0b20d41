import { type PendingWrite, WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import type { WriteAddress, WriteFields } from "./checkpoint-sql.ts";

/** A serialised value. */
export type Encoded = [type: string, data: Uint8Array];

/** Writes of one task on their way into the database. */
export interface Result {
  encoded: WriteFields[] | Promise<WriteFields[]>;
  /** Why they could not be stored. */
  failure?: unknown;
}

/** Place of the value in the fields of a write. */
const VALUE = 7;

/** The rows of what one task wrote. */
export function encodeWrites(
  dumped: (value: unknown) => Encoded | Promise<Encoded>,
  address: WriteAddress,
  writes: readonly PendingWrite[],
): WriteFields[] | Promise<WriteFields[]> {
  const rowsOf = (values: readonly Encoded[]): WriteFields[] =>
    writes.map(([channel], index) => {
      const [type, data] = values[index] ?? ["", new Uint8Array()];
      return [...address, WRITES_IDX_MAP[channel] ?? index, channel, type, data];
    });
  const values = allOf(writes.map(([, value]) => dumped(value)));
  return values instanceof Promise ? values.then(rowsOf) : rowsOf(values);
}

type Settled<Values extends readonly unknown[]> = { -readonly [Key in keyof Values]: Awaited<Values[Key]> };

/** All of `values`; at once where none is waited for, as hardly any is: promises are much of what a step costs. */
export function allOf<Values extends readonly unknown[]>(
  values: Values,
): Settled<Values> | Promise<Settled<Values>> {
  // Without a promise among them they are settled.
  return values.some((value) => value instanceof Promise)
    ? Promise.all(values)
    : (values as unknown as Settled<Values>);
}

export const bytesOfWrites = (rows: readonly WriteFields[]): number =>
  rows.reduce((sum, row) => sum + row[VALUE].length, 0);
