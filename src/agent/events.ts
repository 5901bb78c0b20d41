import type { ModelFailureReason } from "./models/failure-facts.ts";
import type { StopReason } from "./limits/limits.ts";
import type { FileData } from "../backends/backend.ts";
import type { CallPreview, Todo } from "../tools/tool.ts";

/** One subagent on the way from the main agent: the `task` call that started it, and its type. */
export interface AgentPathSegment {
  /** Tool call id of the `task` call. */
  callId: string;
  /** Subagent type, such as `general-purpose`. */
  name: string;
  /** Its task in a few words: the first sentence, at most 60 characters. */
  task?: string;
}

/** Where in the tree of agents something happened; `[]` is the main agent. */
export type AgentPath = readonly AgentPathSegment[];

export type DecisionType = "approve" | "edit" | "reject";

/** Later calls that a person can approve together with one. */
export interface SameCalls {
  /** Equal for all of them, and for no others. */
  key: string;
  /** Which they are, in words for a person: `edit_file of /a.md, …`. */
  text: string;
}

/** One gated call that waits for a person. */
export interface ActionRequest {
  name: string;
  args: Record<string, unknown>;
  description: string;
  toolCallId: string;
  preview?: CallPreview;
  /** Absent: no other call counts as the same. */
  same?: SameCalls;
}

export interface ReviewConfig {
  actionName: string;
  allowedDecisions: DecisionType[];
  argsSchema?: Record<string, unknown>;
}

/** Payload of an interrupt. Ours carry one action request; stock middleware may carry several. */
export interface HitlRequest {
  actionRequests: ActionRequest[];
  reviewConfigs: ReviewConfig[];
  /** Where the call was made. */
  agent?: AgentPath;
  /** From the second question about a call on, its number. */
  question?: number;
  /** Digest of the call as each question about it showed it, this one last. */
  shown?: string[];
}

export type Decision =
  | { type: "approve" }
  | { type: "edit"; editedAction: { name: string; args: Record<string, unknown> } }
  | {
      type: "reject";
      message?: string;
      /** Nobody decided in time, or not what can be done. Denies the call even where a person may not reject it. */
      expired?: true;
    };

export interface HitlResponse {
  decisions: Decision[];
}

/** Tokens of one or more model calls. */
export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  /** Part of `inputTokens` that came from the provider's prompt cache. */
  cachedInputTokens: number;
}

export interface PendingInterrupt {
  /** Of this very question: when a call is changed after its approval, it is asked about under another id. */
  id: string;
  request: HitlRequest;
}

/**
 * What an agent tells while it works, in order. Everything but `paused` and `finished`, one of which
 * comes last, may be repeated when a run is resumed: consumers drop repeats by agent path and call id.
 */
export type AgentEvent =
  | { kind: "todos"; agent: AgentPath; todos: Todo[] }
  | { kind: "subagent_started"; agent: AgentPath; callId: string; name: string; description: string }
  | {
      kind: "subagent_finished";
      agent: AgentPath;
      callId: string;
      name: string;
      status: "success" | "error";
      report: string;
    }
  | {
      kind: "tool_started";
      agent: AgentPath;
      callId: string;
      tool: string;
      summary: string;
      /** It was begun before a crash and is not run again: what is told now is how that went. */
      recalled?: true;
    }
  | {
      kind: "tool_finished";
      agent: AgentPath;
      callId: string;
      tool: string;
      status: "success" | "error";
      summary: string;
    }
  | {
      kind: "model_called";
      agent: AgentPath;
      model: string;
      usage: TokenUsage;
      text: string;
      /** US dollars; absent when tokens or price are not known. */
      costUsd?: number;
      /** The call was no turn of the agent: it shortened the conversation. */
      purpose?: "summary";
    }
  | {
      kind: "file_changed";
      agent: AgentPath;
      callId: string;
      path: string;
      /** For people; without line numbers for an edit, which knows only what it replaced. */
      diff?: string;
    }
  | { kind: "approval_requested"; agent: AgentPath; interruptId: string; request: HitlRequest }
  | {
      kind: "compacted";
      agent: AgentPath;
      /** Long texts and arguments were shortened, or all before the newest part became a summary. */
      how: "shortened" | "summarized";
      /** Messages that the model does not see in full any more; the thread keeps them. */
      messages: number;
      /** Names what the model sees from here on: equal when the same is told again. */
      to: string;
      /** File with the whole text of what was summarized. */
      path?: string;
    }
  | {
      /** A model call failed in a way that may pass; nothing of a broken answer was used. */
      kind: "model_retry";
      agent: AgentPath;
      model: string;
      reason: ModelFailureReason;
      /** Such as `model overloaded, trying again in 20 s (3rd time)`. */
      message: string;
      /** Failures of this call in a row, from 1. */
      attempt: number;
      /** Until the next try. */
      pauseMs: number;
    }
  | { kind: "warning"; agent: AgentPath; message: string }
  | {
      kind: "paused";
      interrupts: PendingInterrupt[];
      /** A model call waits for a client that lends its model. */
      modelAwaited: boolean;
    }
  | {
      kind: "finished";
      answer: string;
      structured?: unknown;
      /** Why it ended early, with what it had. */
      stopReason?: StopReason;
    };

/** What an agent thread holds, as far as runs and clients care. */
export interface AgentSnapshot {
  todos: Todo[];
  /** Files of the thread state by path. */
  files: Record<string, FileData>;
  /** Text of the last assistant message without tool calls; empty when there is none. */
  answer: string;
}
