/** Addresses of LangGraph's checkpoints and writes. */
import type { RunnableConfig } from "@langchain/core/runnables";

/** The rows that a configuration of LangGraph points to. */
export interface CheckpointAddress {
  threadId?: string;
  namespace: string;
  checkpointId?: string;
}

export function readAddress(config: RunnableConfig): CheckpointAddress {
  const { thread_id, checkpoint_ns, checkpoint_id }: Record<string, unknown> = config.configurable ?? {};
  return {
    ...(isName(thread_id) ? { threadId: String(thread_id) } : {}),
    namespace: typeof checkpoint_ns === "string" ? checkpoint_ns : "",
    ...(isName(checkpoint_id) ? { checkpointId: String(checkpoint_id) } : {}),
  };
}

const isName = (value: unknown): value is string | number =>
  (typeof value === "string" && value !== "") || typeof value === "number";

/** Makes the error for an address that lacks a part. */
export const missingField = (field: string): Error =>
  new Error(`Cannot store a checkpoint: config.configurable.${field} is missing.`);

export interface GraphAddress {
  thread: string;
  namespace: string;
}

/** The configuration that points to a checkpoint. */
export const configAt = ({ thread, namespace }: GraphAddress, id: string | undefined): RunnableConfig => ({
  configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: id },
});

/** The time in an id of a checkpoint. LangGraph makes ids as UUIDs of version 6. */
const TIME_ID = /^([\da-f]{8})-([\da-f]{4})-6([\da-f]{3})-[\da-f]{4}-[\da-f]{12}$/;

/** Units of 100 ns from the 15th of October 1582, where these ids begin, to 1970. */
const EPOCH = 0x01b21dd213814000n;

/** Milliseconds since the epoch; `NaN` for other ids. */
export function timeOfId(id: string): number {
  const [, high, middle, low] = TIME_ID.exec(id) ?? [];
  return high === undefined ? Number.NaN : Number((BigInt(`0x${high}${middle}${low}`) - EPOCH) / 10_000n);
}
