import { setImmediate as nextTurn } from "node:timers/promises";
import { join } from "node:path";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type Checkpoint,
  type CheckpointTuple,
  emptyCheckpoint,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createDeepAgent } from "../../src/agent/definition/create-deep-agent.ts";
import {
  createCheckpointer,
  type SqliteCheckpointer,
} from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { opened, temporaryFolder } from "./support.ts";
import { attempts } from "../support/effort.ts";

const THREAD: RunnableConfig = { configurable: { thread_id: "thread", checkpoint_ns: "" } };
const CHANNELS = ["messages", "files", "notes"];
const channel = fc.constantFrom(...CHANNELS);
const value = fc.oneof(fc.string({ unit: "grapheme" }), fc.integer(), fc.uint8Array(), fc.constant(null));
const node = fc.record({
  /** How many checkpoints before it its parent lies; 0 starts a history of its own. */
  back: fc.nat(3),
  values: fc.dictionary(channel, fc.string(), { maxKeys: 1, noNullPrototype: true }),
  writes: fc.array(fc.tuple(channel, value), { maxLength: 3 }),
});

const checkpointOf = (step: number, values: Record<string, unknown>): Checkpoint => ({
  ...emptyCheckpoint(),
  id: uuid6(step),
  channel_values: values,
});

async function listed(saver: SqliteCheckpointer, config = THREAD): Promise<CheckpointTuple[]> {
  const tuples: CheckpointTuple[] = [];
  for await (const tuple of saver.list(config)) tuples.push(tuple);
  return tuples;
}

const everythingOf = async (saver: SqliteCheckpointer, config: RunnableConfig) => ({
  history: await saver.getDeltaChannelHistory({ config, channels: CHANNELS }),
  tuple: await saver.getTuple(config),
});

it("any history reads the same packed and unpacked, from every checkpoint of any tree", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(node, { minLength: 12, maxLength: 90 }),
      fc.infiniteStream(fc.nat()),
      async (nodes, picks) => {
        const saver = createCheckpointer(opened());
        const placed: RunnableConfig[] = [];
        for (const [index, { back, values, writes }] of nodes.entries()) {
          const parent = back === 0 ? undefined : placed[index - back];
          const metadata = { source: "loop" as const, step: index, parents: {} };
          const config = await saver.put(parent ?? THREAD, checkpointOf(index, values), metadata);
          if (writes.length > 0) await saver.putWrites(config, writes, `task-${index % 3}`);
          placed.push(config);
        }
        const steps = await saver.steps("thread");
        const before = await Promise.all([THREAD, ...placed].map((config) => everythingOf(saver, config)));
        const list = await listed(saver);

        await saver.tidyThread("thread");
        expect(await everythingOf(saver, THREAD)).toEqual(before[0]);
        for (let look = 0; look < 5; look += 1) {
          const at = picks.next().value % placed.length;
          const id: unknown = placed[at]?.configurable?.["checkpoint_id"];
          expect(await saver.copyThread("thread", `copy ${look}`, String(id))).toBe(true);
          const copy = { configurable: { thread_id: `copy ${look}`, checkpoint_ns: "" } };
          expect((await everythingOf(saver, copy)).history).toEqual(before[at + 1]?.history);
          expect(await everythingOf(saver, placed[at] ?? THREAD)).toEqual(before[at + 1]);
          await saver.tidyThread("thread");
        }
        expect(await saver.steps("thread")).toEqual(steps);
        await saver.tidyThread("thread");
        expect(await listed(saver)).toEqual(list);
      },
    ),
    attempts(40),
  );
});

it("two processes may pack and unpack a thread at once", async () => {
  const file = join(temporaryFolder(), "checkpoints.db");
  const [one, two] = [createCheckpointer(opened(file)), createCheckpointer(opened(file))];
  let config = THREAD;
  for (let step = 0; step < 300; step += 1) {
    config = await one.put(config, checkpointOf(step, {}), { source: "loop", step, parents: {} });
    await one.putWrites(config, [["messages", step]], "task");
  }
  const read = (saver: SqliteCheckpointer) =>
    saver.getDeltaChannelHistory({ config: THREAD, channels: ["messages"] });
  const expected = Array.from({ length: 299 }, (_, step) => step);
  const histories = await Promise.all([
    one.tidyThread("thread").then(() => read(one)),
    two.tidyThread("thread").then(() => read(two)),
    listed(two).then(() => read(one)),
    read(one),
    one.steps("thread").then(() => read(two)),
    two.tidyThread("thread").then(() => read(one)),
  ]);
  for (const { messages } of histories) expect(messages?.writes.map(([, , at]) => at)).toEqual(expected);
});

it("a copy of a thread that is deleted meanwhile is whole exactly when it is said to be made", async () => {
  for (const turns of [0, 5, 20, 60]) {
    const saver = createCheckpointer(opened());
    let config: RunnableConfig = { configurable: { thread_id: "thread", checkpoint_ns: "" } };
    for (let step = 0; step < 100; step += 1) {
      config = await saver.put(config, checkpointOf(step, {}), { source: "loop", step, parents: {} });
    }
    const copying = saver.copyThread("thread", "copy");
    for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    const [isCopied] = await Promise.all([copying, saver.deleteThread("thread")]);
    // What a copy that was given up has left belongs to nobody and is pruned.
    expect((await saver.steps("copy")).length === 100).toBe(isCopied);
  }
});

it("a list of all threads has what is packed", async () => {
  const saver = createCheckpointer(opened());
  for (const thread_id of ["one", "two"]) {
    let config: RunnableConfig = { configurable: { thread_id, checkpoint_ns: "" } };
    for (let step = 0; step < 20; step += 1) {
      config = await saver.put(config, checkpointOf(step, {}), { source: "loop", step, parents: {} });
    }
    await saver.tidyThread(thread_id);
  }
  expect(await listed(saver, { configurable: {} })).toHaveLength(40);
});

it("a long thread stays small, and is whole for whoever goes on with it", async () => {
  const file = join(temporaryFolder(), "checkpoints.db");
  const agentOn = (saver: SqliteCheckpointer) =>
    createDeepAgent({
      checkpointer: saver,
      summarization: false,
      model: scriptedModel(({ call }) =>
        call % 121 === 120 ? { text: "end" } : { toolCalls: [{ name: "ls", args: {} }] },
      ),
    });
  const config = { configurable: { thread_id: "thread" }, recursionLimit: 1000 };
  const counts: number[] = [];
  for (let turn = 1; turn <= 2; turn += 1) {
    const database = opened(file);
    const saver = createCheckpointer(database);
    const state = await agentOn(saver).invoke({ messages: [{ role: "user", content: "go" }] }, config);
    counts.push(state.messages.length);
    await saver.tidyThread("thread");
    expect(database.prepare("SELECT count(*) FROM checkpoints").pluck().get()).toBeLessThan(16);
    const again = await agentOn(saver).getState(config);
    expect(again.values.messages.map(({ id }: { id?: string }) => id)).toEqual(
      state.messages.map(({ id }) => id),
    );
    await saver.deleteThread("other");
    if (turn === 2) {
      await saver.deleteThread("thread");
      for (const table of ["checkpoints", "writes", "packed_checkpoints"]) {
        expect(database.prepare(`SELECT count(*) FROM ${table}`).pluck().get()).toBe(0);
      }
    }
  }
  expect(counts).toEqual([242, 484]);
});
