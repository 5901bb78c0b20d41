/** Reads delta channels: the value that an ancestor stores, and the writes since. */
import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { GraphAddress } from "../../checkpoints/address.ts";
import type { LargeValues } from "../../checkpoints/large-values.ts";
import { type WriteRow, revive } from "../../checkpoints/writes.ts";
import type { Access } from "../access.ts";
import { query } from "../engine.ts";
import { AT_ONCE } from "./blobs.ts";

/** Checkpoints from the named or the newest one back, some at a time. A parent always comes behind its children. */
const BEFORE = `
SELECT checkpoint_id AS id, parent_checkpoint_id AS parent, channels, seq FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND seq < @below
  AND (@id::text IS NULL OR seq <= (
    SELECT seq FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id))
ORDER BY seq DESC LIMIT @limit`;
const STORED = `
SELECT checkpoint_id AS id, type, checkpoint FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = ANY (@ids::text[])`;
const WRITTEN = `
SELECT checkpoint_id AS id, task_id, channel, type, value FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = ANY (@ids::text[])
  AND channel = ANY (@channels::text[])
ORDER BY task_id, idx`;

/** An ancestor of a checkpoint. */
interface Ancestor {
  id: string;
  /** Channels that still look for a stored value; what was written here is a part of theirs. */
  open: ReadonlySet<string>;
  /** Those of them whose value it stores. */
  found: string[];
}

/** Checkpoints that one query reads. */
const ANCESTORS = 500;

/** The checkpoint whose history is wanted; `id` is null for the newest. */
type Target = GraphAddress & { id: string | null };

/** Gives the histories of these channels, without what was written at the checkpoint itself. */
export async function deltaHistories(
  access: Access,
  large: LargeValues,
  target: Target,
  channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
  const histories = new Map(channels.map((name): [string, DeltaChannelHistory] => [name, { writes: [] }]));
  const ancestors = await ancestorsOf(access, target, channels);
  const { thread, namespace } = target;
  const seeds = ancestors.filter(({ found }) => found.length > 0).map(({ id }) => id);
  const stored = await query<{ id: string; type: string; checkpoint: Uint8Array }>(access, STORED, {
    thread,
    namespace,
    ids: seeds,
  });
  for (const { id, type, checkpoint } of stored) {
    const found = ancestors.find((one) => one.id === id)?.found ?? [];
    const { channel_values: values } = await large.loadsCheckpoint(type, checkpoint, found);
    for (const channel of found) {
      const history = histories.get(channel);
      if (history !== undefined) history.seed = values[channel];
    }
  }
  const ids = ancestors.map(({ id }) => id);
  const rows = await query<WriteRow & { id: string }>(access, WRITTEN, { thread, namespace, ids, channels });
  const byPlace = new Map(ids.map((id): [string, WriteRow[]] => [id, []]));
  for (const row of rows) byPlace.get(row.id)?.push(row);
  const writes = ancestors
    .toReversed()
    .flatMap(({ id, open }) => (byPlace.get(id) ?? []).filter(({ channel }) => open.has(channel)));
  for (const write of await revive(writes, large, AT_ONCE)) histories.get(write[1])?.writes.push(write);
  return Object.fromEntries(histories);
}

/** The ancestors of a checkpoint, nearest first, until each of the channels has met one that stores its value. */
async function ancestorsOf(access: Access, target: Target, channels: readonly string[]): Promise<Ancestor[]> {
  const ancestors: Ancestor[] = [];
  const open = new Set(channels);
  let wanted: string | null | undefined;
  for (let below = Number.MAX_SAFE_INTEGER; ;) {
    const rows = await query<{ id: string; parent: string | null; channels: string[]; seq: number }>(
      access,
      BEFORE,
      { ...target, below, limit: ANCESTORS },
    );
    for (const { id, parent, channels: stored } of rows) {
      // The first is the checkpoint itself, whose own value and writes are not asked for.
      if (wanted !== undefined && id !== wanted) continue;
      if (wanted !== undefined) {
        const found = stored.filter((channel) => open.has(channel));
        ancestors.push({ id, open: new Set(open), found });
        for (const channel of found) open.delete(channel);
      }
      wanted = parent;
      if (wanted === null || open.size === 0) return ancestors;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < ANCESTORS) return ancestors;
    below = last.seq;
  }
}
