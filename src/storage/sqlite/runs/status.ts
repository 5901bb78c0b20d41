import type { Statement } from "better-sqlite3";
import type { EarlierEnd } from "../../../agent/agent.ts";
import {
  type FailureDetails,
  type OpenStatus,
  type RunStatus,
  type Transition,
  isFinal,
  settle,
} from "../../../runs/run.ts";
import { toJson } from "../../../core/json.ts";
import type { Database } from "../database.ts";
import type { ApprovalStore, GrantStore } from "./approvals.ts";
import type { RunRow } from "./events.ts";
import type { ModelRequestStore } from "./requests.ts";

/** What is kept of a run's end. */
export interface Ending {
  now: number;
  /** Replaces the newest text of the main agent as the answer. */
  answer?: string;
  structured?: unknown;
  stopReason?: string;
  failure?: FailureDetails;
  cancelReason?: string;
}

type EndRow = Pick<
  RunRow,
  | "answer"
  | "structured"
  | "stop_reason"
  | "failure_reason"
  | "failure_message"
  | "cancel_reason"
  | "updated_at"
> & { id: string; from: RunStatus; to: RunStatus };

/**
 * The only writer of `runs.status`: takes legal transitions alone, and each only from the status it
 * starts at. Belongs inside the transaction of the change's event and approvals.
 */
export class StatusStore {
  readonly #move: Statement<{ id: string; from: RunStatus; to: RunStatus; now: number }>;
  readonly #end: Statement<EndRow>;
  readonly #forgetEffects: Statement<[string]>;
  readonly #status: Statement<[string], Pick<RunRow, "status">>;
  readonly #before: Statement<[string], Pick<RunRow, "status">>;
  readonly #approvals: ApprovalStore;
  readonly #grants: GrantStore;
  readonly #models: ModelRequestStore;

  constructor(database: Database, approvals: ApprovalStore, grants: GrantStore, models: ModelRequestStore) {
    this.#approvals = approvals;
    this.#grants = grants;
    this.#models = models;
    this.#move = database.prepare(
      "UPDATE runs SET status = @to, updated_at = @now WHERE id = @id AND status = @from",
    );
    this.#end = database.prepare(
      `UPDATE runs SET status = @to, updated_at = @updated_at, ended_at = @updated_at,
         answer = coalesce(@answer, answer), structured = @structured, stop_reason = @stop_reason,
         failure_reason = @failure_reason, failure_message = @failure_message, cancel_reason = @cancel_reason, runnable = 0, in_flight = 0
       WHERE id = @id AND status = @from`,
    );
    this.#status = database.prepare("SELECT status FROM runs WHERE id = ?");
    this.#before = database.prepare(
      `SELECT earlier.status FROM runs earlier JOIN runs run USING (thread_id)
       WHERE run.id = ? AND earlier.number < run.number ORDER BY earlier.number DESC LIMIT 1`,
    );
    this.#forgetEffects = database.prepare("DELETE FROM effects WHERE run_id = ?");
  }

  /** How the run before this one in its thread ended, when it did not complete. */
  endBefore(runId: string): EarlierEnd | undefined {
    const status = this.#before.get(runId)?.status;
    return status === "cancelled" || status === "failed" ? status : undefined;
  }

  /** Makes the status of an open run agree with what it waits for: approvals, a client's model; gives the status it has then. */
  settle(runId: string, status: OpenStatus, now: number): OpenStatus {
    const transition = settle(status, this.#approvals.pendingOf(runId) + this.#models.waitingOf(runId));
    if (transition === undefined) return status;
    expectChange(this.#move.run({ id: runId, ...transition, now }).changes, runId, transition);
    return status === "working" ? "input_required" : "working";
  }

  /** The same for a run that may be over; then there is nothing to settle. */
  settleOpen(runId: string, now: number): void {
    const row = this.#status.get(runId);
    if (row !== undefined && !isFinal(row.status)) this.settle(runId, row.status, now);
  }

  /** Ends a run. Its pending approvals must have been withdrawn. */
  end(runId: string, transition: Transition, ending: Ending): void {
    const { now, answer, structured, stopReason, failure, cancelReason } = ending;
    const result = this.#end.run({
      id: runId,
      ...transition,
      updated_at: now,
      answer: answer ?? null,
      structured: structured === undefined ? null : toJson(structured),
      stop_reason: stopReason ?? null,
      failure_reason: failure?.reason ?? null,
      failure_message: failure?.message ?? null,
      cancel_reason: cancelReason ?? null,
    });
    expectChange(result.changes, runId, transition);
    this.#forgetEffects.run(runId);
    this.#grants.revoke(runId);
    this.#models.forget(runId);
  }
}

function expectChange(changes: number, runId: string, { from, to }: Transition): void {
  if (changes !== 1) throw new Error(`Run ${runId} is not "${from}" and cannot become "${to}".`);
}
