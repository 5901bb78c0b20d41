import type { AgentPath, SamplingRequest, TokenUsage } from "../agent/agent.ts";
import { shortTime } from "../core/clock.ts";
import { oneLine } from "../core/text.ts";
import { GENERAL_PURPOSE, type Todo } from "../tools/tool.ts";
import type { Answer, CallRequest, Decision, Question, RequestContent } from "../tools/request.ts";
import type { RunChoices } from "./choices.ts";
import type { GoalView } from "./goal.ts";
import words from "./words.json" with { type: "json" };

export type { AgentPath, SamplingReply, TokenUsage } from "../agent/agent.ts";

/** Result of a demand; or a stable reason for its refusal, with words for people. */
export type OrRefused<Done, Code> = ({ ok: true } & Done) | { ok: false; code: Code; message: string };

export type FinalStatus = "completed" | "failed" | "cancelled";
/** Statuses of a run that is not over. `input_required`: it waits for an approval, or for a client's model. */
export type OpenStatus = "working" | "input_required";
/** `working ⇄ input_required → completed | failed | cancelled`; the last three are final. */
export type RunStatus = OpenStatus | FinalStatus;

/** Owner of a run: `local` on stdio, the token's subject on HTTP. */
export type Principal = string;

/** Principal whose runs the terminal shows: everyone without a token. */
export const LOCAL: Principal = "local";

/** Rights that a token can have. */
export const SCOPES = ["run", "approve", "read"] as const;
export type Scope = (typeof SCOPES)[number];

/** Acts on runs of a principal, as far as its scopes allow. */
export interface Holder {
  readonly principal: Principal;
  /** Read at each use: those of a session may grow. Absent: everything is allowed, as without authentication. */
  readonly scopes?: readonly string[];
}

/** Stable reasons why a run failed. Clients branch on them. */
export const FAILURE_REASONS = [
  "model_auth",
  "model_not_found",
  "model_rate_limited",
  "model_unavailable",
  "model_stream_broken",
  "model_error",
  "context_overflow",
  "no_structured_response",
  "no_answer",
  "middleware_error",
  "max_iterations",
  "recursion_limit",
  "server_crashes",
  "configuration",
  "storage",
  "internal",
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** Why a run failed: a stable reason, and a text for people. */
export type FailureDetails = { reason: FailureReason; message: string };

/** The schedule that started a run. Without `dueAt`, a person did, outside its times. */
export interface RunSchedule {
  id: string;
  /** Its name when the run started. */
  name: string;
  dueAt?: number;
}

/** A run without its answer, which may be long. */
export interface RunHead {
  id: string;
  threadId: string;
  principal: Principal;
  /** Key of the servers that can continue it: only processes with the same text work on it. */
  environment: string;
  task: string;
  /** Name that a person chose. Default: the task. */
  name?: string;
  /** Absent: no schedule started it. */
  schedule?: RunSchedule;
  /** Nobody works on it until a subagent that works in the background has ended. */
  waitsForChildren?: true;
  status: RunStatus;
  /** Milliseconds since the epoch, like every time here. */
  createdAt: number;
  updatedAt: number;
  /** Until when a process that works on it may be silent. Absent: nobody works on it. */
  leasedUntil?: number;
  /** Sequence number of the newest journal event. */
  lastSeq: number;
  /** Reason why the run completed early with a partial result, such as `max_iterations`. */
  stopReason?: string;
}

/** With the choices that were made for it; limits of the server that are lower count instead. */
export interface Run extends RunHead, Omit<RunChoices, "changes"> {
  /** The point of another thread, such as `thr_a@7`, that this run's thread began from. */
  forkedFrom?: string;
  /** It works on a copy of the workspace, and a person reviews what of its changes is applied. */
  changes?: "propose";
  /** Number of files that it proposes and nobody applied. Absent: not known. */
  unapplied?: number;
  /** Files of the folder that have its proposed changes, whole or in part. */
  applied?: Record<string, "whole" | "part">;
  /** The run whose agent started it in the background, and its place in the tree of agents. */
  parent?: { runId: string; agent: AgentPath };
  endedAt?: number;
  todos: Todo[];
  usage: TokenUsage;
  /** US dollars of its model calls. Absent: the price of one is not known. */
  costUsd?: number;
  /** Final text, when completed (or what there was, when it ended early). */
  answer?: string;
  structured?: unknown;
  failure?: FailureDetails;
  /** Why it was cancelled, in the words of who cancelled it. */
  cancelReason?: string;
}

/** The outcome of what somebody wants of a run that does not exist, or is another principal's. */
export const noRun = (runId: string) => ({
  ok: false as const,
  code: "not_found" as const,
  message: `There is no run ${runId}.`,
});

/** Longest name of a run, in characters. */
export const MAX_NAME = 120;
/** Longest task in characters: about 25,000 tokens, which leave any model room to work. */
export const MAX_TASK = 100_000;

/** The text that stands for a run wherever it is named. */
export const nameOf = ({ name, task }: Pick<Run, "name" | "task">): string => name ?? task;

export const STATUS_WORDS: Readonly<Record<RunStatus, string>> = words.statuses;

const LIMITS: Readonly<Record<string, string>> = words.limits;

const NOT_MET = "goal_not_met";

/** True of an answer that is as long as the model may answer, and so may lack its end. */
export const isCut = (stopReason: string | undefined): boolean => stopReason === "max_output_tokens";

/** The status in words of a run that ended early, such as `stopped at a limit (steps)`. */
export const endedEarly = (stopReason: string): string =>
  stopReason === NOT_MET
    ? "ended without meeting its goal"
    : `stopped at a limit (${LIMITS[stopReason] ?? stopReason})`;

/** True if a limit ended a run with this reason. */
export const isLimit = (stopReason: string): boolean => stopReason !== NOT_MET;

export interface RunSummary extends RunHead {
  endedAt?: number;
  usage: TokenUsage;
  /** US dollars of the model calls whose price is known. */
  costUsd: number;
  hasUnknownCost: boolean;
  /** Number of subagents by outcome. `open`: at work, or queued. */
  subagents: { completed: number; failed: number; cancelled: number; open: number };
  /** Number of approvals and questions that wait for a person. */
  pending: number;
  /** Place in line; absent while a server works on it, or it waits for an answer. */
  place?: Place;
  /** The beginning of the answer, or why there is none; absent while it is open. */
  outcome?: string;
  failure?: Pick<FailureDetails, "reason">;
}

export interface RunFilter {
  status?: RunStatus;
  threadId?: string;
  /** Name of its folder, without the path. */
  folder?: string;
  /** In the task or the answer, whatever its case. */
  text?: string;
  /** Leaves answers out, which are long. */
  tasksOnly?: boolean;
}

/** A request to a person, with its content by its kind and what became of it. */
export type RunRequest = Approval | OpenQuestion;

interface StoredRequest<Status extends string, Given> {
  /** For a call: interrupt ID + ":" + index. Otherwise the interrupt ID itself. */
  id: string;
  runId: string;
  interruptId: string;
  /** Place among the requests of one interrupt. */
  index: number;
  agent: AgentPath;
  /** The run of a background subagent that waits for the answer. Default: `runId` itself. */
  askedBy?: string;
  /** The call that waits for the answer, if it is known. Views have it, and `ask` receives it. */
  callId?: string;
  status: Status;
  requestedAt: number;
  /** When a call is denied, and a question left unanswered. Absent: it waits as long as a person needs. */
  expiresAt?: number;
  decidedAt?: number;
  /** Channel of the answer: `elicitation`, `input_required`, `answer_deep_agent`, `terminal`, …, or `deadline`. */
  decidedBy?: string;
  answer?: Given;
}

/** A tool call that waits for approval, or was decided. */
export type Approval = CallRequest &
  StoredRequest<"pending" | "approved" | "edited" | "rejected" | "withdrawn", Decision>;

/** A question that is not about the approval of a call. */
export type OpenQuestion = Question &
  StoredRequest<"pending" | "answered" | "declined" | "withdrawn", Answer>;

/** A request that waits. `task`: name of its run, or the task if it has none. */
export type PendingRequest = RunRequest & { task: string };

export const isApproval = (request: RunRequest): request is Approval => request.kind === "approval";
export const isQuestion = (request: RunRequest): request is OpenQuestion => request.kind !== "approval";

const STORED: Readonly<Record<keyof StoredRequest<never, never>, true>> = {
  id: true,
  runId: true,
  interruptId: true,
  index: true,
  agent: true,
  askedBy: true,
  callId: true,
  status: true,
  requestedAt: true,
  expiresAt: true,
  decidedAt: true,
  decidedBy: true,
  answer: true,
};

/** Content of a request, without the fields that are stored with it. */
export function contentOf(request: RunRequest): RequestContent {
  const content = Object.entries(request).filter(([name]) => !Object.hasOwn(STORED, name));
  return Object.fromEntries(content) as RequestContent; // all but the stored fields
}

/** Everything that waits for a person, oldest first. */
export const waitingIn = ({ requests }: Pick<RunView, "requests">): RunRequest[] =>
  requests.filter(({ status }) => status === "pending");

/** Standing approval of calls that count as the same, until the run ends. */
export interface Grant {
  tool: string;
  /** Description of these calls. */
  text: string;
  /** The approval that granted it, with the person and the time. */
  approvalId: string;
  grantedBy: string;
  grantedAt: number;
}

/** The decider of a call that a person had approved together with the one of this id. */
export const sameAs = (approvalId: string): string => `same as ${approvalId}`;

/** The decider of a call that rules allowed begins so; their texts follow. */
export const BY_RULE = "rule ";

/** Display name of a subagent: `Compare the prices`, or `researcher (Compare the prices)`. */
export const agentName = ({ name, task }: AgentPath[number]): string =>
  oneLine(!task ? name : name === GENERAL_PURPOSE ? task : `${name} (${task})`, 130);

/** True if the agent at `path` is `agent`, or works for it. */
export const isWithin = (agent: AgentPath, path: AgentPath): boolean =>
  agent.every(({ callId }, depth) => path[depth]?.callId === callId);

/** True if both paths lead to one agent. */
export const isSameAgent = (one: AgentPath, other: AgentPath): boolean =>
  one.length === other.length && isWithin(one, other);

/** The decider of an approval whose time has run out. */
export const DEADLINE = "deadline";

/** From when to when, in milliseconds since the epoch. */
export type Span = readonly [start: number, end: number];

/** A call without an end. `within`: the call of the program that made it. */
export interface OpenCall {
  callId: string;
  tool: string;
  within?: string | undefined;
}

export interface AgentWork {
  startedAt?: number;
  endedAt?: number;
  toolCalls: number;
  /** When it was busy with tools, oldest first; calls that follow closely may be one span. */
  busy: readonly Span[];
  /** Its calls that have begun and not ended, in their order. */
  openCalls?: readonly OpenCall[];
  /** When the oldest tool call that is still at work began; absent while none is. */
  busySince?: number;
  /** The newest that it called; empty before that. */
  model: string;
  usage: TokenUsage;
  /** US dollars; absent when the price of any call is not known. */
  costUsd?: number;
  /** Its newest call of a model failed, and is made again. */
  isRetrying?: true;
}

/** A subagent of the run with its newest step. */
export interface SubagentView extends AgentWork {
  agent: AgentPath;
  name: string;
  description: string;
  /** `queued`: it waits until others have ended. `cancelled`: the run was, before the agent had ended. */
  status: "queued" | "working" | "completed" | "failed" | "cancelled";
  /** One line: its current or last step. */
  step: string;
  /**
   * True if it works in the background: it takes messages and can be cancelled by itself. Its run's id ends its path.
   */
  background?: true;
}

/** Everything a client may see of a run, at one moment. */
export interface RunView {
  run: Run;
  /** All requests of the run to a person, oldest first. */
  requests: RunRequest[];
  /** Calls that need no approval any more, oldest first; empty once the run has ended. */
  grants: Grant[];
  mainAgent: AgentWork;
  subagents: SubagentView[];
  /** Absent: the run has none. */
  goal?: GoalView;
  /** Virtual paths the run changed, sorted. */
  filesChanged: string[];
  /** One line: what happened last, or that it waits for its turn. */
  activity: string;
  /** Place in line; absent while a server works on it, or it waits for an answer. */
  place?: Place;
  /** Model calls that a client is to answer. */
  modelCalls: OpenModelCall[];
  models: ModelUsage[];
}

/** Usage of one model in one part of a run. */
export interface ModelUsage extends TokenUsage {
  /** The name that its provider reports; empty if it reports none. */
  model: string;
  role: "main" | "subagents" | "summary";
  calls: number;
  /** US dollars; absent when the tokens or the price of any call are not known. */
  costUsd?: number;
}

/** A model call for a client to answer, without its content. */
export interface OpenModelCall {
  id: string;
  /** No client answered for a while: the run waits, and keeps no resources. */
  waiting: boolean;
}

export interface ModelCall {
  id: string;
  request: SamplingRequest;
}

/** Allowed changes of status. An approval that is still pending keeps a run from completing. */
export const TRANSITIONS = {
  working: ["input_required", "completed", "failed", "cancelled"],
  input_required: ["working", "failed", "cancelled"],
} as const satisfies Record<OpenStatus, readonly RunStatus[]>;

type To<From extends OpenStatus> = (typeof TRANSITIONS)[From][number];
/** One legal change of status. An illegal pair does not compile. */
export type Transition = {
  [From in OpenStatus]: { [Next in To<From>]: { from: From; to: Next } }[To<From>];
}[OpenStatus];

export function isFinal(status: RunStatus): status is FinalStatus {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The end of an open run before its agent had finished. */
export function breakOff(status: OpenStatus, to: "failed" | "cancelled"): Transition {
  return status === "working" ? { from: "working", to } : { from: "input_required", to };
}

/** Why an answer was not used. */
export function alreadyAnswered({ kind, status, decidedBy, expiresAt }: RunRequest): string {
  const by = decidedBy === undefined ? "" : ` (${decidedBy})`;
  if (kind !== "approval")
    return status === "withdrawn"
      ? "This question no longer needs an answer: the run has ended, or the agent has continued without it."
      : `This question has already been ${status}${by}.`;
  if (decidedBy === DEADLINE)
    return `Too late: nobody decided by ${shortTime(expiresAt ?? 0)}, so this was denied.`;
  if (status === "withdrawn")
    return "This no longer needs a decision: the run ended or continued without the call.";
  return `This has already been decided: ${status}${by}.`;
}

export function isFailureReason(code: string): code is FailureReason {
  return FAILURE_REASONS.some((reason) => reason === code);
}

/** The thread and the number a point's name is made of; `undefined` for the name of a thread. */
export function parsePoint(name: string): { threadId: string; number: number } | undefined {
  const [, threadId, number] = /^(.+)@(\d{1,9})$/s.exec(name) ?? [];
  return threadId === undefined ? undefined : { threadId, number: Number(number) };
}

/** Place of a run among those that wait for a server of its workspace. */
export interface Place {
  /** Counts from 1. */
  number: number;
  waiting: number;
  /** Runs that servers of the workspace work on. */
  atWork: number;
}
