import { join } from "node:path";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointTuple,
  DeltaSnapshot,
  emptyCheckpoint,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createCheckpointer,
  type SqliteCheckpointer,
} from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { FencedOffError } from "../../src/runs/thread-ports.ts";
import { opened, temporaryFolder } from "./support.ts";
import { attempts } from "../support/effort.ts";
import { openWatched } from "../support/watched-database.ts";

const METADATA = { source: "loop" as const, step: 0, parents: {} };
const at = (thread: string, id?: string): RunnableConfig => ({
  configurable: { thread_id: thread, checkpoint_ns: "", ...(id === undefined ? {} : { checkpoint_id: id }) },
});
const checkpointOf = (id: string, values: Record<string, unknown>): Checkpoint => ({
  ...emptyCheckpoint(),
  id,
  channel_values: values,
  channel_versions: Object.fromEntries(Object.keys(values).map((channel) => [channel, 1])),
});

describe("the history of delta channels", () => {
  /** The walk of the base class, which reads one ancestor after the other. */
  const walked = (checkpointer: SqliteCheckpointer, config: RunnableConfig, channels: string[]) =>
    BaseCheckpointSaver.prototype.getDeltaChannelHistory.call(checkpointer, { config, channels });

  const channel = fc.constantFrom(
    "messages",
    "files",
    'quote"d',
    "dotted.name",
    "$[0]",
    "emoji 🚀",
    "it's",
    "back\\slash",
  );
  const json = fc.oneof(
    fc.integer(),
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.string()),
    fc.double(),
  );
  const node = fc.record({
    /** How many checkpoints before it its parent lies; 0 starts a thread of its own. */
    back: fc.nat(4),
    values: fc.dictionary(channel, json, { maxKeys: 2, noNullPrototype: true }),
    writes: fc.array(
      fc.record({
        task: fc.constantFrom("task-a", "task-b", "task-c"),
        writes: fc.array(fc.tuple(channel, json), { minLength: 1, maxLength: 3 }),
      }),
      { maxLength: 3 },
    ),
  });

  it("is what walking the ancestors one by one gives, for every checkpoint of any tree", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(node, { minLength: 1, maxLength: 12 }),
        fc.uniqueArray(channel),
        async (nodes, channels) => {
          const checkpointer = createCheckpointer(opened());
          const placed: RunnableConfig[] = [];
          for (const [index, { back, values, writes }] of nodes.entries()) {
            const parent = back === 0 ? undefined : placed[index - back];
            const config = await checkpointer.put(
              parent ?? at("thread"),
              checkpointOf(uuid6(index), values),
              METADATA,
            );
            for (const { task, writes: list } of writes) await checkpointer.putWrites(config, list, task);
            placed.push(config);
          }
          for (const config of [...placed, at("thread"), at("thread", "absent"), at("absent")]) {
            expect(await checkpointer.getDeltaChannelHistory({ config, channels })).toEqual(
              await walked(checkpointer, config, channels),
            );
          }
        },
      ),
      attempts(150),
    );
  });

  it("takes one query, however many ancestors there are", async () => {
    const statements: string[] = [];
    const database = openWatched((sql) => void statements.push(sql));
    const checkpointer = createCheckpointer(database);
    let config = at("thread");
    for (let step = 0; step < 40; step += 1) {
      const values = step === 20 ? { messages: new DeltaSnapshot(["start"]) } : {};
      config = await checkpointer.put(config, checkpointOf(uuid6(step), values), METADATA);
      await checkpointer.putWrites(config, [["messages", step]], `task-${step}`);
    }
    statements.length = 0;
    const { messages } = await checkpointer.getDeltaChannelHistory({ config, channels: ["messages"] });
    expect(messages?.seed).toEqual(new DeltaSnapshot(["start"]));
    expect(messages?.writes.map(([, , value]) => value)).toEqual(
      Array.from({ length: 19 }, (_, i) => i + 20),
    );
    expect(statements).toHaveLength(1);
    database.close();
  });

  it("follows more channels than fit one query", async () => {
    const checkpointer = createCheckpointer(opened());
    const channels = Array.from({ length: 70 }, (_, index) => `channel-${index}`);
    const parent = await checkpointer.put(at("thread"), checkpointOf(uuid6(0), {}), METADATA);
    await checkpointer.putWrites(
      parent,
      channels.map((name) => [name, name.length]),
      "task",
    );
    const config = await checkpointer.put(parent, checkpointOf(uuid6(1), {}), METADATA);
    const history = await checkpointer.getDeltaChannelHistory({ config, channels });
    expect(Object.keys(history)).toEqual(channels);
    expect(history["channel-69"]?.writes).toEqual([["task", "channel-69", 10]]);
  });
});

describe("the file format", () => {
  const collected = async (
    saver: BaseCheckpointSaver,
    config: RunnableConfig,
  ): Promise<CheckpointTuple[]> => {
    const tuples: CheckpointTuple[] = [];
    for await (const tuple of saver.list(config)) tuples.push(tuple);
    return tuples;
  };

  it("is the stock saver's, in both directions", async () => {
    const database = opened(join(temporaryFolder(), "agent.db"));
    const stock = new SqliteSaver(database as unknown as ConstructorParameters<typeof SqliteSaver>[0]); // has what it uses
    const first = await stock.put(at("thread"), checkpointOf(uuid6(0), { a: [1] }), METADATA);
    await stock.putWrites(first, [["a", 2]], "task");
    const before = await stock.getTuple(first);
    const checkpointer = createCheckpointer(database);
    expect(await checkpointer.getTuple(first)).toEqual(before);
    expect(await stock.getTuple(first)).toEqual(before);

    const second = await checkpointer.put(first, checkpointOf(uuid6(1), { a: [1, 2] }), METADATA);
    await checkpointer.putWrites(
      second,
      [
        ["a", 3],
        ["b", { deep: ["x"] }],
      ],
      "task",
    );
    expect(await stock.getTuple(second)).toEqual(await checkpointer.getTuple(second));
    expect(await collected(stock, at("thread"))).toEqual(await collected(checkpointer, at("thread")));
  });

  it.each([
    ["alone", (bytes: Uint8Array) => bytes],
    ["in a file", (bytes: Uint8Array) => ({ "/a.png": { content: bytes }, "/b.txt": { content: "b" } })],
    ["in a list", (bytes: Uint8Array) => [[1], bytes, [bytes]]],
    ["in a snapshot", (bytes: Uint8Array) => new DeltaSnapshot({ "/a.png": { content: bytes } })],
  ])("keeps bytes as they are, %s", async (_place, made) => {
    const database = opened();
    const checkpointer = createCheckpointer(database);
    const bytes = Uint8Array.from({ length: 60_000 }, (_, index) => (index * 7) % 256);
    const value = made(bytes);
    const config = await checkpointer.put(at("thread"), checkpointOf(uuid6(0), { value }), METADATA);
    await checkpointer.putWrites(config, [["value", value]], "task");
    const tuple = await checkpointer.getTuple(config);
    expect(tuple?.checkpoint.channel_values["value"]).toEqual(made(bytes));
    expect(tuple?.pendingWrites).toEqual([["task", "value", made(bytes)]]);
    // Neither as a list of numbers, nor changed in what was given.
    const size = database.prepare<[], number>("SELECT length(value) FROM writes").pluck().get();
    expect(size).toBeLessThan(200_000);
    expect(value).toEqual(made(bytes));
  });
});

describe("writes of a task", () => {
  it("are kept as first written, while errors and answers are replaced", async () => {
    const checkpointer = createCheckpointer(opened());
    const config = await checkpointer.put(at("thread"), checkpointOf(uuid6(0), {}), METADATA);
    await checkpointer.putWrites(config, [["a", "first"]], "task");
    await checkpointer.putWrites(config, [["a", "second"]], "task");
    await checkpointer.putWrites(config, [["__resume__", "old"]], "task");
    await checkpointer.putWrites(config, [["__resume__", "new"]], "task");
    const tuple = await checkpointer.getTuple(config);
    expect(tuple?.pendingWrites).toEqual([
      ["task", "__resume__", "new"],
      ["task", "a", "first"],
    ]);
  });

  it("need a thread and a checkpoint", async () => {
    const checkpointer = createCheckpointer(opened());
    await expect(checkpointer.putWrites({}, [["a", 1]], "task")).rejects.toThrow("configurable.thread_id");
    await expect(checkpointer.putWrites(at("thread"), [["a", 1]], "task")).rejects.toThrow(
      "configurable.checkpoint_id",
    );
  });
});

describe("fences", () => {
  it("keep what an earlier claim of the same process still had under way from being stored", async () => {
    const checkpointer = createCheckpointer(opened());
    await checkpointer.startOver("thread", { run: 1, claim: 1 });
    const first = await checkpointer.put(at("thread"), checkpointOf(uuid6(0), {}), METADATA);
    const late = checkpointer.put(first, checkpointOf(uuid6(1), {}), METADATA);
    await checkpointer.startOver("thread", { run: 1, claim: 2 });
    await expect(late).rejects.toThrow(FencedOffError);
    expect((await checkpointer.getTuple(at("thread")))?.config).toEqual(first);
  });

  it("keep a thread that another process has deleted from coming back", async () => {
    const file = join(temporaryFolder(), "checkpoints.db");
    const [checkpointer, other] = [createCheckpointer(opened(file)), createCheckpointer(opened(file))];
    await checkpointer.startOver("thread", { run: 1, claim: 1 });
    const first = await checkpointer.put(at("thread"), checkpointOf(uuid6(0), {}), METADATA);
    await other.deleteThread("thread");
    await expect(checkpointer.putWrites(first, [["a", 1]], "task")).rejects.toThrow(FencedOffError);
    expect(await other.threads()).toEqual([]);
  });

  it("stay when an earlier run of the thread is tidied", async () => {
    const file = join(temporaryFolder(), "checkpoints.db");
    const [checkpointer, other] = [createCheckpointer(opened(file)), createCheckpointer(opened(file))];
    await checkpointer.startOver("thread", { run: 1, claim: 1 });
    await checkpointer.startOver("thread", { run: 2, claim: 1 });
    await checkpointer.tidyThread("thread", { run: 1, claim: 1 });
    await other.startOver("thread", { run: 3, claim: 1 });
    await expect(checkpointer.put(at("thread"), checkpointOf(uuid6(0), {}), METADATA)).rejects.toThrow(
      FencedOffError,
    );
  });
});

it("a commit that several share fails for the one alone that could not be stored", async () => {
  const file = join(temporaryFolder(), "checkpoints.db");
  const checkpointer = createCheckpointer(opened(file));
  await checkpointer.startOver("lost", { run: 1, claim: 1 });
  await createCheckpointer(opened(file)).startOver("lost", { run: 1, claim: 2 });
  const put = (thread: string) => checkpointer.put(at(thread), checkpointOf(uuid6(0), {}), METADATA);
  const threads = Array.from({ length: 20 }, (_, index) => `thread ${index}`);
  const [lost, ...others] = await Promise.allSettled(["lost", ...threads].map(put));
  expect(lost).toMatchObject({ status: "rejected", reason: expect.any(FencedOffError) });
  expect(others.every(({ status }) => status === "fulfilled")).toBe(true);
  expect((await checkpointer.threads()).toSorted()).toEqual(threads.toSorted());
});

it("deleteThread removes all namespaces of the thread and nothing else", async () => {
  const database = opened();
  const checkpointer = createCheckpointer(database);
  for (const thread of ["one", "one%", "two"]) {
    for (const namespace of ["", "tools:1"]) {
      const config = await checkpointer.put(
        { configurable: { thread_id: thread, checkpoint_ns: namespace } },
        checkpointOf(uuid6(0), {}),
        METADATA,
      );
      await checkpointer.putWrites(config, [["a", 1]], "task");
    }
  }
  await checkpointer.deleteThread("one");
  const left = (table: string) => database.prepare(`SELECT thread_id FROM ${table} ORDER BY 1`).pluck().all();
  expect(left("checkpoints")).toEqual(["one%", "one%", "two", "two"]);
  expect(left("writes")).toEqual(["one%", "one%", "two", "two"]);
});
