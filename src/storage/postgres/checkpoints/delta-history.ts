/** Reads delta channels: the value that an ancestor stores, and the writes since. */
import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { GraphAddress } from "../../checkpoints/address.ts";
import type { LargeValues } from "../../checkpoints/large-values.ts";
import { type WriteRow, revive } from "../../checkpoints/writes.ts";
import type { Access } from "../access.ts";
import { query } from "../engine.ts";
import { PARALLEL_READS } from "./blobs.ts";

/** The ancestors of a checkpoint up to the nearest with a value of the channel, oldest first, with their writes. */
const HISTORY = `
WITH RECURSIVE chain (channel, depth, id, parent, found) AS (
  (SELECT wanted, 0, checkpoint_id, parent_checkpoint_id, false
  FROM unnest(@channels::text[]) AS wanted, (
    SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints
    WHERE thread_id = @thread AND checkpoint_ns = @namespace AND (@id::text IS NULL OR checkpoint_id = @id)
    ORDER BY seq DESC LIMIT 1) AS newest)
  UNION ALL
  SELECT chain.channel, depth + 1, c.checkpoint_id, c.parent_checkpoint_id, chain.channel = ANY (c.channels)
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.parent
  WHERE NOT found
)
SELECT chain.channel, chain.id, found, w.task_id, w.type, w.value
FROM chain LEFT JOIN checkpoint_writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = @namespace AND w.checkpoint_id = chain.id
    AND w.channel = chain.channel
WHERE depth > 0 AND (found OR w.task_id IS NOT NULL) ORDER BY depth DESC, w.task_id, w.idx`;
/** A write, or a checkpoint that stores the value of a channel and has no write to it. */
type HistoryRow = Omit<WriteRow, "task_id"> & { id: string; found: boolean; task_id: string | null };

/** Returns histories without the writes at the checkpoint itself. A null `id` is the newest one. */
export async function deltaHistories(
  access: Access,
  large: LargeValues,
  { thread, namespace, id }: GraphAddress & { id: string | null },
  channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
  const histories = new Map(channels.map((name): [string, DeltaChannelHistory] => [name, { writes: [] }]));
  const place = { thread, namespace };
  const rows = await query<HistoryRow>(access, HISTORY, { ...place, id, channels });
  const seeds = new Map<string, string[]>();
  for (const { id: seed, found, channel } of rows)
    if (found) seeds.set(seed, [...(seeds.get(seed) ?? []), channel]);
  const sql = `
SELECT checkpoint_id AS id, type, checkpoint FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = ANY (@ids::text[])`;
  const stored = await query<{ id: string; type: string; checkpoint: Uint8Array }>(access, sql, {
    ...place,
    ids: [...seeds.keys()],
  });
  for (const { id: seed, type, checkpoint } of stored) {
    const { channel_values: values } = await large.loadsCheckpoint(type, checkpoint, seeds.get(seed));
    for (const channel of seeds.get(seed) ?? []) {
      const history = histories.get(channel);
      if (history !== undefined) history.seed = values[channel];
    }
  }
  const isWrite = (row: HistoryRow): row is HistoryRow & WriteRow => row.task_id !== null;
  const writes = await revive(rows.filter(isWrite), large, PARALLEL_READS);
  for (const write of writes) histories.get(write[1])?.writes.push(write);
  return Object.fromEntries(histories);
}
