import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { DeltaValue, END, Send, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { DeltaSnapshot, emptyCheckpoint, MemorySaver, uuid6 } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { opened } from "./support.ts";
import { attempts } from "../support/effort.ts";

const METADATA = { source: "loop" as const, step: 0, parents: {} };
const at = (thread: string, namespace = "", id?: string): RunnableConfig => ({
  configurable: {
    thread_id: thread,
    checkpoint_ns: namespace,
    ...(id === undefined ? {} : { checkpoint_id: id }),
  },
});
const checkpointOf = (step: number, channel_values: Record<string, unknown>) => ({
  ...emptyCheckpoint(),
  id: uuid6(step),
  channel_values,
});
const saverOn = (database = opened()) => ({ database, saver: createCheckpointer(database) });

const count = (database: Database, table = "checkpoint_blobs"): unknown =>
  database.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
const longest = (database: Database): unknown =>
  database
    .prepare(
      `SELECT max(size) FROM (SELECT max(length(text)) AS size FROM checkpoint_blobs
       UNION ALL SELECT max(length(value)) FROM writes UNION ALL SELECT max(length(checkpoint)) FROM checkpoints)`,
    )
    .pluck()
    .get();

const stock = new MemorySaver().serde;
const asStock = async (value: unknown): Promise<unknown> => {
  const [type, data] = await stock.dumpsTyped(value);
  return stock.loadsTyped(type, data);
};

async function roundTrip(value: unknown): Promise<unknown> {
  const { saver } = saverOn();
  const config = await saver.put(at("thread"), checkpointOf(1, { kept: value }), METADATA);
  await saver.putWrites(config, [["written", value]], "task");
  const tuple = await saver.getTuple(config);
  const written = tuple?.pendingWrites?.[0]?.[2];
  expect(tuple?.checkpoint.channel_values["kept"]).toEqual(written);
  return written;
}

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string() },
  fc.string({ unit: "binary", maxLength: 20 }).map((one) => `${one}\ud83d🚀é`.repeat(1500)),
  fc.constantFrom("deepagent-blobs:", `deepagent-blobs:text:${"A".repeat(43)}`),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.integer(),
    fc.constantFrom(null, true, undefined, new Map([["k", "x".repeat(5000)]]), new Error("x".repeat(5000))),
    fc.uint8Array({ minLength: 5000, maxLength: 5001 }),
    fc.array(tie("value"), { maxLength: 3 }),
    // LangGraph's serialiser itself does not bring the key `__proto__` back.
    fc.dictionary(
      fc.string().filter((key) => key !== "__proto__"),
      tie("value"),
      {
        maxKeys: 3,
        noNullPrototype: true,
      },
    ),
  ),
})).value;

describe("a value", () => {
  it("comes back as LangGraph's serialiser alone would give it", async () => {
    await fc.assert(
      fc.asyncProperty(json, async (value) => {
        expect(await roundTrip(value)).toEqual(await asStock(value));
      }),
      attempts(100),
    );
  });

  const content = "line\n".repeat(2000);
  it.each([
    ["a message", new HumanMessage(content)],
    ["a report", new ToolMessage({ content, tool_call_id: "call", artifact: { content } })],
    [
      "a call",
      new AIMessage({ content: "", tool_calls: [{ id: "c", name: "write_file", args: { content } }] }),
    ],
    [
      "a chunk with a call",
      new AIMessageChunk({
        content: "",
        tool_call_chunks: [{ id: "c", name: "write_file", index: 0, args: JSON.stringify({ content }) }],
      }),
    ],
    ["a task", new Send("tools", { call: { args: { content } } })],
    ["bytes", new TextEncoder().encode(content)],
    ["a snapshot of text", new DeltaSnapshot(content)],
    ["a snapshot of few", new DeltaSnapshot({ "/file.txt": { content } })],
    [
      "a snapshot of many messages",
      new DeltaSnapshot(
        Array.from(
          { length: 100 },
          (_, i) => new HumanMessage({ id: `${i}`, content: `${i} ${i % 40 ? "" : content}` }),
        ),
      ),
    ],
    [
      "a snapshot of many files",
      new DeltaSnapshot(
        Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`/${i}.txt`, { content: `${i}` }])),
      ),
    ],
  ])("may be %s", async (_name, value) => {
    const [found, expected] = [await roundTrip(value), await asStock(value)];
    expect(found).toEqual(expected);
    expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
    // Order, and what classes keep to themselves, too.
    expect((await stock.dumpsTyped(found))[1]).toEqual((await stock.dumpsTyped(expected))[1]);
  });

  it("is stored in pieces, however large it is", async () => {
    const { saver, database } = saverOn();
    const value = Array.from({ length: 5000 }, (_, i) => `${i} `.repeat(100)).join("");
    const bytes = Buffer.from(value);
    const files = Object.fromEntries(
      Array.from({ length: 2000 }, (_, i) => [`/${i}`, { content: value.slice(i, i + 2000) }]),
    );
    const config = await saver.put(at("t"), checkpointOf(1, { files: new DeltaSnapshot(files) }), METADATA);
    await saver.putWrites(
      config,
      [
        ["text", value],
        ["bytes", { bytes }],
      ],
      "task",
    );
    expect(longest(database)).toBeLessThan(200_000);
    const tuple = await saver.getTuple(config);
    const [written, inBytes] = tuple?.pendingWrites?.map(([, , found]) => found) ?? [];
    expect(written === value).toBe(true);
    expect(inBytes).toMatchObject({ bytes: expect.any(Uint8Array) });
    expect(Buffer.from((inBytes as { bytes: Uint8Array }).bytes).equals(bytes)).toBe(true); // as just seen
    expect(tuple?.checkpoint.channel_values["files"]).toEqual(new DeltaSnapshot(files));
  });
});

describe("a large text", () => {
  const one = "one ".repeat(5000);
  const two = "two ".repeat(5000);

  it("is stored once, and as long as a thread has it", async () => {
    const { saver, database } = saverOn();
    for (const thread of ["a", "b"]) {
      const config = await saver.put(at(thread), checkpointOf(1, { notes: one }), METADATA);
      await saver.putWrites(config, [["notes", [one, { again: one }]]], "task");
    }
    expect(count(database)).toBe(1);
    expect(await saver.copyThread("a", "copy")).toBe(true);
    await saver.deleteThread("a");
    await saver.deleteThread("b");
    const copy = await saver.getTuple(at("copy"));
    expect(copy?.checkpoint.channel_values["notes"]).toBe(one);
    await saver.deleteThread("copy");
    expect([count(database), count(database, "checkpoint_blob_uses")]).toEqual([0, 0]);
  });

  it("goes with the last checkpoint of the graph inside a thread that has it", async () => {
    const { saver, database } = saverOn();
    await saver.put(at("t", "tools:1"), checkpointOf(1, { notes: one }), METADATA);
    await saver.put(at("t"), checkpointOf(2, { notes: two }), METADATA);
    const waiting = await saver.put(at("t", "tools:2"), checkpointOf(3, { notes: one }), METADATA);
    await saver.tidyThread("t");
    expect((await saver.getTuple(waiting))?.checkpoint.channel_values["notes"]).toBe(one);
    await saver.put(at("t"), checkpointOf(4, { notes: two }), METADATA);
    await saver.tidyThread("t");
    expect(database.prepare("SELECT text FROM checkpoint_blobs").pluck().all()).toEqual([
      JSON.stringify(two),
    ]);
  });

  it("that somebody is about to refer to stays while an earlier run of the thread is tidied", async () => {
    const { saver, database } = saverOn();
    const other = createCheckpointer(database);
    await saver.put(at("t"), checkpointOf(1, { notes: one }), METADATA);
    for (const [who, run] of [
      [saver, 1],
      [other, 2],
      [saver, 3],
    ] as const) {
      await who.startOver("t", { run, claim: 1 });
    }
    // As a write does before it is stored itself.
    database.exec(`INSERT INTO checkpoint_blobs (hash, text) VALUES (x'00', '"two"');
      INSERT INTO checkpoint_blob_uses SELECT 't', 'tools:1', number FROM checkpoint_blobs WHERE hash = x'00'`);
    for (const run of [1, 2]) await saver.tidyThread("t", { run, claim: 1 });
    expect(count(database)).toBe(2);
    // Nor is the one at work taken for one that has left.
    await other.startOver("t", { run: 4, claim: 1 });
    await expect(saver.put(at("t"), checkpointOf(2, {}), METADATA)).rejects.toThrow("works on thread t now");
    await other.tidyThread("t", { run: 4, claim: 1 });
    expect(count(database)).toBe(1);
  });

  it("that is missing is told as damage", async () => {
    const { saver, database } = saverOn();
    const config = await saver.put(at("t"), checkpointOf(1, { notes: one }), METADATA);
    database.exec("DELETE FROM checkpoint_blobs");
    await expect(saver.getTuple(config)).rejects.toThrow(/lacks a part of a thread/);
  });
});

it("the files of a thread outlive their snapshot, and their content is stored once", async () => {
  const { saver, database } = saverOn();
  const contentOf = (step: number): string => `${step % 7} `.repeat(3000);
  const State = new StateSchema({
    files: new DeltaValue(z.record(z.string(), z.string()).default({}), {
      inputSchema: z.record(z.string(), z.string()),
      reducer: (files: Record<string, string>, writes: Record<string, string>[]) =>
        Object.assign({}, files, ...writes),
      snapshotFrequency: 40,
    }),
    count: z.number().default(0),
  });
  const graph = new StateGraph(State)
    .addNode("write", ({ count }) => ({ count: count + 1, files: { [`/${count}`]: contentOf(count) } }))
    .addEdge(START, "write")
    .addConditionalEdges("write", ({ count }) => (count < 90 ? "write" : END))
    .compile({ checkpointer: saver });
  const config = { configurable: { thread_id: "t" }, recursionLimit: 1000 };
  const { files } = await graph.invoke({}, config);
  expect(Object.keys(files)).toHaveLength(90);
  await saver.tidyThread("t");
  expect((await graph.getState(config)).values.files).toEqual(files);
  const texts = database.prepare<[], string>("SELECT text FROM checkpoint_blobs").pluck().all();
  expect(texts.filter((text) => text === JSON.stringify(contentOf(5)))).toHaveLength(1);
  expect(longest(database)).toBeLessThan(20_000);
});
