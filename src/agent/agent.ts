/** The only door between runs and the agent: its functions, and the types they speak. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, BaseMessage, HumanMessage } from "@langchain/core/messages";
import { defined } from "../core/unknown.ts";
import { capital, oneLine } from "../core/text.ts";
import { counted } from "../tools/format.ts";
import type { Agent } from "./contracts/agent.ts";
import { callSummary } from "./calls/report-call.ts";
import { isEvicted } from "./messages/kept-texts.ts";
import { callsOf, isResult } from "./messages/messages.ts";
import { assembleDeepAgent } from "./build/create-deep-agent.ts";
import type { DeepAgentParams } from "./build/params.ts";
import { ThreadAgent } from "./langgraph/thread-agent.ts";
import { type ResolveOptions, resolveModel } from "./models/resolve.ts";

export type { ModelLender, SamplingReply, SamplingRequest } from "./models/client-model.ts";
export type { InterruptOn } from "./layers/human-in-the-loop.ts";
export type { DeepAgentParams } from "./build/params.ts";
export type {
  ActionRequest,
  HitlRequest,
  HitlResponse,
  PendingInterrupt,
  PendingQuestion,
  QuestionReply,
} from "./contracts/question.ts";
export type { AgentPath, Inbox, InboxMessage, TokenUsage } from "./contracts/state.ts";
export type { CallIdentity, EffectLog, StoredOutcome } from "./contracts/middleware.ts";
export type { Agent, AgentInput, EarlierEnd, WorkOptions } from "./contracts/agent.ts";
export type { ChildRun, ChildRuns, NewChild } from "./contracts/children.ts";
export type { SharedBudget, Spent } from "./contracts/limits.ts";
export type { AgentEnd, AgentEvent, EventSink, StepEvent } from "./contracts/events.ts";

export const buildLlm = async (options: ResolveOptions): Promise<BaseChatModel> =>
  (await resolveModel(options)).model;

export { backgroundTasksMiddleware } from "./layers/planning.ts";
export { type WrittenMessages, findCall } from "./messages/kept-texts.ts";

/** Builds an agent from its parameters, which include everything from outside. */
export const buildAgent = (params: DeepAgentParams): Agent => new ThreadAgent(assembleDeepAgent(params));

/** A step on the way to the newest checkpoint of a thread. */
export interface ThreadStep {
  /** LangGraph's number of the step: grows along the thread. */
  number: number;
  checkpointId: string;
  /** Milliseconds since the epoch. */
  time: number;
  /** Additions of the step to the channel `messages`, one value for each task. */
  messages: unknown[];
}

/** Such as `Started 24 agents, updated the plan, called read_file /a.md`. */
function stepText(calls: readonly string[][], starting: string, calling: string): string {
  const agents = counted(calls.filter(([name]) => name === "task").length, "agent");
  const others: Readonly<Record<string, string>> = {
    task: `${starting} ${agents}`,
    write_todos: "updated the plan",
  };
  const lines = calls.map(([name = "", summary]) => others[name] ?? `${calling} ${summary}`);
  return capital([...new Set(lines)].join(", "));
}

/**
 * The steps of a thread that changed its conversation, oldest first: another thread can begin from each. `messageId`:
 * the newest message of a person until then.
 */
export function pointsOf(
  steps: readonly ThreadStep[],
): Array<Omit<ThreadStep, "messages"> & { messageId?: string; summary: string }> {
  let messageId: string | undefined;
  const lineOf = (message: BaseMessage): string => {
    if (!AIMessage.isInstance(message))
      return `${message.type === "human" ? "You" : message.type}: ${message.text}`;
    const calls = callsOf(message).map(({ name, args }) => [name, callSummary(name, args)]);
    if (calls.length === 0) return `Agent: ${message.text}`;
    return `${stepText(calls, "started", "called")}${message.text && `: ${message.text}`}`;
  };
  return steps.flatMap(({ messages, ...step }) => {
    // The placeholder of a message whose text moved into a file does not count as a new message.
    const added = messages
      .flat()
      .filter((message) => BaseMessage.isInstance(message))
      .filter((message) => !isEvicted(message));
    if (added.length === 0) return [];
    messageId = added.findLast((message) => HumanMessage.isInstance(message))?.id ?? messageId;
    const results = added.filter(isResult).map(({ name = "" }) => [name, name]);
    const said = added.filter((message) => !isResult(message)).map(lineOf);
    const lines = [stepText(results, "results of", "results of"), ...said].filter(Boolean);
    return [{ ...step, summary: oneLine(lines.join("; "), 160), ...defined({ messageId }) }];
  });
}
