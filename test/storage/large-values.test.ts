import { createHash } from "node:crypto";
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Send } from "@langchain/langgraph";
import { DeltaSnapshot, MemorySaver, emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LargeValues } from "../../src/storage/checkpoints/large-values.ts";
import { withBytes } from "../../src/storage/checkpoints/serializer.ts";
import { attempts } from "../support/effort.ts";

const stock = new MemorySaver().serde;
const asStock = async (value: unknown): Promise<unknown> => {
  const [type, data] = await stock.dumpsTyped(value);
  return stock.loadsTyped(type, data);
};

const OWNER = { thread: "t", namespace: "" };
const METADATA = { source: "loop" as const, step: 1, parents: {} };

/** Large values whose blobs are in memory. */
function inMemory(serde = withBytes(stock, (thrown) => thrown)) {
  const blobs = new Map<string, Uint8Array>();
  const fetched: string[] = [];
  const store = {
    put: async (_owner: unknown, content: Uint8Array) => {
      const hash = createHash("sha256").update(content).digest();
      blobs.set(hash.toString("hex"), content);
      return hash;
    },
    get: async (name: Uint8Array) => {
      const key = Buffer.from(name).toString("hex");
      fetched.push(key);
      const found = blobs.get(key);
      if (found === undefined) throw new Error(`There is no blob ${key}.`);
      return found;
    },
  };
  return { blobs, fetched, values: new LargeValues(store, () => serde) };
}

async function roundTrip(value: unknown): Promise<unknown> {
  const { values } = inMemory();
  const [type, data] = await values.dumpsTyped(value, OWNER, 4096);
  return values.loadsTyped(type, data);
}

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string() },
  fc.string({ unit: "binary", maxLength: 20 }).map((one) => `${one}\ud83d🚀é`.repeat(1500)),
  fc.constantFrom("blob:json", "blobs:json"),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.integer(),
    fc.constantFrom(
      null,
      true,
      undefined,
      new Map([["k", "x".repeat(70_000)]]),
      new Error("x".repeat(70_000)),
    ),
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
    [
      "messages of a step",
      [
        new AIMessage({
          id: "m",
          content: [{ type: "text", text: "text" }],
          tool_calls: [{ id: "c", name: "look", args: { deep: [{ list: [1, null] }], lc: "lc" } }],
          usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
          response_metadata: { stop_reason: "tool_calls" },
        }),
        new ToolMessage({ content, tool_call_id: "c", artifact: { said: new HumanMessage("inside") } }),
      ],
    ],
    ["messages and others", [new HumanMessage("text"), { plain: true }]],
    ["a task", new Send("tools", { call: { args: { content } } })],
    ["bytes", new TextEncoder().encode(content)],
    ["bytes in a list", [new TextEncoder().encode(content)]],
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
  ])("may be %s", async (_name, value) => {
    const [found, expected] = [await roundTrip(value), await asStock(value)];
    expect(found).toEqual(expected);
    expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
    // Order, and what classes keep to themselves, too.
    expect((await stock.dumpsTyped(found))[1]).toEqual((await stock.dumpsTyped(expected))[1]);
  });

  it("is one blob from 64 KB on, and in its row below", async () => {
    const { values, blobs } = inMemory();
    // With its quotes.
    const small = "x".repeat(64 * 1024 - 3);
    expect(await values.dumpsTyped(small, OWNER)).toEqual(["json", new TextEncoder().encode(`"${small}"`)]);
    expect(blobs.size).toBe(0);
    const [type, name] = await values.dumpsTyped([`${small}.`, { again: `${small}.` }], OWNER);
    expect(type).toBe("blob:json");
    expect([...blobs.keys()]).toEqual([Buffer.from(name).toString("hex")]);
    await values.dumpsTyped([`${small}.`, { again: `${small}.` }], OWNER);
    expect(blobs.size).toBe(1);
  });

  it("whose blob is gone is an error", async () => {
    const { values, blobs } = inMemory();
    const [type, data] = await values.dumpsTyped("x".repeat(70_000), OWNER);
    blobs.clear();
    await expect(values.loadsTyped(type, data)).rejects.toThrow("There is no blob");
  });
});

describe("a checkpoint", () => {
  const guide = "Answer in 한국어.\n".repeat(1000);
  const files = new DeltaSnapshot({ "/long.txt": { content: "x".repeat(300_000) } });
  const checkpoint = (step: number) => ({
    ...emptyCheckpoint(),
    channel_values: { guide, files, step, none: undefined, long: new Uint8Array(5000).fill(step) },
  });

  it("stores a large channel once, however many checkpoints have it", async () => {
    const { values, blobs } = inMemory();
    let bytes = 0;
    for (let step = 0; step < 10; step += 1) {
      const given = checkpoint(step);
      const [type, data, facts] = await values.dumpsCheckpoint(given, METADATA, OWNER);
      bytes += data.length;
      expect(await values.loadsCheckpoint(type, data)).toEqual(given);
      expect(await values.loadsMetadata(type, facts)).toEqual(METADATA);
    }
    // The guide, the files, and the bytes of each step.
    expect(blobs.size).toBe(12);
    expect(bytes).toBeLessThan(10_000);
  });

  it("loads only the large channels that are asked for", async () => {
    const { values, fetched } = inMemory();
    const [type, data] = await values.dumpsCheckpoint(checkpoint(1), METADATA, OWNER);
    const loaded = await values.loadsCheckpoint(type, data, ["guide"]);
    expect(loaded.channel_values["guide"]).toBe(guide);
    expect(fetched).toHaveLength(1);
  });

  it("is stored as a serialiser says that replaced LangGraph's", async () => {
    const turned = (data: Uint8Array): Uint8Array => data.map((byte) => byte ^ 1);
    const { values, blobs } = inMemory({
      dumpsTyped: async (value) => ["turned", turned((await stock.dumpsTyped(value))[1])],
      loadsTyped: (_type, data) => stock.loadsTyped("json", turned(Buffer.from(data))),
    });
    const given = { ...emptyCheckpoint(), channel_values: { guide, files: { "/a": "x".repeat(70_000) } } };
    const [type, data, facts] = await values.dumpsCheckpoint(given, METADATA, OWNER);
    expect([data, ...blobs.values()].some((one) => Buffer.from(one).includes("Answer"))).toBe(false);
    expect(await values.loadsCheckpoint(type, data)).toEqual(given);
    expect(await values.loadsMetadata(type, facts)).toEqual(METADATA);
  });
});
