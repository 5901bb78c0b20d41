import { AIMessage, AIMessageChunk, type AIMessageChunkFields } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { safeReply } from "../../../src/agent/models/reply.ts";

it.each([
  ["none", undefined, "unknown"],
  ["an empty one", "", "unknown"],
  ["one that is no text", 7, "unknown"],
  ["one that providers refuse", "files.ls now", "files_ls_now"],
  ["one that is too long", "x".repeat(70), "x".repeat(64)],
])("a call whose name is %s gets one that can be sent", (_what, name, expected) => {
  const given = new AIMessage({
    content: "",
    // What a provider's package makes of an answer is not checked by anybody.
    tool_calls: [{ type: "tool_call", id: "a", name: name as string, args: {} }],
  });
  const { reply, refused } = safeReply(given, []);
  expect(reply.tool_calls).toMatchObject([{ id: "a", name: expected, args: {} }]);
  expect(refused).toEqual([]);
});

it.each([
  ["NousResearch/hermes-agent#24411", "tool:read_file"],
  ["vllm-project/vllm#41739", "functions.read_file:0"],
  ["lablup/mlxcel#654", "read_file<|channel|>commentary"],
  ["a namespace of Gemini", "default_api.read_file"],
  ["another case", "Read_File"],
  ["one word", "readFile"],
  ["hyphens", "read-file"],
])("%s: %s is the tool that it can only mean", (_source, name) => {
  const given = new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id: "a", name, args: {} }] });
  const tools = ["ls", "read_file", "Ls"];
  expect(safeReply(given, [], { tools }).reply.tool_calls).toMatchObject([{ name: "read_file" }]);
});

it.each(["LS", "mcp__other__read_file", "file"])("%s may be another tool and stays", (name) => {
  const given = new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id: "a", name, args: {} }] });
  const tools = ["ls", "read_file", "Ls"];
  expect(safeReply(given, [], { tools }).reply.tool_calls).toMatchObject([{ name }]);
});

it("has the arguments of a streamed call once", () => {
  const args = '{"path":"/only-once"}';
  const given = new AIMessageChunk({
    content: [
      { index: 0, type: "text", text: "I look." },
      { index: 1, type: "tool_use", id: "a", name: "ls", input: args },
    ],
    additional_kwargs: {
      tool_calls: [{ id: "a", type: "function", function: { name: "ls", arguments: args } }],
    },
    tool_call_chunks: [{ type: "tool_call_chunk", index: 1, id: "a", name: "ls", args }],
  });
  const { reply } = safeReply(given, []);
  expect(reply.tool_calls).toMatchObject([{ id: "a", name: "ls", args: { path: "/only-once" } }]);
  expect(reply.text).toBe("I look.");
  expect(JSON.stringify(reply).split("only-once")).toHaveLength(2);
});

describe("a streamed answer in blocks", () => {
  const streamed = (content: AIMessageChunkFields["content"]) =>
    safeReply(new AIMessageChunk({ ...(content && { content }) }), []).reply;

  it("is a message whose text is a string, as one that was not streamed", () => {
    const reply = streamed([
      { type: "text", text: "hel", index: 0 },
      { type: "text", text: "lo", index: 1 },
    ]);
    expect([reply.constructor, reply.content]).toEqual([AIMessage, "hello"]);
  });

  it("keeps blocks that say more than their text", () => {
    const cited = [{ type: "text", text: "so", citations: [{ url: "https://example.com" }] }];
    expect(streamed(cited).content).toEqual(cited);
  });
});
