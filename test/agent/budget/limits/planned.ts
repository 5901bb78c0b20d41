import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { z } from "zod";
import {
  type Agent,
  type AgentEvent,
  buildAgent,
  type DeepAgentParams,
  type WorkOptions,
} from "../../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../../src/agent/build/create-deep-agent.ts";
import type { SubagentRunnable } from "../../../../src/agent/langgraph/definition.ts";
import { collect, paused, graphOf, resumeAgentInput } from "../../../support/run-agent.ts";
import { scriptedModel, type ScriptedModel, type ScriptedToolCall } from "../../../support/scripted-model.ts";

/** One reply of an agent: the calls it makes, what it uses of tokens, and what it says. */
export interface Turn {
  calls: ScriptedToolCall[];
  tokens?: number;
  text?: string;
}

/** What ran, in order: the tool with its argument. */
export const ran: string[] = [];

/** A tool with an effect outside. */
const effect = (name: string) =>
  tool(
    ({ key }) => {
      ran.push(`${name} ${key}`);
      return `${name} did ${key}`;
    },
    { name, description: name, schema: z.object({ key: z.string() }) },
  );

export const effects = () => [effect("act"), effect("ask")];

const worker = { name: "worker", description: "works", systemPrompt: "Work." };

/** Subagents of each kind. */
export const team = (): NonNullable<DeepAgentParams["subagents"]> => [
  worker,
  { ...worker, name: "twin", mode: "fork" },
  {
    name: "compiled",
    description: "works",
    runnable: createDeepAgent({
      model: planned(),
      tools: effects(),
      interruptOn: { ask: true },
    }) as unknown as SubagentRunnable, // its type states its channels
  },
];

export const call = (id: string, name: "ask" | "act" = "act"): ScriptedToolCall => ({
  id,
  name,
  args: { key: id },
});
export const ask = (id: string): ScriptedToolCall => call(id, "ask");
export const write = (id: string): ScriptedToolCall => ({
  id,
  name: "write_file",
  args: { file_path: `/${id}.md`, content: id },
});
export const task = (id: string, plan: Turn[], type = "worker"): ScriptedToolCall => ({
  id,
  name: "task",
  args: { description: JSON.stringify(plan), subagent_type: type },
});
/** `count` turns with one call each. */
export const turns = (id: string, count: number, tokens = 10): Turn[] =>
  Array.from({ length: count }, (_, n) => ({ calls: [call(`${id}${n}`)], tokens }));

/** Each agent follows the plan that its task names, reply by reply, then ends. */
const planned = (): ScriptedModel =>
  scriptedModel(({ messages }) => {
    const at = messages.findLastIndex((message) => HumanMessage.isInstance(message));
    const text = messages[at]?.text ?? "[]";
    if (!text.startsWith("[")) throw new Error("asked for a report, which is no part of a plan");
    const plan = JSON.parse(text) as Turn[]; // written by the test
    const said = messages.slice(at).filter((message) => AIMessage.isInstance(message));
    const turn = plan[said.length];
    const usage = { inputTokens: turn?.tokens ?? 10, outputTokens: 0 };
    return turn ? { text: turn.text ?? "", toolCalls: turn.calls, usage } : { text: "end", usage };
  });

/** An agent that asks a person before each call of `ask`, with two levels of subagents. */
export function agentWith(params: DeepAgentParams = {}): Agent {
  ran.length = 0;
  return agentAgain(params);
}

/** The same agent as another process makes it. */
const agentAgain = (params: DeepAgentParams = {}): Agent =>
  buildAgent({
    checkpointer: new MemorySaver(),
    model: planned(),
    tools: effects(),
    interruptOn: { ask: true },
    generalPurpose: false,
    subagents: team(),
    ...params,
    limits: { subagentDepth: 2, ...params.limits },
  });

export const go = (
  agent: Agent,
  plan: Turn[],
  runId = "run_1",
  options: Partial<WorkOptions> = {},
): Promise<AgentEvent[]> =>
  collect(agent, { kind: "task", task: JSON.stringify(plan) }, { runId, ...options });

export function approveFirst(agent: Agent, events: readonly AgentEvent[]): Promise<AgentEvent[]> {
  const [open] = paused(events);
  return collect(agent, resumeAgentInput({ [open?.id ?? ""]: { decisions: [{ type: "approve" }] } }));
}

/** Approves whatever waits, one after the other, each time in a new process. */
export async function approveAll(
  params: DeepAgentParams,
  events: readonly AgentEvent[],
): Promise<AgentEvent[]> {
  let all = [...events];
  while (all.at(-1)?.kind === "paused") all = await approveFirst(agentAgain(params), all);
  return all;
}

/** What became of each call of the main agent, as the thread keeps it. */
export async function results(agent: Agent): Promise<Record<string, string>> {
  const { values, next } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
  if (next.length > 0) throw new Error(`the graph is not at its end but before ${next.join(", ")}`);
  const messages: BaseMessage[] = values["messages"] ?? [];
  const found: Record<string, string> = {};
  const made = messages.flatMap((message) =>
    AIMessage.isInstance(message) ? (message.tool_calls ?? []).map(({ id = "" }) => id) : [],
  );
  for (const message of messages.filter((one) => ToolMessage.isInstance(one))) {
    if (found[message.tool_call_id] !== undefined) throw new Error(`two results of ${message.tool_call_id}`);
    found[message.tool_call_id] = message.text;
  }
  const without = made.filter((id) => found[id] === undefined);
  if (without.length > 0) throw new Error(`no result of ${without.join(", ")}`);
  return found;
}
