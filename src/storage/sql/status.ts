/** The only writer of `runs.status`: takes legal transitions alone, and each only from the status it starts at. */
import type { EarlierEnd } from "../../agent/agent.ts";
import { toJson } from "../../core/json.ts";
import { type FailureDetails, type OpenStatus, type Transition, isFinal, settle } from "../../runs/run.ts";
import * as approvals from "./approvals.ts";
import * as questions from "./questions.ts";
import * as models from "./model-requests.ts";
import type { RunRow } from "./rows.ts";
import { type Steps, change, first } from "./steps.ts";

/** The stored facts of a run's end. */
export interface Ending {
  now: number;
  /** Replaces the newest text of the main agent as the answer. */
  answer?: string;
  structured?: unknown;
  stopReason?: string;
  failure?: FailureDetails;
  cancelReason?: string;
}

/** The end of the previous run in the thread, if it did not complete. */
export function* endBefore(runId: string): Steps<EarlierEnd | undefined> {
  const row = yield* first<Pick<RunRow, "status">>(
    `SELECT earlier.status FROM runs earlier JOIN runs run USING (thread_id)
     WHERE run.id = @id AND earlier.number < run.number ORDER BY earlier.number DESC LIMIT 1`,
    { id: runId },
  );
  return row?.status === "cancelled" || row?.status === "failed" ? row.status : undefined;
}

/**
 * Makes the status of an open run agree with what it waits for: approvals, a client's model. Gives the status it has
 * then. Belongs into the transaction of what it waits for.
 */
export function* update(runId: string, status: OpenStatus, now: number): Steps<OpenStatus> {
  const waitsFor = (yield* questions.countPending(runId)) + (yield* models.countWaiting(runId));
  const transition = settle(status, waitsFor);
  if (transition === undefined) return status;
  const sql = "UPDATE runs SET status = @to, updated_at = @now WHERE id = @id AND status = @from";
  expectChange(yield* change(sql, { id: runId, ...transition, now }), runId, transition);
  return status === "working" ? "input_required" : "working";
}

/** The same for a run that may be over; then nothing changes. */
export function* updateOpen(runId: string, now: number): Steps<void> {
  const row = yield* first<Pick<RunRow, "status">>("SELECT status FROM runs WHERE id = @id", { id: runId });
  if (row !== undefined && !isFinal(row.status)) yield* update(runId, row.status, now);
}

/** Ends a run. Its pending approvals must have been withdrawn. */
export function* end(runId: string, transition: Transition, ending: Ending): Steps<void> {
  const { now, answer, structured, stopReason, failure, cancelReason } = ending;
  const changes = yield* change(
    `UPDATE runs SET status = @to, updated_at = @now, ended_at = @now,
       answer = coalesce(@answer, answer), structured = @structured, stop_reason = @stop_reason,
       failure_reason = @failure_reason, failure_message = @failure_message,
       cancel_reason = @cancel_reason, runnable = 0, in_flight = 0
     WHERE id = @id AND status = @from`,
    {
      id: runId,
      ...transition,
      now,
      answer: answer ?? null,
      structured: structured === undefined ? null : toJson(structured),
      stop_reason: stopReason ?? null,
      failure_reason: failure?.reason ?? null,
      failure_message: failure?.message ?? null,
      cancel_reason: cancelReason ?? null,
    },
  );
  expectChange(changes, runId, transition);
  yield* change("DELETE FROM effects WHERE run_id = @run_id", { run_id: runId });
  yield* approvals.revokeGrants(runId);
  yield* models.forget(runId);
}

function expectChange(changes: number, runId: string, { from, to }: Transition): void {
  if (changes !== 1) throw new Error(`Run ${runId} is not "${from}" and cannot become "${to}".`);
}
