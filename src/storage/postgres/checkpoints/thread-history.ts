/** The history of threads: which steps are kept, and copies of a thread as it was at one of them. */
import type { ThreadStep, WrittenMessages } from "../../../runs/thread-ports.ts";
import { mapAtMost } from "../../../core/concurrency.ts";
import { type GraphAddress, timeOfId } from "../../checkpoints/address.ts";
import type { LargeValues } from "../../checkpoints/large-values.ts";
import { mentions } from "../../checkpoints/serializer.ts";
import { type WriteRow, UNFINISHED_CHANNELS, revive } from "../../checkpoints/writes.ts";
import { change, first } from "../../../runs/sql/steps.ts";
import { type Access, postgresEngine, query } from "../engine.ts";
import { PARALLEL_READS } from "./blobs.ts";
import { sql } from "./queries.ts";
import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";

interface Link {
  id: string;
  parent: string | null;
  step: number;
  source: string;
  made_at: string;
}

export const listThreads = async (access: Access): Promise<string[]> =>
  (await query<{ id: string }>(access, sql("threads"))).map(({ id }) => id);

/** Returns the steps of a thread, oldest first. */
export async function threadSteps(access: Access, large: LargeValues, thread: string): Promise<ThreadStep[]> {
  const way = `${sql("chain")} SELECT * FROM chain ORDER BY depth DESC`;
  const chain = await query<Link>(access, way, { thread, id: null });
  const written = await query<{ id: string; type: string; value: Uint8Array }>(access, sql("messages"), {
    thread,
  });
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
  const rows = await query<{ namespace: string; id: string; type: string; value: Uint8Array }>(
    access,
    sql("written with"),
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
    const last = `${sql("chain")} SELECT * FROM chain ORDER BY depth LIMIT 1`;
    const begin = yield* first<Link>(last, { thread, id: checkpoint });
    if (begin === undefined) return false;
    const newest = yield* first<{ id: string }>(sql("newest id"), { thread });
    yield* change(sql("copy blobs"), place);
    yield* change(`${sql("chain")}\n${sql("copy checkpoints")}`, { ...place, id: begin.id });
    yield* change(`${sql("chain")}\n${sql("copy writes")}`, {
      ...place,
      id: begin.id,
      isNewest: newest?.id === begin.id ? 1 : 0,
      unfinished: JSON.stringify(UNFINISHED_CHANNELS),
    });
    return true;
  });
}

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
  const rows = await query<HistoryRow>(access, sql("history"), { ...place, id, channels });
  const seeds = new Map<string, string[]>();
  for (const { id: seed, found, channel } of rows)
    if (found) seeds.set(seed, [...(seeds.get(seed) ?? []), channel]);
  const stored = await query<{ id: string; type: string; checkpoint: Uint8Array }>(access, sql("seeds"), {
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
