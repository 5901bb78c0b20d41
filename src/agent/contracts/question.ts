/** Questions to a person about calls, and their answers. */
import type {
  Answer,
  CallPreview,
  Decision,
  DecisionType,
  Question,
  SameCalls,
} from "../../tools/request.ts";
import type { RuledRequest } from "../../rules/call.ts";
import type { AgentPath } from "./state.ts";

/** One gated call that waits for a person. */
export interface ActionRequest {
  name: string;
  args: Record<string, unknown>;
  description: string;
  toolCallId: string;
  preview?: CallPreview;
  /** Absent: no other call counts as the same. */
  same?: SameCalls;
  /** The call for rules that allow calls; absent if none may allow it. */
  ruled?: RuledRequest;
  /** The id by which this call alone is answered. Set where all waiting calls are shown as one interrupt. */
  interruptId?: string;
  /** The agent that made the call. Set where `interruptId` is. */
  agent?: AgentPath;
}

export interface ReviewConfig {
  actionName: string;
  allowedDecisions: DecisionType[];
  argsSchema?: Record<string, unknown>;
}

/** Payload of an interrupt. A stored one of ours has one action request; a shown one has all that wait. */
export interface HitlRequest {
  actionRequests: ActionRequest[];
  reviewConfigs: ReviewConfig[];
  /** The agent that made the calls. Absent if several agents did. */
  agent?: AgentPath;
  /** The number of the question about this call, from the second one on. */
  question?: number;
  /** Digest of the call as each question about it showed it, this one last. */
  shown?: string[];
  program?: AskedByProgram;
}

/** The questions of a program so far. Each time it asks, it starts from its top when there are answers. */
export interface AskedByProgram {
  /** Digests of the program's own call, as questions about it showed it. */
  outer: string[];
  /** The questions that were asked together, oldest first: the calls, with digests of each as questions showed it. */
  batches: Array<Array<{ number: number; shown: string[] }>>;
}

export interface HitlResponse {
  decisions: Decision[];
}

export interface PendingInterrupt {
  /** The id of this question. A call that changes after its approval is asked about under another id. */
  id: string;
  request: HitlRequest;
}

export interface AskedQuestion {
  question: Question;
  agent: AgentPath;
  toolCallId: string;
  /** The task's number of the question, from the second one on. */
  number?: number;
  program?: AskedByProgram;
}

export interface PendingQuestion {
  id: string;
  /** The call that asks, if it is known. */
  callId?: string;
  question: Question;
  agent: AgentPath;
}

/** The value that resumes an interrupt: decisions about calls, or the answer to another question. */
export type QuestionReply = HitlResponse | Answer;
