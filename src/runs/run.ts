import type { AgentPath, Decision, DecisionType, TokenUsage } from "../agent/agent-core.ts";
export type { AgentPath, AgentPathSegment, Decision, DecisionType, TokenUsage } from "../agent/agent-core.ts";
import type { CallPreview, Todo } from "../tools/tool.ts";

/** `working ⇄ input_required → completed | failed | cancelled`; the last three are final. */
export type RunStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** Whose run it is: `local` on stdio, the token's subject on HTTP. */
export type Principal = string;

/** Stable reasons why a run failed. Clients branch on them. */
export type FailureReason =
  | "model_auth"
  | "model_not_found"
  | "model_rate_limited"
  | "model_unavailable"
  | "model_stream_broken"
  | "model_error"
  | "context_overflow"
  | "max_iterations"
  | "recursion_limit"
  | "configuration"
  | "storage"
  | "internal";

export interface Run {
  id: string;
  threadId: string;
  principal: Principal;
  task: string;
  status: RunStatus;
  /** Milliseconds since the epoch, like every time here. */
  createdAt: number;
  updatedAt: number;
  endedAt?: number;
  todos: Todo[];
  usage: TokenUsage;
  /** Final text, when completed (or what there was, when it ended early). */
  answer?: string;
  structured?: unknown;
  failure?: { reason: FailureReason; message: string };
  /** Why it was cancelled, in the words of who cancelled it. */
  cancelReason?: string;
  /** Sequence number of the newest journal event. */
  lastSeq: number;
}

export type ApprovalStatus = "pending" | "approved" | "edited" | "rejected" | "withdrawn";

/** A tool call that waits for a person, or was decided. Id = interrupt id + ":" + index. */
export interface Approval {
  id: string;
  runId: string;
  interruptId: string;
  index: number;
  agent: AgentPath;
  tool: string;
  args: Record<string, unknown>;
  preview: CallPreview;
  allowedDecisions: DecisionType[];
  status: ApprovalStatus;
  requestedAt: number;
  decidedAt?: number;
  /** Channel of the answer: `elicitation`, `input_required`, `answer_deep_agent`, `terminal`, … */
  decidedBy?: string;
  decision?: Decision;
}

/** A subagent of the run with its newest step. */
export interface SubagentView {
  agent: AgentPath;
  name: string;
  description: string;
  status: "working" | "completed" | "failed";
  /** One line: what it does now, or did last. */
  step: string;
  toolCalls: number;
}

/** One line of a run's append-only journal. */
export interface RunEvent {
  runId: string;
  /** Counts from 1 without gaps. */
  seq: number;
  time: number;
  agent: AgentPath;
  kind: RunEventKind;
  data: Record<string, unknown>;
}

export type RunEventKind =
  | "run_started"
  | "run_resumed"
  | "run_parked"
  | "run_completed"
  | "run_failed"
  | "run_cancelled"
  | "todos"
  | "subagent_started"
  | "subagent_finished"
  | "tool_started"
  | "tool_finished"
  | "model_called"
  | "file_changed"
  | "approval_requested"
  | "approval_decided"
  | "warning";

/** Everything a client may see of a run, at one moment. */
export interface RunView {
  run: Run;
  /** All approvals of the run, oldest first. */
  approvals: Approval[];
  subagents: SubagentView[];
  /** Virtual paths the run changed, sorted. */
  filesChanged: string[];
  /** One line: what happened last. */
  activity: string;
}

export const isFinal = (status: RunStatus): boolean =>
  status === "completed" || status === "failed" || status === "cancelled";
