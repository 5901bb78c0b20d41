/** The events of an agent at work. */
import type { Todo } from "../../tools/tool.ts";
import type { Question } from "../../tools/request.ts";
import type { CriterionVerdict } from "./goal.ts";
import type { HitlRequest, PendingInterrupt, PendingQuestion } from "./question.ts";
import type { AgentPath, ModelFailureReason, StopReason, TokenUsage } from "./state.ts";

/**
 * The events of an agent at work, in order. Everything but `paused` and `finished`, one of which
 * comes last, may be repeated when a run is resumed: consumers drop repeats by agent path and call id.
 */
export type AgentEvent = StepEvent | AgentEnd;

/** An event until the end. */
export type StepEvent = { agent: AgentPath } & (
  | { kind: "todos"; todos: Todo[] }
  /** The subagent waits until others have ended; `subagent_started` follows, unless the call is refused. */
  | { kind: "subagent_queued"; callId: string; name: string; description: string }
  | {
      kind: "subagent_started";
      callId: string;
      name: string;
      description: string;
      /** It works in the background, as a run of its own, whose id is the `callId`. */
      background?: true;
    }
  | {
      kind: "subagent_finished";
      callId: string;
      name: string;
      status: "success" | "error";
      report: string;
      /** Somebody cancelled it alone. */
      cancelled?: true;
    }
  | {
      kind: "tool_started";
      callId: string;
      tool: string;
      summary: string;
      /** The call of the program that made it. */
      within?: string;
      /** The call began before a crash and is not run again; its recorded outcome follows. */
      recalled?: true;
    }
  | {
      kind: "tool_finished";
      callId: string;
      tool: string;
      status: "success" | "error";
      summary: string;
      /** A person, or their deadline, decided against the call: it did not run. */
      rejected?: true;
      /** Source of its result, if neither the person nor the agent wrote it. */
      source?: string;
    }
  | {
      kind: "model_called";
      model: string;
      usage: TokenUsage;
      text: string;
      /** US dollars; absent if tokens or price are unknown. */
      costUsd?: number;
      /** This call was not a turn of the agent: it shortened the conversation. */
      purpose?: "summary";
    }
  | {
      kind: "file_changed";
      callId: string;
      path: string;
      /** Unified. Hunks have "one place" instead of line numbers if the backend does not return the whole text. */
      diff?: string;
      /** Lines that the whole change adds and removes, though `diff` may be cut; absent where they are not known. */
      added?: number;
      removed?: number;
    }
  | { kind: "approval_requested"; interruptId: string; request: HitlRequest }
  | { kind: "question_asked"; interruptId: string; question: Question; callId?: string }
  | {
      kind: "compacted";
      /** Long texts and arguments were shortened, or all before the newest part became a summary. */
      how: "shortened" | "summarized";
      /** Messages that the model does not see in full any more; the thread keeps them. */
      messages: number;
      /** Identifies the compacted view; equal if the same event is repeated. */
      to: string;
      /** File with the whole text of the summarized messages. */
      path?: string;
    }
  | {
      /** A model call failed in a way that may pass; nothing of a broken answer was used. */
      kind: "model_retry";
      model: string;
      reason: ModelFailureReason;
      /** For example `Model overloaded. Attempt 4 in 20 s.`. */
      message: string;
      /** Failures of this call in a row, from 1. */
      attempt: number;
      /** Until the next try. */
      pauseMs: number;
    }
  | { kind: "goal_judged"; round: number; rounds: number; verdicts: readonly CriterionVerdict[] }
  | { kind: "goal_ended"; round: number; outcome: "met" | "accepted" | "not_met"; reason?: string }
  | { kind: "warning"; message: string }
);

/** The end of work on a thread. */
export type AgentEnd =
  | {
      kind: "paused";
      interrupts: PendingInterrupt[];
      questions: PendingQuestion[];
      /** A model call waits for a client that lends its model. */
      modelAwaited: boolean;
      /** The agent waits for a subagent that works in the background, or for a message. */
      childAwaited: boolean;
    }
  | {
      kind: "finished";
      answer: string;
      structured?: unknown;
      /** Why the run ended early, if it did. */
      stopReason?: StopReason;
    };

/** Receives the events of an agent at work. */
export interface EventSink {
  /** Takes an event as it happens. Returns at once and never throws. */
  tell(event: StepEvent): void;
  /** Resolves once all events so far are stored. The results of a task are stored after its events. */
  stored(): Promise<void>;
}
