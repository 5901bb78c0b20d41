import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot, emptyCheckpoint, MemorySaver } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { expect, it } from "vitest";
import { plainJson } from "../../src/storage/checkpoints/large-values.ts";

const stock = new MemorySaver().serde;
const stockJson = async (value: unknown): Promise<string> =>
  Buffer.from((await stock.dumpsTyped(value))[1]).toString();

it.each([
  ["messages", [new HumanMessage("hello \ud800 ✓"), new ToolMessage({ content: "done", tool_call_id: "c" })]],
  [
    "a call",
    new AIMessage({
      content: "",
      tool_calls: [{ id: "c", name: "ls", args: { path: "/", all: undefined } }],
    }),
  ],
  ["a chunk", new AIMessageChunk({ content: [{ type: "text", text: "hi" }] })],
  ["a task", new Send("tools", { callId: "c" })],
  [
    "a checkpoint",
    { ...emptyCheckpoint(), channel_values: { none: undefined, tasks: [new Send("n", null)] } },
  ],
  ["a replaced value", new Overwrite({ "/a": null })],
  ["dates and numbers", [new Date(0), 1.5, Number.NaN, null, true]],
  ["nothing", undefined],
])("%s are written as LangGraph's serialiser writes them", async (_name, value) => {
  expect(plainJson(value)).toBe(await stockJson(value));
});

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;

it.each([
  ["large texts", { content: "x".repeat(4096) }],
  ["what looks like a reference", ["deepagent-blobs:text:"]],
  ["bytes", new Uint8Array(3)],
  ["buffers", { content: Buffer.from("abc") }],
  ["maps", [new Map([["k", "v"]])]],
  ["errors", { thrown: new Error("no") }],
  ["snapshots", { files: new DeltaSnapshot({}) }],
  ["records marked as such", { files: { lg_name: "DeltaSnapshot", value: {} } }],
  ["a task with a time", new Send("tools", {}, { timeout: 5 })],
  ["cycles", cycle],
])("%s are left to others", (_name, value) => {
  expect(plainJson(value)).toBeUndefined();
});

it("whatever is written is what LangGraph's serialiser writes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.anything({ withDate: true, withMap: true, withNullPrototype: true }),
      async (value) => {
        const json = plainJson(value);
        if (json !== undefined) expect(json).toBe(await stockJson(value));
      },
    ),
  );
});
