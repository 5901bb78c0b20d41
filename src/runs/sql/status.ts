/** The only writer of `runs.status`: takes legal transitions alone, and each only from the status it starts at. */
import type { EarlierEnd } from "../../agent/agent.ts";
import type { RunResult } from "../ports.ts";
import { type FailureDetails, type OpenStatus, type Transition, isFinal } from "../run.ts";
import { revokeGrants } from "./grants.ts";
import { reportEnd } from "./child-reports.ts";
import { columnValues } from "./columns.ts";
import * as requests from "./requests.ts";
import * as models from "./model-requests.ts";
import { type RunRow, treeOf } from "./rows.ts";
import { type Steps, change, first } from "./steps.ts";

/** The stored facts of a run's end. The answer replaces the newest text of the main agent. */
export interface Ending extends Partial<RunResult> {
  now: number;
  failure?: FailureDetails;
  cancelReason?: string;
  /** The run that started it ends too, and is not notified. */
  isSilent?: true;
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
 * Updates the status of an open run, and of its parent, by their open requests: approvals, a client's
 * model. A run also waits for the requests of runs that it started. Returns its new status. Belongs into the transaction
 * of the request.
 */
export function* update(
  row: Pick<RunRow, "id" | "parent_id"> & { status: OpenStatus },
  now: number,
): Steps<OpenStatus> {
  const { id: runId, parent_id: parent, status } = row;
  if (parent !== null) yield* updateOpen(parent, now);
  const waitsFor = (yield* requests.countPending(treeOf(row))) + (yield* models.countWaiting(runId));
  const transition = settle(status, waitsFor);
  if (transition === undefined) return status;
  const sql = "UPDATE runs SET status = @to, updated_at = @now WHERE id = @id AND status = @from";
  if ((yield* change(sql, { id: runId, ...transition, now })) !== 1) throw notFrom(runId, transition);
  return status === "working" ? "input_required" : "working";
}

/** The change of an open run's status that its number of open questions requires; `undefined`: none. */
export function settle(status: OpenStatus, pending: number): Transition | undefined {
  if (status === "working" && pending > 0) return { from: "working", to: "input_required" };
  if (status === "input_required" && pending === 0) return { from: "input_required", to: "working" };
  return undefined;
}

/** Updates the status of a run that may have ended; then nothing changes. */
export function* updateOpen(runId: string, now: number): Steps<void> {
  const sql = "SELECT id, parent_id, status FROM runs WHERE id = @id";
  const row = yield* first<Pick<RunRow, "id" | "parent_id" | "status">>(sql, { id: runId });
  if (row !== undefined && !isFinal(row.status)) yield* update({ ...row, status: row.status }, now);
}

/** Ends a run. Its pending approvals must have been withdrawn. */
export function* end(runId: string, transition: Transition, ending: Ending): Steps<void> {
  const { now } = ending;
  const row = yield* first<RunRow>(
    `UPDATE runs SET status = @to, updated_at = @now, ended_at = @now,
       answer = coalesce(@answer, answer), structured = @structured, stop_reason = @stop_reason,
       failure_reason = @reason, failure_message = @message, cancel_reason = @cancel_reason,
       runnable = 0, in_flight = 0
     WHERE id = @id AND status = @from RETURNING *`,
    {
      id: runId,
      now,
      ...transition,
      ...columnValues(ending, "answer, structured, stop_reason, cancel_reason"),
      ...columnValues(ending.failure ?? {}, "reason, message"),
    },
  );
  if (row === undefined) throw notFrom(runId, transition);
  yield* change("DELETE FROM effects WHERE run_id = @run_id", { run_id: runId });
  yield* revokeGrants(runId);
  yield* models.forget(runId);
  if (row.parent_id === null || ending.isSilent) return;
  yield* updateOpen(row.parent_id, now);
  yield* reportEnd(row, now);
}

const notFrom = (runId: string, { from, to }: Transition): Error =>
  new Error(`Run ${runId} is not "${from}" and cannot become "${to}".`);
