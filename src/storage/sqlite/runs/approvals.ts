import type { Statement } from "better-sqlite3";
import type { Decision, HitlResponse } from "../../../agent/agent.ts";
import { type Approval, type Grant, decidedStatus } from "../../../runs/run.ts";
import { toJson } from "../../../core/json.ts";
import type { Database } from "../database.ts";
import { type ApprovalRow, toApproval } from "./events.ts";

/** Answers of one interrupt after another, ready to resume with. */
export type Answers = Record<string, HitlResponse>;

/** Approval rows of all runs. What writes belongs inside the transaction of the run's change. */
export class ApprovalStore {
  readonly #insert: Statement<Omit<ApprovalRow, "decided_at" | "decided_by" | "decision" | "delivered">>;
  readonly #get: Statement<[string, string], ApprovalRow>;
  readonly #after: Statement<[string, number], ApprovalRow & { number: number }>;
  readonly #undelivered: Statement<[string], ApprovalRow>;
  readonly #pending: Statement<[string], { pending: number }>;
  readonly #expired: Statement<[number], ApprovalRow>;
  readonly #decide: Statement<
    Pick<ApprovalRow, "run_id" | "id" | "status" | "decided_at" | "decided_by" | "decision">
  >;
  readonly #withdraw: Statement<{ run_id: string; now: number; open: string }, ApprovalRow>;
  readonly #deliver: Statement<{ run_id: string; interrupts: string }>;

  constructor(database: Database) {
    this.#insert = database.prepare(
      `INSERT INTO approvals (run_id, id, interrupt_id, position, agent, tool, args, preview,
         allowed_decisions, same, status, requested_at, expires_at)
       VALUES (@run_id, @id, @interrupt_id, @position, @agent, @tool, @args, @preview,
         @allowed_decisions, @same, @status, @requested_at, @expires_at)
       ON CONFLICT (run_id, id) DO NOTHING`,
    );
    this.#get = database.prepare("SELECT * FROM approvals WHERE run_id = ? AND id = ?");
    this.#after = database.prepare(
      `SELECT * FROM approvals INDEXED BY approvals_of_run WHERE run_id = ? AND number > ? ORDER BY number`,
    );
    this.#undelivered = database.prepare(
      `SELECT * FROM approvals WHERE run_id = ? AND delivered = 0 AND status <> 'withdrawn'
       ORDER BY interrupt_id, position`,
    );
    this.#pending = database.prepare(
      `SELECT count(*) AS pending FROM approvals WHERE run_id = ? AND delivered = 0 AND status = 'pending'`,
    );
    this.#expired = database.prepare(
      "SELECT * FROM approvals WHERE status = 'pending' AND expires_at IS NOT NULL AND expires_at <= ?",
    );
    this.#decide = database.prepare(
      `UPDATE approvals SET status = @status, decided_at = @decided_at, decided_by = @decided_by,
         decision = @decision
       WHERE run_id = @run_id AND id = @id AND status = 'pending'`,
    );
    this.#withdraw = database.prepare(
      `UPDATE approvals SET status = 'withdrawn', decided_at = @now, delivered = 1
       WHERE run_id = @run_id AND delivered = 0 AND status = 'pending'
         AND interrupt_id NOT IN (SELECT value FROM json_each(@open)) RETURNING *`,
    );
    this.#deliver = database.prepare(
      `UPDATE approvals SET delivered = 1 WHERE run_id = @run_id AND delivered = 0 AND status <> 'pending'
         AND interrupt_id IN (SELECT value FROM json_each(@interrupts))`,
    );
  }

  /** False when it is known already, decided or not. */
  add(approval: Approval): boolean {
    const result = this.#insert.run({
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
    });
    return result.changes === 1;
  }

  get(runId: string, id: string): Approval | undefined {
    const row = this.#get.get(runId, id);
    return row === undefined ? undefined : toApproval(row);
  }

  /** Oldest first. */
  ofRun(runId: string): Approval[] {
    return this.after(runId, 0).map(toApproval);
  }

  /** Rows of the run with `number > after`, oldest first. */
  after(runId: string, after: number): (ApprovalRow & { number: number })[] {
    return this.#after.all(runId, after);
  }

  pendingOf(runId: string): number {
    return this.#pending.get(runId)?.pending ?? 0;
  }

  /** Pending approvals of all runs whose deadline has passed. */
  expired(now: number): Approval[] {
    return this.#expired.all(now).map(toApproval);
  }

  /** Compare-and-set: false when it was not pending any more. */
  decide(approval: Approval, decision: Decision, by: string, now: number): boolean {
    const result = this.#decide.run({
      run_id: approval.runId,
      id: approval.id,
      status: decidedStatus(decision),
      decided_at: now,
      decided_by: by,
      decision: toJson(decision),
    });
    return result.changes === 1;
  }

  /** Withdraws what is pending, except for the interrupts that are still open; gives what it withdrew. */
  withdraw(runId: string, now: number, openInterrupts: readonly string[] = []): Approval[] {
    const open = JSON.stringify(openInterrupts);
    return this.#withdraw.all({ run_id: runId, now, open }).map(toApproval);
  }

  /** Answers the agent has not taken in yet; an interrupt counts once all its calls are decided. */
  undelivered(runId: string): Answers {
    const interrupts = new Map<string, Approval[]>();
    for (const approval of this.#undelivered.all(runId).map(toApproval)) {
      const calls = interrupts.get(approval.interruptId);
      if (calls === undefined) interrupts.set(approval.interruptId, [approval]);
      else calls.push(approval);
    }
    const answers: Answers = {};
    for (const [interruptId, calls] of interrupts) {
      const decisions = calls.flatMap((call) => call.decision ?? []);
      if (decisions.length === calls.length) answers[interruptId] = { decisions };
    }
    return answers;
  }

  markDelivered(runId: string, interruptIds: readonly string[]): void {
    if (interruptIds.length === 0) return;
    this.#deliver.run({ run_id: runId, interrupts: JSON.stringify(interruptIds) });
  }
}

interface DecidedApprovals {
  /** Number of the newest row that is in `approvals`; none before it is pending. */
  upTo: number;
  approvals: Approval[];
}

/**
 * The approvals of runs as views show them. A decision is never taken back, so that each is read once: a look
 * at a run costs the same after a thousand. Not for use within a transaction, which may be.
 */
export class ApprovalViews {
  readonly #store: ApprovalStore;
  readonly #capacity: number;
  readonly #decided = new Map<string, DecidedApprovals>();

  constructor(store: ApprovalStore, capacity = 256) {
    this.#store = store;
    this.#capacity = capacity;
  }

  /** Oldest first. */
  of(runId: string): Approval[] {
    const decidedBefore = this.#decided.get(runId) ?? { upTo: 0, approvals: [] };
    this.#decided.delete(runId);
    this.#decided.set(runId, decidedBefore);
    const oldest = this.#decided.keys().next();
    if (this.#decided.size > this.#capacity && oldest.done !== true) this.#decided.delete(oldest.value);
    const rows = this.#store.after(runId, decidedBefore.upTo);
    const firstPending = rows.findIndex(({ status }) => status === "pending");
    const decided = firstPending === -1 ? rows : rows.slice(0, firstPending);
    decidedBefore.approvals.push(...decided.map(toApproval));
    decidedBefore.upTo = decided.at(-1)?.number ?? decidedBefore.upTo;
    return [...decidedBefore.approvals, ...rows.slice(decided.length).map(toApproval)];
  }
}

interface GrantRow {
  run_id: string;
  key: string;
  tool: string;
  text: string;
  approval_id: string;
  granted_by: string;
  granted_at: number;
}

/** What people approved for the rest of runs that are not over. */
export class GrantStore {
  readonly #insert: Statement<GrantRow>;
  readonly #find: Statement<[string, string], GrantRow>;
  readonly #ofRun: Statement<[string], GrantRow>;
  readonly #revoke: Statement<[string]>;

  constructor(database: Database) {
    this.#insert = database.prepare(
      `INSERT INTO run_grants (run_id, key, tool, text, approval_id, granted_by, granted_at)
       VALUES (@run_id, @key, @tool, @text, @approval_id, @granted_by, @granted_at)
       ON CONFLICT (run_id, key) DO NOTHING`,
    );
    this.#find = database.prepare("SELECT * FROM run_grants WHERE run_id = ? AND key = ?");
    this.#ofRun = database.prepare("SELECT * FROM run_grants WHERE run_id = ? ORDER BY number");
    this.#revoke = database.prepare("DELETE FROM run_grants WHERE run_id = ?");
  }

  /** Grants all calls that count as the same as the one of this approval. */
  add({ runId, id, tool, same }: Approval, by: string, now: number): void {
    if (same === undefined) throw new Error(`No other call counts as the same as that of approval ${id}.`);
    const { key, text } = same;
    this.#insert.run({ run_id: runId, key, tool, text, approval_id: id, granted_by: by, granted_at: now });
  }

  /** What lets this call go ahead unasked, where a person may approve it at all. */
  find({ runId, same, allowedDecisions }: Approval): Grant | undefined {
    if (same === undefined || !allowedDecisions.includes("approve")) return undefined;
    const row = this.#find.get(runId, same.key);
    return row && toGrant(row);
  }

  /** Oldest first. */
  ofRun(runId: string): Grant[] {
    return this.#ofRun.all(runId).map(toGrant);
  }

  revoke(runId: string): void {
    this.#revoke.run(runId);
  }
}

const toGrant = (row: GrantRow): Grant => ({
  tool: row.tool,
  text: row.text,
  approvalId: row.approval_id,
  grantedBy: row.granted_by,
  grantedAt: row.granted_at,
});
