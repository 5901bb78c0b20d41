import { type PendingWrite, type SerializerProtocol, WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import type { WriteAddress, WriteFields } from "./checkpoint-sql.ts";

/** Place of the value in the fields of a write. */
const VALUE = 7;

/** The rows of what one task wrote. */
export function encodeWrites(
  serde: SerializerProtocol,
  address: WriteAddress,
  writes: readonly PendingWrite[],
): Promise<WriteFields[]> {
  return Promise.all(
    writes.map(async ([channel, value], index): Promise<WriteFields> => {
      const [type, data] = await serde.dumpsTyped(value);
      return [...address, WRITES_IDX_MAP[channel] ?? index, channel, type, data];
    }),
  );
}

export const bytesOfWrites = (rows: readonly WriteFields[]): number =>
  rows.reduce((sum, row) => sum + row[VALUE].length, 0);
