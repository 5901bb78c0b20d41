import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { type ToolRuntime, tool } from "@langchain/core/tools";
import { Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { createMiddleware, modelCallLimitMiddleware, toolCallLimitMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { type ScriptedReplyFunction, scriptedModel } from "../../support/scripted-model.ts";

const schema = new StateSchema({
  owner: z.string().default(""),
  log: new ReducedValue(
    z.array(z.string()).default(() => []),
    { reducer: (before, added) => [...before, ...added] },
  ),
});

/** Writes to the state, the sooner the shorter the text. */
const sign = tool(
  async ({ as }: { as: string }, { toolCallId }: ToolRuntime) => {
    for (let turns = 0; turns < as.length; turns += 1) await new Promise(setImmediate);
    const messages = [new ToolMessage({ content: "signed", tool_call_id: toolCallId })];
    return new Command({ update: { owner: as, log: [as], messages } });
  },
  { name: "sign", description: "Signs.", schema: z.object({ as: z.string() }) },
);

/** Starts a subagent for each text, which does as `work` says; without texts it works itself. */
const delegating = (texts: string[], work: ScriptedReplyFunction): ScriptedReplyFunction => {
  return (request) => {
    const { messages } = request;
    const task = messages.findLast((message) => HumanMessage.isInstance(message))?.text;
    if (task !== "go") return work(request);
    if (messages.at(-1)?.type === "tool") return { text: "end" };
    const tasks = texts.map((description) => ({ subagent_type: "worker", description }));
    return { toolCalls: tasks.map((args) => ({ name: "task", args })) };
  };
};

const signing: ScriptedReplyFunction = ({ messages }) => {
  const as = messages.findLast((message) => HumanMessage.isInstance(message))?.text ?? "";
  return messages.at(-1)?.type === "tool" || as === "idle"
    ? { text: "done" }
    : { toolCalls: [{ name: "sign", args: { as } }] };
};

async function stateAfter(reply: ScriptedReplyFunction, params: DeepAgentParams = {}) {
  const agent = createDeepAgent({
    model: scriptedModel(reply),
    tools: [sign],
    stateSchema: schema,
    checkpointer: new MemorySaver(),
    subagents: [{ name: "worker", description: "d", ...params.subagents?.[0] }],
    ...(params.middleware ? { middleware: params.middleware } : {}),
  });
  const input = { messages: [new HumanMessage("go")], owner: "first", log: ["begun"] };
  const config = { configurable: { thread_id: "t" } };
  // What checkpoints hold is what the next turn begins with.
  await agent.invoke(input, config);
  return (await agent.getState(config)).values as { owner: string; log: string[] } & Record<string, unknown>;
}

describe("state that parallel calls write", () => {
  it("a value is the last one in the order of the calls, whichever ended first", async () => {
    const calls = ["a long name", "b"].map((as) => ({ name: "sign", args: { as } }));
    const state = await stateAfter(({ messages }) =>
      messages.at(-1)?.type === "tool" ? { text: "end" } : { toolCalls: calls },
    );
    expect(state).toMatchObject({ owner: "b", log: ["begun", "a long name", "b"] });
  });

  it("of subagents counts in the same way, and what they add is added once", async () => {
    const state = await stateAfter(delegating(["a long name", "b", "idle"], signing));
    expect(state).toMatchObject({ owner: "b", log: ["begun", "a long name", "b"] });
  });

  it("is not written by subagents that leave it as it is", async () => {
    const state = await stateAfter(delegating(["idle", "idle"], signing));
    expect(state).toMatchObject({ owner: "first", log: ["begun"] });
  });
});

it("limits of LangChain count each agent by itself", async () => {
  const limits = (threadLimit: number) => [
    modelCallLimitMiddleware({ threadLimit }),
    toolCallLimitMiddleware({ threadLimit }),
  ];
  const worker = { name: "worker", description: "d", middleware: limits(2) };
  const state = await stateAfter(delegating(["a", "b"], signing), {
    middleware: limits(50),
    subagents: [worker],
  });
  expect(state).toMatchObject({
    log: ["begun", "a", "b"],
    threadModelCallCount: 2,
    threadToolCallCount: { __all__: 2 },
  });
});

it("a default that a middleware's schema has is there for hooks, and counts once", async () => {
  const counting = createMiddleware({
    name: "Counting",
    stateSchema: z.object({ turns: z.number().default(0) }),
    beforeModel: ({ turns }) => ({ turns: turns + 1 }),
  });
  const state = await stateAfter(delegating(["idle", "idle"], signing), {
    middleware: [counting],
    subagents: [{ name: "worker", description: "d", middleware: [counting] }],
  });
  // The main agent's two turns, and one of the subagents', which began with the first.
  expect(state["turns"]).toBe(3);
});
