/** The state of an agent's thread, its place in the tree of agents, and why it ended. */
import type { BaseMessage } from "@langchain/core/messages";
import type { FileData, MaybePromise } from "../../backends/backend.ts";
import type { Todo } from "../../tools/tool.ts";

/**
 * Files of a thread by absolute virtual path. A subagent's state holds only its own changes, deletions (`null`)
 * included, over the files of the agent that delegated to it.
 */
export type FilesState = Readonly<Record<string, FileData | null>>;

/** The place to which a hook may send the agent instead of the usual next step. */
export type JumpTarget = "model" | "tools" | "end";

export type TextsByName = Readonly<Record<string, string>>;

/** The state of an agent thread; middleware adds channels of its own. */
export interface AgentState {
  messages: BaseMessage[];
  files: FilesState;
  todos: Todo[];
  structuredResponse?: unknown;
  [channel: string]: unknown;
}

export type StateUpdate = Partial<AgentState> & { jumpTo?: JumpTarget };

/** Channels that layers have for themselves: they decide how an agent sees its conversation. */
export const CONTEXT_CHANNELS = {
  /** The parts that compaction has moved out of the model's sight. */
  compaction: "_summarization",
  /** Messages whose media the provider refused, with its words. */
  refusedMedia: "_refusedMedia",
  /** The tools that the model has got, the first one first. */
  loadedTools: "_loadedTools",
  /** The instructions that the prompt has. */
  instructions: "_instructions",
  /** The calls whose results have other instructions, by file or folder. */
  laterInstructions: "_laterInstructions",
} as const;

/** One subagent on the way from the main agent: the `task` call that started it, and its type. */
export interface AgentPathSegment {
  callId: string;
  /** Subagent type, such as `general-purpose`. */
  name: string;
  /** Its task in a few words: the first sentence, at most 60 characters. */
  task?: string;
}

/** The place in the tree of agents; `[]` is the main agent. */
export type AgentPath = readonly AgentPathSegment[];

/** A message to an agent that is at work: of a person, or the report of a subagent that worked in the background. */
export interface InboxMessage {
  /** Becomes the id of the message in the thread, by which the agent knows that it has it. */
  id: string;
  text: string;
  /** The subagent whose report it is. */
  from?: ReportingChild;
}

/** A background subagent that has ended: its type, and the thread with its files. */
export interface ReportingChild {
  name: string;
  threadId: string;
}

/** The messages to an agent since it began. */
export interface Inbox {
  /** All messages so far, oldest first, those it has included. */
  messages(): MaybePromise<readonly InboxMessage[]>;
}

/** Tokens of one or more model calls. */
export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  /** Part of `inputTokens` that came from the provider's prompt cache. */
  cachedInputTokens: number;
}

/**
 * Why a run ended early, with the results so far. `max_output_tokens`: its answer is as long as the model may answer.
 * `goal_not_met`: its judge did not find every criterion met.
 */
export type StopReason = (typeof STOP_REASONS)[number];

export const STOP_REASONS = [
  "max_iterations",
  "max_tool_calls",
  "max_tokens",
  "max_cost",
  "max_wall_time",
  "max_steps",
  "repeated_calls",
  "max_output_tokens",
  "goal_not_met",
] as const;

export type LimitReason = Exclude<StopReason, "max_output_tokens" | "goal_not_met">;

/** A stable reason of a failed run, as far as models cause it. */
export type ModelFailureReason =
  | "model_auth"
  | "model_not_found"
  | "model_rate_limited"
  | "model_unavailable"
  | "model_stream_broken"
  | "model_error"
  | "context_overflow";
