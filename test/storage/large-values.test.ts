import { createHash } from "node:crypto";
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Send } from "@langchain/langgraph";
import { DeltaSnapshot, MemorySaver } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LargeValues } from "../../src/storage/checkpoints/large-values.ts";
import { attempts } from "../support/effort.ts";

const stock = new MemorySaver().serde;
const asStock = async (value: unknown): Promise<unknown> => {
  const [type, data] = await stock.dumpsTyped(value);
  return stock.loadsTyped(type, data);
};

/** Large values whose parts are in memory. */
function inMemory() {
  const texts = new Map<string, string>();
  const blobs = {
    atOnce: 2,
    put: (_owner: unknown, text: string) => {
      const name = createHash("sha256").update(text).digest("base64url");
      texts.set(name, text);
      return { name, stored: Promise.resolve() };
    },
    get: (name: string) => texts.get(name) ?? "",
  };
  return { texts, values: new LargeValues(blobs, stock, (thrown) => thrown) };
}

async function roundTrip(value: unknown): Promise<unknown> {
  const { values } = inMemory();
  const [type, data] = await values.dumps(value, { thread: "t", namespace: "" });
  return values.loadsTyped(type, data);
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

  it("is stored in pieces, however large it is, and each piece once", async () => {
    const { values, texts } = inMemory();
    const value = Array.from({ length: 5000 }, (_, i) => `${i} `.repeat(100)).join("");
    const files = Object.fromEntries(
      Array.from({ length: 2000 }, (_, i) => [`/${i}`, { content: value.slice(i, i + 2000) }]),
    );
    const stored = [value, { bytes: new Uint8Array(Buffer.from(value)) }, new DeltaSnapshot(files), value];
    const [type, data] = await values.dumps(stored, { thread: "t", namespace: "" });
    const sizes = [data, ...texts.values()].map(({ length }) => length);
    expect(Math.max(...sizes)).toBeLessThan(200_000);
    // The text, its bytes in base64, and the files.
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(value.length * 2.5 + 2000 * 2200);
    expect(await values.loadsTyped(type, data)).toEqual(stored);
  });
});
