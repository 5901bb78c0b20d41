import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/index.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const input = { messages: [{ role: "user", content: "go" }] };
const theirs = tool(async ({ a }) => `${a}`, {
  name: "theirs",
  description: "d",
  schema: z.object({ a: z.number() }),
});

/** Calls a tool of LangChain, a built-in one, one that fails, and a subagent that calls one. */
const agent = () =>
  createDeepAgent({
    checkpointer: new MemorySaver(),
    tools: [theirs],
    model: scriptedModel(({ messages, tools }) => {
      if (messages.length > 2) return { text: "end" };
      if (!tools.includes("task")) return { toolCalls: [{ id: "inner", name: "ls", args: {} }] };
      return {
        toolCalls: [
          { id: "1", name: "theirs", args: { a: 1 } },
          { id: "2", name: "ls", args: { path: "/" } },
          { id: "3", name: "read_file", args: { file_path: "/none" } },
          { id: "4", name: "task", args: { description: "d", subagent_type: "general-purpose" } },
        ],
      };
    }),
  });

const Told = z.object({ event: z.string(), name: z.string(), toolCallId: z.string().optional() });
const all = ["1 theirs", "2 ls", "3 read_file", "4 task", "inner ls"];

it("stream mode `tools` tells of built-in tools as of LangChain's", async () => {
  const told: Array<z.infer<typeof Told>> = [];
  // LangGraph's types do not list the mode yet.
  const options = { streamMode: "tools" as never, subgraphs: true, configurable: { thread_id: "1" } };
  const chunks: AsyncIterable<[string[], unknown]> = await agent().stream(input, options);
  for await (const [, chunk] of chunks) told.push(Told.parse(chunk));
  for (const event of ["on_tool_start", "on_tool_end"]) {
    const those = told.filter((one) => one.event === event);
    expect(those.map(({ toolCallId, name }) => `${toolCallId} ${name}`).sort()).toEqual(all);
  }
  expect(told).toHaveLength(2 * all.length);
});

it("`streamEvents` tells their arguments and results", async () => {
  const events = [];
  const options = { version: "v2" as const, configurable: { thread_id: "1" } };
  for await (const event of agent().streamEvents(input, options)) {
    if (event.event.startsWith("on_tool_")) events.push(event);
  }
  expect(events.filter(({ event }) => event === "on_tool_end").map(({ name }) => name)).toHaveLength(5);
  const started = events.find(({ event, name }) => event === "on_tool_start" && name === "read_file");
  expect(JSON.stringify(started?.data)).toContain("/none");
  const ended = events.find(({ event, name }) => event === "on_tool_end" && name === "read_file");
  expect(JSON.stringify(ended?.data)).toContain("File '/none' not found");
});
