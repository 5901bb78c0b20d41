/** Limits of one run, and its end when one is reached. */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { defined } from "../../core/unknown.ts";
import { RunFailure } from "../../core/errors.ts";
import type { AgentLimits, Spent } from "../contracts/limits.ts";
import { type LimitReason, STOP_REASONS, type StopReason } from "../contracts/state.ts";
import { callsOf, isTask, lastAnswer } from "../messages/messages.ts";
import { replyCost, reportedModel } from "./prices.ts";

/** Default number of tool calls, and of subagents, that one agent runs at a time. */
export const DEFAULT_PARALLEL = 8;

export interface Reached {
  reason: LimitReason;
  /** All limits of the agent whose limit it is. */
  limits: AgentLimits;
  /** Scope of the end: the whole run, or a subagent and the subagents below it. */
  whose: "run" | "subagent";
}

/** Returns the messages of the current run: those after its task. */
export function currentRun(messages: readonly BaseMessage[]): { id: string; messages: BaseMessage[] } {
  const at = messages.findLastIndex(isTask);
  return { id: messages[at]?.id ?? "", messages: messages.slice(at + 1) };
}

export function spentBy(reply: BaseMessage, limits: AgentLimits): Spent {
  if (!AIMessage.isInstance(reply) || !reply.usage_metadata) return { tokens: 0, costUsd: 0 };
  const { input_tokens: input, output_tokens: output } = reply.usage_metadata;
  const costUsd = replyCost(reply, limits.prices);
  if (costUsd === undefined && limits.costUsd !== undefined) {
    const problem = `limits.costUsd is set, but the price of the model '${reportedModel(reply)}' is not known. Add it to limits.prices, or remove limits.costUsd.`;
    throw new RunFailure("configuration", problem);
  }
  return { tokens: input + output, costUsd: costUsd ?? 0 };
}

/** True if a call is one too many; calls count in the order they were made in. `inner`: its number in its program. */
export function isBeyondLimit(
  messages: readonly BaseMessage[],
  callId: string,
  { toolCalls }: AgentLimits,
  inner = 0,
): boolean {
  if (toolCalls === undefined) return false;
  const made = currentRun(messages).messages.flatMap(callsOf);
  return made.findLastIndex(({ id }) => id === callId) + inner >= toolCalls;
}

/** Instruction to report, for an agent that must stop. */
export const reportRequest = (reached: Reached): string =>
  `You must stop: ${describeLimit(reached)} is reached, and no more tools can be called. Report now what is done and where the results are, what is not done, what is not verified, and what should come next.`;

/** The last answer of the run, besides messages that ended it. */
export const lastRunAnswer = (messages: readonly BaseMessage[]): string =>
  lastAnswer(currentRun(messages).messages.filter((message) => readStopReason(message) === undefined));

/**
 * The last message of an agent that a limit ended. It carries what its `report`, the reply to `reportRequest`, has used.
 * `isNested`: the agent gets no messages from people.
 */
export function stopMessage(
  reached: Reached,
  messages: readonly BaseMessage[],
  { id, isNested, report }: { id: string; isNested: boolean; report?: AIMessage | undefined },
): AIMessage {
  const advice = isNested ? "" : " Send a follow-up message to continue.";
  const said = lastRunAnswer(messages);
  const reported = report?.text.trim() ?? "";
  const words = reported === "" ? said && `What it said before:\n${said}` : `Report:\n${reported}`;
  return new AIMessage({
    id,
    content: `Stopped: ${describeLimit(reached)} is reached.${advice}${words && `\n\n${words}`}`,
    ...defined({ usage_metadata: report?.usage_metadata }),
    response_metadata: {
      ...defined({ model_name: report && reportedModel(report) }),
      stop_reason: reached.reason,
    },
  });
}

/** `the limit of 40 tokens for one run`. */
export function describeLimit({ reason, limits, whose }: Reached): string {
  if (reason === "max_steps") return "the limit of graph steps (recursionLimit)";
  const amounts: Readonly<Record<typeof reason, string>> = {
    max_iterations: `${limits.maxIterations} model calls`,
    max_tool_calls: `${limits.toolCalls} tool calls`,
    max_tokens: `${limits.tokens} tokens`,
    max_cost: `${limits.costUsd} US dollars`,
    max_wall_time: `${limits.wallTimeMs} ms at work`,
    repeated_calls: `${limits.repeatedTurns} turns of repeated calls`,
  };
  return `the limit of ${amounts[reason]} for one ${whose}`;
}

/** Why a run ended early, read from its last message; undefined if it did not. */
export function readStopReason(message: BaseMessage | undefined): StopReason | undefined {
  if (!AIMessage.isInstance(message)) return undefined;
  return STOP_REASONS.find((reason) => reason === message.response_metadata["stop_reason"]);
}
