import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { z } from "zod";
import {
  type Agent,
  type AgentEvent,
  buildAgent,
  type DeepAgentParams,
  type PendingInterrupt,
} from "../../../../src/agent/agent.ts";
import type { Decision } from "../../../../src/tools/request.ts";
import { collect, toolMessages, resumeAgentInput } from "../../../support/run-agent.ts";
import { scriptedModel, type ScriptedModel, type ScriptedToolCall } from "../../../support/scripted-model.ts";

/** What ran, in order: the tool with its argument. */
export const ran: string[] = [];

/** A tool with an effect outside. */
export const effect = (name: string) =>
  tool(
    ({ n }) => {
      ran.push(`${name} ${n}`);
      return `${name} did ${n}`;
    },
    { name, description: name, schema: z.object({ n: z.number() }) },
  );

export const call = (id: string, n = 1, name = "act"): ScriptedToolCall => ({ id, name, args: { n } });
export const task = (id: string, plan: ScriptedToolCall[], type = "worker"): ScriptedToolCall => ({
  id,
  name: "task",
  args: { description: JSON.stringify(plan), subagent_type: type },
});

/** Every agent makes the calls that the newest message of a person names, then ends. */
export const planned = (): ScriptedModel =>
  scriptedModel(({ messages }) => {
    const at = messages.findLastIndex((message) => HumanMessage.isInstance(message));
    if (messages.slice(at).some((message) => ToolMessage.isInstance(message))) return { text: "end" };
    return { toolCalls: JSON.parse(messages[at]?.text ?? "[]") as ScriptedToolCall[] }; // written by the test
  });

/** An agent with two tools with effects; one of them is asked about. Forgets what ran before. */
export function agentWith(params: DeepAgentParams = {}): Agent {
  ran.length = 0;
  return buildAgent({
    checkpointer: new MemorySaver(),
    model: planned(),
    tools: [effect("act"), effect("other")],
    interruptOn: { act: true },
    generalPurpose: false,
    ...params,
  });
}

export const go = (agent: Agent, calls: ScriptedToolCall[]): Promise<AgentEvent[]> =>
  collect(agent, { kind: "task", task: JSON.stringify(calls) });
export const answer = (
  agent: Agent,
  open: PendingInterrupt | undefined,
  decision: unknown,
): Promise<AgentEvent[]> =>
  collect(agent, resumeAgentInput({ [open?.id ?? ""]: { decisions: [decision as Decision] } })); // also what fits no type
/** Answers several questions at once, by their ids. */
export const answerAll = (
  agent: Agent,
  answers: Record<string, { decisions: unknown[] }>,
): Promise<AgentEvent[]> =>
  collect(agent, resumeAgentInput(answers as Record<string, { decisions: Decision[] }>)); // as `answer`
export const texts = async (agent: Agent): Promise<string[]> =>
  (await toolMessages(agent)).map(({ text }) => text);
export const shownIn = (open: PendingInterrupt | undefined) => open?.request.actionRequests[0];
export const approve = { type: "approve" };
export const edit = (name: unknown, args: unknown) => ({ type: "edit", editedAction: { name, args } });
