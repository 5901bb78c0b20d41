/** Rows of the tables of runs, and what is made of them. */
import type { AgentPath, Decision, DecisionType, SameCalls } from "../../agent/agent.ts";
import type { RunLimits } from "../../runs/choices.ts";
import { type RunEvent, type RunEventKind, isEvent } from "../../runs/events.ts";
import type {
  Approval,
  ApprovalStatus,
  FailureReason,
  OpenQuestion,
  QuestionStatus,
  Run,
  RunHead,
  RunStatus,
  RunSummary,
} from "../../runs/run.ts";
import type { Answer, CallPreview, Question, Todo } from "../../tools/tool.ts";
import { type Json, fromJson } from "../../core/json.ts";

/** Condition for rows with a `run_id`. */
export const IS_OF_PRINCIPAL =
  "EXISTS (SELECT 1 FROM runs WHERE runs.id = run_id AND principal = @principal)";

/** A row of `runs`. Columns with a fixed vocabulary are written by this folder alone. */
export interface RunRow {
  number: number;
  id: string;
  thread_id: string;
  principal: string;
  environment: string;
  idempotency_key: string | null;
  task: string;
  name: string | null;
  model: string | null;
  limits: Json<RunLimits> | null;
  goal: Json<string[]> | null;
  changes: "propose" | null;
  unapplied: number | null;
  status: RunStatus;
  created_at: number;
  updated_at: number;
  ended_at: number | null;
  todos: Json<Todo[]>;
  input_tokens: number;
  output_tokens: number;
  cached_input_tokens: number;
  answer: string | null;
  structured: Json<unknown> | null;
  stop_reason: string | null;
  failure_reason: FailureReason | null;
  failure_message: string | null;
  cancel_reason: string | null;
  last_seq: number;
  input_handed_over: 0 | 1;
  runnable: 0 | 1;
  runnable_since: number;
  in_flight: 0 | 1 | 2;
  lease_owner: string | null;
  lease_epoch: number;
  lease_expires_at: number | null;
  heartbeat_at: number | null;
  crashes: number;
  claimed_at: number | null;
  forked_from: string | null;
  traceparent: string | null;
  unanswered_call: string | null;
  asked_at: number | null;
  cost_nanos: number;
  unpriced_calls: number;
  subagents_started: number;
  subagents_completed: number;
  subagents_failed: number;
  subagents_cancelled: number;
  schedule_id: string | null;
  schedule_name: string | null;
  occurrence: number | null;
  parent_id: string | null;
  parent_call: string | null;
  agent: Json<AgentPath> | null;
}

/** The run in whose journal a run writes, and to which its questions belong. */
export const rootOf = ({ id, parent_id }: Pick<RunRow, "id" | "parent_id">): string => parent_id ?? id;

/** A run that asks: `root` has its questions. */
export interface Asker {
  root: string;
  /** Absent: the root and all runs that it started. */
  asker?: string;
}

/** A run, and those that it started. */
export const treeOf = (row: Pick<RunRow, "id" | "parent_id">): Asker =>
  row.parent_id === null ? { root: row.id } : askerOf(row);

export const askerOf = (row: Pick<RunRow, "id" | "parent_id">): Asker => ({
  root: rootOf(row),
  asker: row.id,
});

/** One US dollar in the unit of the column `cost_nanos`. */
export const NANOS = 1_000_000_000;

/** A row of `run_events`. */
export interface EventRow {
  run_id: string;
  seq: number;
  time: number;
  agent: Json<AgentPath>;
  kind: RunEventKind;
  data: Json<RunEvent["data"]>;
}

/** A row of `questions` that is an approval. */
export interface ApprovalRow {
  run_id: string;
  id: string;
  interrupt_id: string;
  position: number;
  agent: Json<AgentPath>;
  tool: string;
  args: Json<Record<string, unknown>>;
  preview: Json<CallPreview>;
  allowed_decisions: Json<DecisionType[]>;
  same: Json<SameCalls> | null;
  status: ApprovalStatus;
  requested_at: number;
  expires_at: number | null;
  decided_at: number | null;
  decided_by: string | null;
  decision: Json<Decision> | null;
  delivered: 0 | 1;
  asked_by: string | null;
}

/** A row of `questions` that is none. */
export type QuestionRow = Omit<ApprovalRow, "decision"> & {
  kind: Question["kind"];
  body: Json<Question>;
  decision: Json<Answer> | null;
};

/** A row of `questions`, of either kind. */
export type AnyQuestionRow = (ApprovalRow & { kind: "approval" }) | QuestionRow;

export function toRun(row: RunRow): Run {
  return {
    id: row.id,
    threadId: row.thread_id,
    principal: row.principal,
    environment: row.environment,
    task: row.task,
    status: row.status,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    todos: fromJson(row.todos),
    usage: {
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cachedInputTokens: row.cached_input_tokens,
    },
    lastSeq: row.last_seq,
    ...(row.name === null ? {} : { name: row.name }),
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.limits === null ? {} : { limits: fromJson(row.limits) }),
    ...(row.goal === null ? {} : { goal: fromJson(row.goal) }),
    ...(row.changes === null ? {} : { changes: row.changes }),
    ...(row.unapplied === null ? {} : { unapplied: row.unapplied }),
    ...(row.lease_expires_at === null ? {} : { leasedUntil: row.lease_expires_at }),
    ...waitingOf(row),
    ...scheduleOf(row),
    ...(row.parent_id === null || row.agent === null
      ? {}
      : { parent: { runId: row.parent_id, agent: fromJson(row.agent) } }),
    ...(row.forked_from === null ? {} : { forkedFrom: row.forked_from }),
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at, ...outcome(row) }),
  };
}

/** A run that nobody may work on waits for people, and is `input_required`, or for its children. */
const waitingOf = ({
  status,
  runnable,
}: Pick<RunRow, "status" | "runnable">): Pick<Run, "waitsForChildren"> =>
  status === "working" && runnable === 0 ? { waitsForChildren: true } : {};

function scheduleOf({
  schedule_id: id,
  schedule_name: name,
  occurrence,
}: Pick<RunRow, "schedule_id" | "schedule_name" | "occurrence">): Pick<Run, "schedule"> {
  if (id === null) return {};
  return { schedule: { id, name: name ?? "", ...(occurrence === null ? {} : { dueAt: occurrence }) } };
}

/** The columns of a run that are read where its answer does not matter. */
export const HEAD_COLUMNS = `id, thread_id, principal, environment, task, name, status, created_at, updated_at,
  last_seq, lease_expires_at, runnable, schedule_id, schedule_name, occurrence`;

export type HeadRow = Pick<
  RunRow,
  | "id"
  | "thread_id"
  | "principal"
  | "environment"
  | "task"
  | "name"
  | "status"
  | "created_at"
  | "updated_at"
  | "last_seq"
  | "lease_expires_at"
  | "runnable"
  | "schedule_id"
  | "schedule_name"
  | "occurrence"
>;

export const toRunHead = (row: HeadRow): RunHead => ({
  id: row.id,
  threadId: row.thread_id,
  principal: row.principal,
  environment: row.environment,
  task: row.task,
  status: row.status,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  lastSeq: row.last_seq,
  ...(row.name === null ? {} : { name: row.name }),
  ...(row.lease_expires_at === null ? {} : { leasedUntil: row.lease_expires_at }),
  ...waitingOf(row),
  ...scheduleOf(row),
});

/** The columns that a list shows of a run, beside its head. */
export const SUMMARY_COLUMNS = `${HEAD_COLUMNS}, ended_at, input_tokens, output_tokens, cached_input_tokens,
  cost_nanos, unpriced_calls, subagents_started, subagents_completed, subagents_failed, subagents_cancelled,
  stop_reason, failure_reason,
  CASE WHEN ended_at IS NULL THEN NULL ELSE substr(coalesce(failure_message, cancel_reason, answer), 1, 500) END
    AS outcome,
  (SELECT count(*) FROM questions WHERE run_id = runs.id AND delivered = 0 AND questions.status = 'pending') AS pending`;

export type SummaryRow = HeadRow &
  Pick<
    RunRow,
    | "ended_at"
    | "input_tokens"
    | "output_tokens"
    | "cached_input_tokens"
    | "cost_nanos"
    | "unpriced_calls"
    | "subagents_started"
    | "subagents_completed"
    | "subagents_failed"
    | "subagents_cancelled"
    | "stop_reason"
    | "failure_reason"
  > & { outcome: string | null; pending: number };

export function toSummary(row: SummaryRow): RunSummary {
  return {
    ...toRunHead(row),
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at }),
    usage: {
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cachedInputTokens: row.cached_input_tokens,
    },
    costUsd: row.cost_nanos / NANOS,
    hasUnknownCost: row.unpriced_calls > 0,
    subagents: subagentsOf(row),
    pending: row.pending,
    ...(row.outcome === null ? {} : { outcome: row.outcome }),
    ...(row.stop_reason === null ? {} : { stopReason: row.stop_reason }),
    ...(row.failure_reason === null ? {} : { failure: { reason: row.failure_reason } }),
  };
}

/** A subagent that had not ended with its run has failed, or was cancelled. */
function subagentsOf(row: SummaryRow): RunSummary["subagents"] {
  const [completed, failed] = [row.subagents_completed, row.subagents_failed];
  const cancelled = row.subagents_cancelled;
  const open = Math.max(0, row.subagents_started - completed - failed - cancelled);
  if (row.ended_at === null) return { completed, failed, cancelled, open };
  return row.status === "cancelled"
    ? { completed, failed, cancelled: cancelled + open, open: 0 }
    : { completed, failed: failed + open, cancelled, open: 0 };
}

/** The end of a run. While the run works, `answer` holds the newest text, in case the run breaks off. */
function outcome(
  row: RunRow,
): Pick<Run, "answer" | "structured" | "stopReason" | "failure" | "cancelReason"> {
  return {
    ...(row.answer === null ? {} : { answer: row.answer }),
    ...(row.structured === null ? {} : { structured: fromJson(row.structured) }),
    ...(row.stop_reason === null ? {} : { stopReason: row.stop_reason }),
    ...(row.failure_reason === null
      ? {}
      : { failure: { reason: row.failure_reason, message: row.failure_message ?? "" } }),
    ...(row.cancel_reason === null ? {} : { cancelReason: row.cancel_reason }),
  };
}

/** Throws SyntaxError when no version wrote such an event. */
export function toEvent(row: EventRow): RunEvent {
  const { run_id: runId, seq, time, kind } = row;
  const event = { runId, seq, time, agent: fromJson(row.agent), kind, data: fromJson(row.data) };
  if (!isEvent(event)) throw new SyntaxError(`Event ${seq} of run ${runId} has unknown data.`);
  return event;
}

export function toApproval(row: ApprovalRow): Approval {
  return {
    id: row.id,
    runId: row.run_id,
    interruptId: row.interrupt_id,
    index: row.position,
    agent: fromJson(row.agent),
    ...(row.asked_by === null ? {} : { askedBy: row.asked_by }),
    tool: row.tool,
    args: fromJson(row.args),
    preview: fromJson(row.preview),
    allowedDecisions: fromJson(row.allowed_decisions),
    ...(row.same === null ? {} : { same: fromJson(row.same) }),
    status: row.status,
    requestedAt: row.requested_at,
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
    ...(row.decided_at === null ? {} : { decidedAt: row.decided_at }),
    ...(row.decided_by === null ? {} : { decidedBy: row.decided_by }),
    ...(row.decision === null ? {} : { decision: fromJson(row.decision) }),
  };
}

const STATUSES: Readonly<Record<ApprovalStatus, QuestionStatus>> = {
  pending: "pending",
  approved: "answered",
  edited: "answered",
  rejected: "declined",
  withdrawn: "withdrawn",
};

export function toQuestion(row: QuestionRow): OpenQuestion {
  return {
    id: row.id,
    runId: row.run_id,
    agent: fromJson(row.agent),
    ...(row.asked_by === null ? {} : { askedBy: row.asked_by }),
    question: fromJson(row.body),
    status: STATUSES[row.status],
    requestedAt: row.requested_at,
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
    ...(row.decided_at === null ? {} : { decidedAt: row.decided_at }),
    ...(row.decided_by === null ? {} : { decidedBy: row.decided_by }),
    ...(row.decision === null ? {} : { answer: fromJson(row.decision) }),
  };
}
