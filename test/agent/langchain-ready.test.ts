import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver } from "@langchain/langgraph";
import { type AgentMiddleware, createAgent } from "langchain";
import { describe, expect, test } from "vitest";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import { repairHistory } from "../../src/agent/messages/mend.ts";
import { type ScriptedModel, scriptedModel } from "../support/scripted-model.ts";
import { type Case, CASES, OWN, ownTools } from "./langchain-ready-cases.ts";

interface Observed {
  error?: string;
  messages: unknown[];
  /** What models saw, without the system prompt and the tools that are ours alone. */
  requests: unknown[];
  /** What is counted for the thread: a limit of LangChain's own agent passes over the hook that ends a run. */
  counts: Record<string, unknown>;
}

interface Graph {
  invoke(input: unknown, config: unknown): Promise<unknown>;
}

const shown = (message: BaseMessage): unknown[] => [
  message.type,
  message.text.replaceAll(/_[a-z0-9]{6,}\]/g, "]"),
  AIMessage.isInstance(message)
    ? message.tool_calls?.map(({ id, name, args }) => [id, name, args])
    : undefined,
  ToolMessage.isInstance(message) ? [message.tool_call_id, message.status ?? "success"] : undefined,
];
/** In the order of calls, which models of ours see; LangChain leaves artificial results in front. */
const conversation = (messages: BaseMessage[]): unknown[] =>
  repairHistory(messages.filter(({ type }) => type !== "system")).map(shown);
const requestsOf = ({ requests }: ScriptedModel): unknown[] =>
  requests.map(({ messages, tools }) => [
    conversation(messages),
    tools.filter((name) => OWN.has(name)).sort(),
  ]);

interface Parts {
  model: ScriptedModel;
  middleware: AgentMiddleware[];
  tools: ReturnType<typeof ownTools>;
  checkpointer: MemorySaver;
}

async function observe(
  { middleware, reply, says = ["go"], answers = [] }: Case,
  make: (parts: Parts) => unknown,
): Promise<Observed> {
  const model = scriptedModel(reply);
  const checkpointer = new MemorySaver();
  const agent = make({ model, middleware: middleware(model), tools: ownTools(), checkpointer }) as Graph;
  const config = { configurable: { thread_id: "t" } };
  let state: Record<string, unknown> = {};
  let error: string | undefined;
  try {
    for (const input of [
      ...says.map((text) => ({ messages: [new HumanMessage(text)] })),
      ...answers.map((resume) => new Command({ resume })),
    ]) {
      state = (await agent.invoke(input, config)) as typeof state; // the state of an agent
    }
  } catch (thrown) {
    error = (thrown as Error).message;
  }
  return {
    ...(error === undefined ? {} : { error }),
    messages: conversation((state["messages"] as BaseMessage[] | undefined) ?? []),
    requests: requestsOf(model),
    counts: Object.fromEntries(Object.entries(state).filter(([key]) => /^thread.*Count$/.test(key))),
  };
}

/** What is tried again is up to the middleware, as in LangChain's agent. */
const limits = { modelPatienceMs: 0 };
const agentOf = (parts: Parts): unknown => createDeepAgent({ limits, ...parts });
/** The same as a subagent, which is given the task as it stands. */
const delegating = ({ model, middleware, tools, checkpointer }: Parts): unknown =>
  createDeepAgent({
    limits,
    checkpointer,
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      if (ToolMessage.isInstance(last)) return { text: last.text };
      return { toolCalls: [{ name: "task", args: { description: last?.text, subagent_type: "worker" } }] };
    }),
    subagents: [{ name: "worker", description: "d", systemPrompt: "p", model, tools, middleware }],
  });

describe("LangChain's ready middleware does the same here as in LangChain's agent", () => {
  test.each(Object.entries(CASES))("%s", async (_name, example) => {
    const theirs = await observe(example, (parts) => createAgent(parts));
    expect(await observe(example, agentOf)).toEqual(theirs);
  });

  test.each(Object.entries(CASES))("in a subagent: %s", async (_name, { says = ["go"], ...example }) => {
    const once = { ...example, says: says.slice(0, 1) };
    const theirs = await observe(once, (parts) => createAgent(parts));
    const ours = await observe(once, delegating);
    expect(ours.requests).toEqual(theirs.requests);
    const [, told] = theirs.messages.slice(-1).flat();
    const report = theirs.error === undefined ? told : `Error: subagent 'worker' failed: ${theirs.error}`;
    expect(ours.messages.slice(-1).flat()[1]).toBe(report);
  });
});
