/** Approvals of runs, and what people approved for the rest of a run. */
import type { Decision } from "../../agent/agent.ts";
import { NewestOf } from "../../core/newest-of.ts";
import { type Approval, type Grant, type Principal, decidedStatus } from "../../runs/run.ts";
import { fieldsOf, valuesOf } from "./columns.ts";
import { readersOf, settle } from "./questions.ts";
import { ASKED, type ApprovalRow, CALL, IS_OF_PRINCIPAL, toApproval } from "./rows.ts";
import { type Steps, all, change, first, insert } from "./steps.ts";

export const { get, getOf, pendingOf } = readersOf("kind = 'approval'", toApproval);

/** False when it is stored already, decided or not. */
export function add(approval: Approval): Steps<boolean> {
  const row = { ...valuesOf(approval, ASKED), ...valuesOf(approval, CALL), position: approval.index };
  return insert("questions", row, "ON CONFLICT (run_id, id) DO NOTHING");
}

type NumberedRow = ApprovalRow & { number: number };

/** Rows of the run with `number > after`, oldest first. */
const after = (runId: string, number: number): Steps<NumberedRow[]> =>
  all<NumberedRow>(
    `SELECT * FROM questions INDEXED BY approvals_of_run
     WHERE run_id = @run_id AND number > @number AND kind = 'approval' ORDER BY number`,
    { run_id: runId, number },
  );

/** Oldest first. */
export function* ofRun(runId: string): Steps<Approval[]> {
  return (yield* after(runId, 0)).map(toApproval);
}

/** Compare-and-set: false when it was not pending any more. */
export const decide = (approval: Approval, decision: Decision, by: string, now: number): Steps<boolean> =>
  settle(approval, { status: decidedStatus(decision), decision }, by, now);

/**
 * The approvals of runs as views show them. A decision is never taken back, so that each is read once: a look
 * at a run costs the same after a thousand. Not for use within a transaction, which may be undone.
 */
export class ApprovalViews {
  readonly #decided = new NewestOf<{
    /** Number of the newest row that is in `approvals`; none before it is pending. */
    upTo: number;
    approvals: Approval[];
  }>(256);

  /** Oldest first. */
  *of(runId: string): Steps<Approval[]> {
    const known = this.#decided.get(runId) ?? { upTo: 0, approvals: [] };
    const rows = yield* after(runId, known.upTo);
    const firstPending = rows.findIndex(({ status }) => status === "pending");
    const decided = firstPending === -1 ? rows : rows.slice(0, firstPending);
    const approvals = [...known.approvals, ...decided.map(toApproval)];
    this.#decided.keep(runId, { upTo: decided.at(-1)?.number ?? known.upTo, approvals });
    return [...approvals, ...rows.slice(decided.length).map(toApproval)];
  }
}

interface GrantRow {
  tool: string;
  text: string;
  approval_id: string;
  granted_by: string;
  granted_at: number;
}

const toGrant = (row: GrantRow): Grant => fieldsOf(row, "tool, text, approval_id, granted_by, granted_at");

/** Grants all calls that count as the same as the one of this approval. */
export function* grant({ runId, id, tool, same }: Approval, by: string, now: number): Steps<void> {
  if (same === undefined) throw new Error(`No other call counts as the same as that of approval ${id}.`);
  const { key, text } = same;
  const given = { run_id: runId, key, tool, text, approval_id: id, granted_by: by, granted_at: now };
  yield* insert("run_grants", given, "ON CONFLICT (run_id, key) DO NOTHING");
}

/** The grant by which this call goes ahead without a question, where a person may approve it at all. */
export function* grantFor({ runId, same, allowedDecisions }: Approval): Steps<Grant | undefined> {
  if (same === undefined || !allowedDecisions.includes("approve")) return undefined;
  const sql = "SELECT * FROM run_grants WHERE run_id = @run_id AND key = @key";
  const row = yield* first<GrantRow>(sql, { run_id: runId, key: same.key });
  return row && toGrant(row);
}

/** Oldest first; none when the run is not the principal's. */
export function* grantsOf(principal: Principal, runId: string): Steps<Grant[]> {
  const sql = `SELECT * FROM run_grants WHERE run_id = @run_id AND ${IS_OF_PRINCIPAL} ORDER BY number`;
  return (yield* all<GrantRow>(sql, { run_id: runId, principal })).map(toGrant);
}

export function* revokeGrants(runId: string): Steps<void> {
  yield* change("DELETE FROM run_grants WHERE run_id = @run_id", { run_id: runId });
}
