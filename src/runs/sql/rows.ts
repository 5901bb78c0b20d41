/** Rows of the run tables, and the objects that are read from them. */
import type { AgentPath, TokenUsage } from "../../agent/agent.ts";
import { type RunEvent, isEvent } from "../events.ts";
import type { Approval, FailureDetails, OpenQuestion, Run, RunHead, RunRequest, RunSummary } from "../run.ts";
import type { Answer, Decision, Question, RequestContent } from "../../tools/request.ts";
import { defined } from "../../core/unknown.ts";
import { type Json, fromJson } from "../../core/json.ts";
import { type Columns, type RowOf, readFields } from "./columns.ts";

/** Condition for rows with a `run_id`. */
export const IS_OF_PRINCIPAL =
  "EXISTS (SELECT 1 FROM runs WHERE runs.id = run_id AND principal = @principal)";

/** Fields of a run that are columns of its row. */
type RunFields = TokenUsage &
  Omit<Run, "schedule" | "waitsForChildren" | "leasedUntil" | "parent" | "usage" | "failure">;

/** A row of `runs`. Columns with a fixed vocabulary are written by this folder alone. */
export type RunRow = RowOf<RunFields> &
  Record<"number" | "lease_epoch" | "crashes" | "cost_nanos" | "unpriced_calls", number> &
  Record<`subagents_${"started" | "completed" | "failed" | "cancelled"}`, number> &
  Record<"occurrence" | "lease_expires_at" | "heartbeat_at" | "claimed_at", number | null> &
  Record<"parent_id" | "lease_owner" | "schedule_id" | "schedule_name" | "failure_message", string | null> &
  Record<"input_handed_over" | "runnable", 0 | 1> & {
    in_flight: 0 | 1 | 2;
    failure_reason: FailureDetails["reason"] | null;
    agent: Json<AgentPath> | null;
  };

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

export type EventRow = RowOf<Pick<RunEvent, "runId" | "seq" | "time" | "agent" | "kind">> & {
  data: Json<RunEvent["data"]>;
};

export type RequestRow = RowOf<Omit<Approval, "kind" | "index" | "callId" | "answer">> & {
  kind: RequestContent["kind"];
  position: number;
  /** Content of a request that is not an approval; null for one that is. */
  body: Json<Question> | null;
  decision: Json<Answer | Decision> | null;
  delivered: 0 | 1;
};

/** Columns that are fields of a run, and those that it is also made of where its answer does not matter. */
const HEAD =
  "id, thread_id, principal, environment, task, status, created_at, updated_at, last_seq, name, stop_reason";
export const HEAD_COLUMNS =
  `${HEAD}, lease_expires_at, runnable, schedule_id, schedule_name, occurrence` as const;
export type HeadRow = Pick<RunRow, Columns<typeof HEAD_COLUMNS>>;

export function toRunHead(row: HeadRow): RunHead {
  const { schedule_id: id, schedule_name: name, lease_expires_at: leasedUntil } = row;
  const occurrence = row.occurrence === null ? {} : { dueAt: row.occurrence };
  return {
    ...readFields(row, HEAD),
    ...(leasedUntil === null ? {} : { leasedUntil }),
    // A run that nobody may work on waits for people, and is `input_required`, or for its children.
    ...(row.status === "working" && row.runnable === 0 ? { waitsForChildren: true } : {}),
    ...(id === null ? {} : { schedule: { id, name: name ?? "", ...occurrence } }),
  };
}

const USAGE = "input_tokens, output_tokens, cached_input_tokens";

export function toRun(row: RunRow): Run {
  const { parent_id: runId, agent } = row;
  return {
    ...toRunHead(row),
    ...readFields(row, "todos, model, limits, goal, changes, unapplied, applied, forked_from"),
    usage: readFields(row, USAGE),
    ...(row.unpriced_calls > 0 ? {} : { costUsd: row.cost_nanos / NANOS }),
    ...(runId === null || agent === null ? {} : { parent: { runId, agent: fromJson(agent) } }),
    ...(row.ended_at === null ? {} : outcomeOf(row)),
  };
}

/** The end of a run. While the run works, `answer` holds the newest text, in case the run breaks off. */
function outcomeOf(row: RunRow): Partial<Run> {
  const { failure_reason: reason, failure_message: message } = row;
  return {
    ...readFields(row, "ended_at, answer, structured, cancel_reason"),
    // Nobody works on the plan any more.
    todos: fromJson(row.todos).map((todo) =>
      todo.status === "completed" ? todo : { ...todo, status: "pending" },
    ),
    ...(reason === null ? {} : { failure: { reason, message: message ?? "" } }),
  };
}

const SUMMED =
  `${HEAD_COLUMNS}, ${USAGE}, subagents_started, subagents_completed, subagents_failed, subagents_cancelled, cost_nanos, unpriced_calls, ended_at, failure_reason` as const;
export const SUMMARY_COLUMNS = `${SUMMED},
  CASE WHEN ended_at IS NULL THEN NULL ELSE substr(coalesce(failure_message, cancel_reason, answer), 1, 500) END
    AS outcome,
  (SELECT count(*) FROM questions WHERE run_id = runs.id AND delivered = 0 AND questions.status = 'pending') AS pending`;

export type SummaryRow = Pick<RunRow, Columns<typeof SUMMED>> & { outcome: string | null; pending: number };

export const toSummary = (row: SummaryRow): RunSummary => ({
  ...toRunHead(row),
  ...readFields(row, "ended_at, outcome, pending"),
  usage: readFields(row, USAGE),
  costUsd: row.cost_nanos / NANOS,
  hasUnknownCost: row.unpriced_calls > 0,
  subagents: subagentsOf(row),
  ...(row.failure_reason === null ? {} : { failure: { reason: row.failure_reason } }),
});

/** A subagent that had not ended with its run has failed, or was cancelled. */
function subagentsOf(row: SummaryRow): RunSummary["subagents"] {
  const { subagents_completed: completed, subagents_failed: failed, subagents_cancelled: cancelled } = row;
  const open = Math.max(0, row.subagents_started - completed - failed - cancelled);
  if (row.ended_at === null) return { completed, failed, cancelled, open };
  return row.status === "cancelled"
    ? { completed, failed, cancelled: cancelled + open, open: 0 }
    : { completed, failed: failed + open, cancelled, open: 0 };
}

/** Throws SyntaxError when no version wrote such an event. */
export function toEvent(row: EventRow): RunEvent {
  const { run_id: runId, seq, time, kind } = row;
  const event = { runId, seq, time, agent: fromJson(row.agent), kind, data: fromJson(row.data) };
  if (!isEvent(event)) throw new SyntaxError(`Event ${seq} of run ${runId} has unknown data.`);
  return event;
}

/** Columns of every request, answered or not. */
export const ASKED = "run_id, id, interrupt_id, agent, requested_at, expires_at, asked_by";
/** Columns of approvals alone. */
export const CALL = "tool, args, preview, allowed_decisions, same, ruled";

const QUESTION_STATUS: Readonly<Record<Approval["status"], OpenQuestion["status"]>> = {
  pending: "pending",
  approved: "answered",
  edited: "answered",
  rejected: "declined",
  withdrawn: "withdrawn",
};

export function toRequest(row: RequestRow): RunRequest {
  const { kind, position: index, status, body } = row;
  const answer = row.decision === null ? undefined : fromJson(row.decision);
  const answered = `${ASKED}, decided_at, decided_by` as const;
  const stored = { ...readFields(row, answered), index, ...defined({ answer }) };
  const content =
    kind === "approval"
      ? { kind, ...readFields(row, CALL), status }
      : { ...(body && fromJson(body)), status: QUESTION_STATUS[status] };
  return { ...content, ...stored } as RunRequest; // an answer is stored with the request that it fits
}
