import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, expectTypeOf, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const PUBLIC = ["files", "messages", "structuredResponse", "todos"];
const go = { messages: [{ role: "user" as const, content: "go" }] };
const thread = { configurable: { thread_id: "t" } };
const write = { toolCalls: [{ name: "write_file", args: { file_path: "/a", content: "a" } }] };

const agentOf = () =>
  createDeepAgent({
    model: scriptedModel(({ call }) => (call === 0 ? write : { text: "end" })),
    limits: { tokens: 10_000 },
    summarization: { trigger: { tokens: 100_000 } },
    checkpointer: new MemorySaver(),
  });

describe("the channels that an agent keeps for itself", () => {
  it("are in no type of its state, from which servers make its schema", () => {
    type Result = Awaited<ReturnType<ReturnType<typeof agentOf>["invoke"]>>;
    expectTypeOf<Extract<keyof Result, `_${string}`>>().toBeNever();
    expectTypeOf<Extract<keyof Result, "messages" | "todos" | "files">>().toEqualTypeOf<
      "messages" | "todos" | "files"
    >();
  });

  it.each(["values", "updates"] as const)("are not in its stream of %s", async (streamMode) => {
    const chunks: unknown[] = [];
    for await (const chunk of await agentOf().stream(go, { ...thread, streamMode })) chunks.push(chunk);
    const shown = JSON.stringify(chunks);
    expect(shown).toContain('"messages"');
    expect(shown).not.toMatch(/"_(?:spent|summarization|fileNotes|leftOff)"/);
  });

  // A checkpoint's metadata counts the changes of each channel by its name.
  const textOf = (chunk: unknown): string =>
    JSON.stringify(chunk, (key, value: unknown) => (key === "counters_since_delta_snapshot" ? {} : value));

  it.each(["values", "updates", "checkpoints", "tasks", "debug"] as const)(
    "are not in what a stream of %s shows of a subagent, and of one below that",
    async (streamMode) => {
      const task = (subagent_type: string) => ({
        toolCalls: [{ name: "task", args: { subagent_type, description: "go" } }],
      });
      const named = (name: string, first: ReturnType<typeof task> | typeof write) => ({
        name,
        description: name,
        model: scriptedModel(({ call }) => (call === 0 ? first : { text: "end" })),
      });
      const agent = createDeepAgent({
        model: scriptedModel(({ call }) => (call === 0 ? task("helper") : { text: "end" })),
        limits: { tokens: 10_000, subagentDepth: 2 },
        subagents: [named("helper", task("writer")), named("writer", write)],
        checkpointer: new MemorySaver(),
      });
      const shown = new Map<number, string[]>();
      for await (const [path, chunk] of await agent.stream(go, { ...thread, streamMode, subgraphs: true })) {
        shown.set(path.length, [...(shown.get(path.length) ?? []), textOf(chunk)]);
      }
      expect([...shown.keys()].sort()).toEqual([0, 1, 2]);
      const below = [...(shown.get(1) ?? []), ...(shown.get(2) ?? [])].join("\n");
      expect(below).toContain('"messages"');
      expect(below).not.toMatch(/"_(?:spent|summarization|fileNotes|leftOff)"/);
    },
  );

  it("are not in its state and its history, before a step and after the last one", async () => {
    const agent = agentOf();
    await agent.invoke(go, thread);
    const states = [await agent.getState(thread)];
    for await (const state of agent.getStateHistory(thread)) states.push(state);
    expect(states.length).toBeGreaterThan(3);
    for (const { values } of states)
      expect(PUBLIC).toEqual(expect.arrayContaining(Object.keys(values as object)));
    expect(Object.keys(states[0]?.values as object)).toEqual(expect.arrayContaining(["messages", "files"]));
  });
});
