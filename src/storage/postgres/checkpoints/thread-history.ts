/** The history of threads: which steps are kept, and copies of a thread as it was at one of them. */
import type { ThreadStep, WrittenMessages } from "../../../runs/thread-ports.ts";
import { mapAtMost } from "../../../core/concurrency.ts";
import { type GraphAddress, timeOfId } from "../../checkpoints/address.ts";
import type { LargeValues } from "../../checkpoints/large-values.ts";
import { mentions } from "../../checkpoints/serializer.ts";
import { type WriteRow, UNFINISHED_CHANNELS, revive } from "../../checkpoints/writes.ts";
import { change, first } from "../../sql/steps.ts";
import { type Access, postgresEngine, query } from "../engine.ts";
import { PARALLEL_READS } from "./blobs.ts";
import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";

/** The way from a checkpoint of a thread's own graph back to its beginning. */
const CHAIN = `
WITH RECURSIVE chain AS (
  (SELECT 0 AS depth, checkpoint_id AS id, parent_checkpoint_id AS parent, step, source, made_at
  FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = ''
    AND (@id::text IS NULL OR checkpoint_id = @id)
  ORDER BY seq DESC LIMIT 1)
  UNION ALL
  SELECT chain.depth + 1, c.checkpoint_id, c.parent_checkpoint_id, c.step, c.source, c.made_at
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.parent
)`;

interface Link {
  id: string;
  parent: string | null;
  step: number;
  source: string;
  made_at: string;
}

/** One look-up for each thread, however many checkpoints it has. */
const THREADS = `
WITH RECURSIVE found (id) AS (
  SELECT min(thread_id) FROM checkpoints
  UNION ALL
  SELECT (SELECT min(thread_id) FROM checkpoints WHERE thread_id > found.id) FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL`;

export const listThreads = async (access: Access): Promise<string[]> =>
  (await query<{ id: string }>(access, THREADS)).map(({ id }) => id);

/** Returns the steps of a thread, oldest first. */
export async function threadSteps(access: Access, large: LargeValues, thread: string): Promise<ThreadStep[]> {
  const chain = await query<Link>(access, `${CHAIN} SELECT * FROM chain ORDER BY depth DESC`, {
    thread,
    id: null,
  });
  const sql = `
SELECT checkpoint_id AS id, type, value FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = '' AND channel = 'messages' ORDER BY checkpoint_id, task_id, idx`;
  const written = await query<{ id: string; type: string; value: Uint8Array }>(access, sql, { thread });
  const byCheckpoint = new Map<string, typeof written>();
  for (const row of written) byCheckpoint.set(row.id, [...(byCheckpoint.get(row.id) ?? []), row]);
  const messagesAt = (checkpoint: string): Promise<unknown[]> =>
    Promise.all((byCheckpoint.get(checkpoint) ?? []).map(({ type, value }) => large.loadsTyped(type, value)));
  // A checkpoint of input alone has nothing in the channels yet.
  const made = chain.filter(({ source }) => source !== "input");
  return mapAtMost(PARALLEL_READS, made, async ({ id, parent, step, made_at }) => {
    // The writes at the checkpoint before make the step.
    const messages = parent === null ? [] : await messagesAt(parent);
    return { number: step, checkpointId: id, time: Date.parse(made_at), messages };
  });
}

/** Finds the messages that hold `text`, in graphs inside the thread too. */
export async function writtenWith(
  access: Access,
  large: LargeValues,
  place: { thread: string; text: string },
): Promise<WrittenMessages[]> {
  // Messages of subagents outlive their checkpoints. Those in blobs all match; the caller filters them.
  const sql = `
SELECT w.checkpoint_ns AS namespace, w.checkpoint_id AS id, w.type, w.value
FROM checkpoint_writes AS w LEFT JOIN checkpoints AS c
  ON c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns AND c.checkpoint_id = w.checkpoint_id
WHERE w.thread_id = @thread AND w.channel = 'messages'
  AND (w.type LIKE 'blob:%' OR position(convert_to(@text, 'UTF8') IN w.value) > 0)
ORDER BY c.seq, w.checkpoint_id, w.task_id, w.idx`;
  const rows = await query<{ namespace: string; id: string; type: string; value: Uint8Array }>(
    access,
    sql,
    place,
  );
  const found = await mapAtMost(PARALLEL_READS, rows, async ({ namespace, id, type, value }) => {
    if (!mentions(await large.whole(type, value), place.text)) return [];
    return [{ namespace, time: timeOfId(id), messages: await large.loadsTyped(type, value) }];
  });
  return found.flat();
}

/** Makes `target` of the thread as it was at the checkpoint; `null` is its newest. False when there is none. */
export async function copyThread(
  access: Access,
  place: { thread: string; target: string },
  checkpoint: string | null,
): Promise<boolean> {
  const { thread } = place;
  return postgresEngine(access).write(function* () {
    const begin = yield* first<Link>(`${CHAIN} SELECT * FROM chain ORDER BY depth LIMIT 1`, {
      thread,
      id: checkpoint,
    });
    if (begin === undefined) return false;
    const newestId = `
SELECT checkpoint_id AS id FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = '' ORDER BY seq DESC LIMIT 1`;
    const newest = yield* first<{ id: string }>(newestId, { thread });
    yield* change(
      `
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content, object)
SELECT @target, '', hash, content, object FROM checkpoint_blobs WHERE thread_id = @thread AND checkpoint_ns = ''
ON CONFLICT DO NOTHING`,
      place,
    );
    const copyCheckpoints = `${CHAIN}
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, step, source, made_at,
  channels, type, checkpoint, metadata)
SELECT @target, '', c.checkpoint_id, c.parent_checkpoint_id, c.step, c.source, c.made_at, c.channels, c.type,
  c.checkpoint, c.metadata
FROM chain JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.id
ORDER BY chain.depth DESC
ON CONFLICT DO NOTHING`;
    yield* change(copyCheckpoints, { ...place, id: begin.id });
    const isNewest = newest?.id === begin.id ? 1 : 0;
    // Selects the writes to copy. Writes after an earlier checkpoint made the next one, so they have no place behind a copy
    // of it. For the newest checkpoint, results of finished calls are copied, but not open questions.
    const copyWrites = `${CHAIN}
INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
SELECT @target, '', w.checkpoint_id, w.task_id, w.idx, w.channel, w.type, w.value
FROM chain JOIN checkpoint_writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = '' AND w.checkpoint_id = chain.id
WHERE chain.depth > 0 OR (@isNewest = 1 AND w.channel NOT IN (${UNFINISHED_CHANNELS.map((channel) => `'${channel}'`).join(", ")}))
ON CONFLICT DO NOTHING`;
    yield* change(copyWrites, { ...place, id: begin.id, isNewest });
    return true;
  });
}

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
