import type { DeltaChannelHistory, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Statement } from "../api.ts";
import { type WriteRow, revive } from "../../checkpoints/writes.ts";
import type { Database } from "../database.ts";
import { type PackedCheckpoint, type PackedCheckpoints, bytesOf } from "./packed-checkpoints.ts";

/** One query follows at most so many channels, because each takes a bit of a 64-bit integer. */
export const CHANNELS_PER_QUERY = 32;
/** A write; without a task the value a channel starts from (as JSON text); without a channel the end. */
interface HistoryRow extends Omit<WriteRow, "task_id" | "channel"> {
  task_id: string | null;
  channel: string | null;
}

interface Target {
  thread: string;
  namespace: string;
  /** The checkpoint where it begins; `null` for the newest. */
  checkpoint: string | null;
}
type Query = Statement<[Target & { channels: string }], HistoryRow>;

/** The checkpoint whose history is wanted, without its own writes. */
const FROM_CHECKPOINT = `
SELECT 0, checkpoint_id, parent_checkpoint_id, (SELECT sum(bit) FROM wanted), 0
FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace
  AND (@checkpoint IS NULL OR checkpoint_id = @checkpoint)
ORDER BY checkpoint_id DESC LIMIT 1`;

/** Stands for a child of the checkpoint. */
const FROM_PARENT = "SELECT 0, NULL, @checkpoint, (SELECT sum(bit) FROM wanted), 0 WHERE @namespace = ''";

/**
 * Walks the ancestors of a checkpoint, nearest first, until every wanted channel has met one that stores
 * its value. Bit n of `open` says that channel n still looks for it; `filled` has the bits of those found at
 * this ancestor, whose own writes still count.
 *
 * Answers the parent it ended before (none when the walk is complete), then the seeds, then the writes from
 * the oldest ancestor on, within one ancestor by task and position.
 */
const walk = (base: string): string => `
WITH RECURSIVE
wanted (bit, channel) AS (SELECT 1 << key, value FROM json_each(@channels)),
chain (depth, id, parent, open, filled) AS (
  SELECT * FROM (${base})
  UNION ALL
  SELECT chain.depth + 1, c.checkpoint_id, c.parent_checkpoint_id, chain.open & ~chain.filled, (
    SELECT coalesce(sum(wanted.bit), 0)
    FROM json_each(CAST(c.checkpoint AS TEXT), '$.channel_values') AS stored
    JOIN wanted ON wanted.channel = stored.key
  )
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.parent
  WHERE chain.open & ~chain.filled <> 0
)
SELECT * FROM (
  SELECT NULL AS task_id, NULL AS channel, NULL AS type,
    CASE WHEN chain.open & ~chain.filled <> 0 THEN chain.parent END AS value, NULL AS depth, NULL AS idx
  FROM chain ORDER BY chain.depth DESC LIMIT 1
)
UNION ALL
SELECT NULL AS task_id, wanted.channel, c.type, (
  SELECT CAST(c.checkpoint AS TEXT) -> stored.fullkey
  FROM json_each(CAST(c.checkpoint AS TEXT), '$.channel_values') AS stored
  WHERE stored.key = wanted.channel
) AS value, NULL AS depth, NULL AS idx
FROM chain JOIN wanted ON chain.open & chain.filled & wanted.bit <> 0
JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.id
UNION ALL
SELECT * FROM (
  SELECT w.task_id, w.channel, w.type, w.value, chain.depth, w.idx
  FROM chain CROSS JOIN writes AS w
    ON w.thread_id = @thread AND w.checkpoint_ns = @namespace AND w.checkpoint_id = chain.id
  JOIN wanted ON wanted.channel = w.channel AND chain.open & wanted.bit <> 0
  WHERE chain.depth > 0
  ORDER BY chain.depth DESC, w.task_id, w.idx
)`;

interface Seed {
  channel: string;
  type: string | null;
  value: Uint8Array | string | null;
}

/** The parts of delta channels at a checkpoint: a stored value and all that was written since. */
export class DeltaHistory {
  readonly #fromCheckpoint: Query;
  readonly #fromParent: Query;
  readonly #packed: PackedCheckpoints;

  constructor(database: Database, packed: PackedCheckpoints) {
    this.#fromCheckpoint = database.prepare(walk(FROM_CHECKPOINT));
    this.#fromParent = database.prepare(walk(FROM_PARENT));
    this.#packed = packed;
  }

  /** `undefined` when there is no such checkpoint. `channels`: at most `CHANNELS_PER_QUERY`, each once. */
  async of(
    target: Target,
    channels: readonly string[],
    serde: SerializerProtocol,
  ): Promise<Record<string, DeltaChannelHistory> | undefined> {
    const found = await this.#collect(target, channels);
    if (!found) return undefined;
    const histories = new Map(
      channels.map((channel): [string, DeltaChannelHistory] => [channel, { writes: [] }]),
    );
    for (const { channel, type, value } of found.seeds) {
      const history = histories.get(channel);
      if (history !== undefined) history.seed = await serde.loadsTyped(type ?? "json", value ?? "");
    }
    for (const write of await revive(found.writes, serde)) histories.get(write[1])?.writes.push(write);
    return Object.fromEntries(histories);
  }

  async #collect(
    target: Target,
    channels: readonly string[],
  ): Promise<{ seeds: Seed[]; writes: WriteRow[] } | undefined> {
    const open = new Set(channels);
    const seeds: Seed[] = [];
    /** Nearest part first. */
    const parts: WriteRow[][] = [];
    let query = this.#fromCheckpoint;
    let checkpoint = target.checkpoint;
    let missing: string | undefined;
    for (;;) {
      const [end, ...rows] = query.all({ ...target, checkpoint, channels: JSON.stringify([...open]) });
      if (end === undefined) return undefined;
      parts.push(rows.filter((row): row is HistoryRow & WriteRow => row.task_id !== null));
      for (const { task_id, channel, type, value } of rows) {
        if (task_id !== null || channel === null) continue;
        seeds.push({ channel, type, value });
        open.delete(channel);
      }
      const parent = typeof end.value === "string" && target.namespace === "" ? end.value : undefined;
      if (parent === undefined || parent === missing) break;
      const packed = await this.#packed.around(target.thread, parent);
      checkpoint = packed ? readPacked(packed, parent, open, seeds, parts) : parent;
      if (checkpoint === null || open.size === 0) break;
      // A checkpoint that is neither in a row nor in a pack may have been unpacked in between.
      missing = packed ? undefined : parent;
      query = this.#fromParent;
    }
    return { seeds, writes: parts.reverse().flat() };
  }
}

/** Follows the history through one pack; gives the checkpoint to go on with. */
function readPacked(
  packed: ReadonlyMap<string, PackedCheckpoint>,
  from: string,
  open: Set<string>,
  seeds: Seed[],
  parts: WriteRow[][],
): string | null {
  let id: string | null = from;
  for (let step = packed.get(from); step !== undefined && open.size > 0;) {
    parts.push(
      step.writes
        .filter(([, , channel]) => open.has(channel))
        .map(([task_id, , channel, type, value]) => ({
          task_id,
          channel,
          type,
          value: type === "json" ? value : bytesOf(type, value),
        })),
    );
    // LangGraph wrote these values; for rows the same question is asked in SQL.
    const { channel_values = {} } = JSON.parse(step.checkpoint) as { channel_values?: object };
    for (const [channel, value] of Object.entries(channel_values)) {
      if (open.delete(channel)) seeds.push({ channel, type: "json", value: JSON.stringify(value) });
    }
    id = step.parent;
    step = id === null ? undefined : packed.get(id);
  }
  return id;
}
