import { type PendingWrite, WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import type { WriteAddress, WriteFields } from "./checkpoint-sql.ts";

/** Writes of one task on their way into the database. */
export interface Result {
  encoded: Promise<WriteFields[]>;
  /** Why they could not be stored. */
  failure?: unknown;
}

/** Place of the value in the fields of a write. */
const VALUE = 7;

/** The rows of what one task wrote. */
export async function encodeWrites(
  dumped: (value: unknown) => Promise<[type: string, data: Uint8Array]>,
  address: WriteAddress,
  writes: readonly PendingWrite[],
): Promise<WriteFields[]> {
  const rows = writes.map(([channel, value], index) =>
    dumped(value).then(([type, data]): WriteFields => [
      ...address,
      WRITES_IDX_MAP[channel] ?? index,
      channel,
      type,
      data,
    ]),
  );
  return Promise.all(rows);
}

export const bytesOfWrites = (rows: readonly WriteFields[]): number =>
  rows.reduce((sum, row) => sum + row[VALUE].length, 0);
