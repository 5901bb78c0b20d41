/** Approvals of runs, and what people approved for the rest of a run. */
import type { Decision } from "../../agent/agent.ts";
import { toJson } from "../../core/json.ts";
import { NewestOf } from "../../core/newest-of.ts";
import {
  type Approval,
  type Grant,
  type PendingApproval,
  type Principal,
  decidedStatus,
} from "../../runs/run.ts";
import { PENDING_OF_PRINCIPAL } from "./questions.ts";
import { type ApprovalRow, IS_OF_PRINCIPAL, toApproval } from "./rows.ts";
import { type Steps, all, change, first } from "./steps.ts";

/** False when it is stored already, decided or not. */
export function* add(approval: Approval): Steps<boolean> {
  const changes = yield* change(
    `INSERT INTO questions (run_id, id, interrupt_id, position, agent, tool, args, preview,
       allowed_decisions, same, status, requested_at, expires_at, asked_by)
     VALUES (@run_id, @id, @interrupt_id, @position, @agent, @tool, @args, @preview,
       @allowed_decisions, @same, @status, @requested_at, @expires_at, @asked_by)
     ON CONFLICT (run_id, id) DO NOTHING`,
    {
      run_id: approval.runId,
      id: approval.id,
      interrupt_id: approval.interruptId,
      position: approval.index,
      agent: toJson(approval.agent),
      tool: approval.tool,
      args: toJson(approval.args),
      preview: toJson(approval.preview),
      allowed_decisions: toJson(approval.allowedDecisions),
      same: approval.same === undefined ? null : toJson(approval.same),
      status: approval.status,
      requested_at: approval.requestedAt,
      expires_at: approval.expiresAt ?? null,
      asked_by: approval.askedBy ?? null,
    },
  );
  return changes === 1;
}

export function* get(runId: string, id: string): Steps<Approval | undefined> {
  const sql = "SELECT * FROM questions WHERE run_id = @run_id AND id = @id AND kind = 'approval'";
  const row = yield* first<ApprovalRow>(sql, { run_id: runId, id });
  return row && toApproval(row);
}

/** The same, if the run is the principal's. */
export function* getOf(principal: Principal, runId: string, id: string): Steps<Approval | undefined> {
  const sql = `SELECT * FROM questions WHERE run_id = @run_id AND id = @id AND kind = 'approval' AND ${IS_OF_PRINCIPAL}`;
  const row = yield* first<ApprovalRow>(sql, { run_id: runId, id, principal });
  return row && toApproval(row);
}

type NumberedRow = ApprovalRow & { number: number };

/** Rows of the run with `number > after`, oldest first. */
function after(runId: string, number: number): Steps<NumberedRow[]> {
  return all<NumberedRow>(
    `SELECT * FROM questions INDEXED BY approvals_of_run
     WHERE run_id = @run_id AND number > @number AND kind = 'approval' ORDER BY number`,
    { run_id: runId, number },
  );
}

/** Oldest first. */
export function* ofRun(runId: string): Steps<Approval[]> {
  return (yield* after(runId, 0)).map(toApproval);
}

/** Those of any run of the principal, oldest first. */
export function* pendingOf(principal: Principal, limit: number): Steps<PendingApproval[]> {
  const rows = yield* all<ApprovalRow & { task: string }>(
    `SELECT questions.*, coalesce(runs.name, task) AS task ${PENDING_OF_PRINCIPAL} AND kind = 'approval'
     ORDER BY questions.number LIMIT @limit`,
    { principal, limit },
  );
  return rows.map((row) => ({ ...toApproval(row), task: row.task }));
}

/** Compare-and-set: false when it was not pending any more. */
export function* decide(approval: Approval, decision: Decision, by: string, now: number): Steps<boolean> {
  const changes = yield* change(
    `UPDATE questions SET status = @status, decided_at = @decided_at, decided_by = @decided_by,
       decision = @decision
     WHERE run_id = @run_id AND id = @id AND status = 'pending'`,
    {
      run_id: approval.runId,
      id: approval.id,
      status: decidedStatus(decision),
      decided_at: now,
      decided_by: by,
      decision: toJson(decision),
    },
  );
  return changes === 1;
}

interface DecidedApprovals {
  /** Number of the newest row that is in `approvals`; none before it is pending. */
  upTo: number;
  approvals: Approval[];
}

/**
 * The approvals of runs as views show them. A decision is never taken back, so that each is read once: a look
 * at a run costs the same after a thousand. Not for use within a transaction, which may be undone.
 */
export class ApprovalViews {
  readonly #decided = new NewestOf<DecidedApprovals>(256);

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

/** Grants all calls that count as the same as the one of this approval. */
export function* grant({ runId, id, tool, same }: Approval, by: string, now: number): Steps<void> {
  if (same === undefined) throw new Error(`No other call counts as the same as that of approval ${id}.`);
  const { key, text } = same;
  yield* change(
    `INSERT INTO run_grants (run_id, key, tool, text, approval_id, granted_by, granted_at)
     VALUES (@run_id, @key, @tool, @text, @approval_id, @granted_by, @granted_at)
     ON CONFLICT (run_id, key) DO NOTHING`,
    { run_id: runId, key, tool, text, approval_id: id, granted_by: by, granted_at: now },
  );
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

const toGrant = (row: GrantRow): Grant => ({
  tool: row.tool,
  text: row.text,
  approvalId: row.approval_id,
  grantedBy: row.granted_by,
  grantedAt: row.granted_at,
});
