/** Questions of runs: what approvals and all others have in common, and the others. */
import type { Decision, QuestionReply } from "../../agent/agent.ts";
import { defined } from "../../core/defined.ts";
import { toJson } from "../../core/json.ts";
import type { OpenQuestion, PendingQuestion, Principal } from "../../runs/run.ts";
import type { Answer } from "../../tools/tool.ts";
import {
  type AnyQuestionRow,
  type ApprovalRow,
  type Asker,
  IS_OF_PRINCIPAL,
  type QuestionRow,
  toApproval,
  toQuestion,
} from "./rows.ts";
import { type Steps, all, change, first } from "./steps.ts";

/** Answers by interrupt, ready to resume with. */
export type Answers = Record<string, QuestionReply>;

/** False when it is stored already, answered or not. */
export function* add(asked: OpenQuestion): Steps<boolean> {
  const changes = yield* change(
    `INSERT INTO questions (run_id, id, interrupt_id, position, agent, tool, args, preview, allowed_decisions,
       status, requested_at, expires_at, kind, body, asked_by)
     VALUES (@run_id, @id, @id, 0, @agent, '', '{}', '{}', '[]', @status, @requested_at, @expires_at, @kind, @body,
       @asked_by)
     ON CONFLICT (run_id, id) DO NOTHING`,
    {
      run_id: asked.runId,
      id: asked.id,
      agent: toJson(asked.agent),
      status: asked.status,
      requested_at: asked.requestedAt,
      expires_at: asked.expiresAt ?? null,
      kind: asked.question.kind,
      body: toJson(asked.question),
      asked_by: asked.askedBy ?? null,
    },
  );
  return changes === 1;
}

/** Condition of questions of an asker, and the values for it. */
const ofAsker = ({ root, asker }: Asker) => ({
  condition: `run_id = @run_id${asker === undefined ? "" : " AND coalesce(asked_by, run_id) = @asker"}`,
  values: { run_id: root, ...defined({ asker }) },
});

const IS_OTHER = "kind <> 'approval'";

export function* get(runId: string, id: string): Steps<OpenQuestion | undefined> {
  const sql = `SELECT * FROM questions WHERE run_id = @run_id AND id = @id AND ${IS_OTHER}`;
  const row = yield* first<QuestionRow>(sql, { run_id: runId, id });
  return row && toQuestion(row);
}

/** The same, if the run is the principal's. */
export function* getOf(principal: Principal, runId: string, id: string): Steps<OpenQuestion | undefined> {
  const sql = `SELECT * FROM questions WHERE run_id = @run_id AND id = @id AND ${IS_OTHER} AND ${IS_OF_PRINCIPAL}`;
  const row = yield* first<QuestionRow>(sql, { run_id: runId, id, principal });
  return row && toQuestion(row);
}

/** Oldest first. */
export function* ofRun(runId: string): Steps<OpenQuestion[]> {
  const sql = `SELECT * FROM questions WHERE run_id = @run_id AND ${IS_OTHER} ORDER BY number`;
  return (yield* all<QuestionRow>(sql, { run_id: runId })).map(toQuestion);
}

export const PENDING_OF_PRINCIPAL = `FROM runs JOIN questions ON run_id = runs.id
  WHERE principal = @principal AND runs.status = 'input_required' AND delivered = 0
    AND questions.status = 'pending'`;

/** Those of any run of the principal, oldest first. */
export function* pendingOf(principal: Principal, limit: number): Steps<PendingQuestion[]> {
  const rows = yield* all<QuestionRow & { task: string }>(
    `SELECT questions.*, coalesce(runs.name, task) AS task ${PENDING_OF_PRINCIPAL} AND ${IS_OTHER}
     ORDER BY questions.number LIMIT @limit`,
    { principal, limit },
  );
  return rows.map((row) => ({ ...toQuestion(row), task: row.task }));
}

/** Compare-and-set: false when it was not pending any more. */
export function* decide(
  { runId, id }: OpenQuestion,
  answer: Answer,
  by: string,
  now: number,
): Steps<boolean> {
  const isAnswer = answer.type !== "decline" && answer.type !== "expired";
  const changes = yield* change(
    `UPDATE questions SET status = @status, decided_at = @now, decided_by = @by, decision = @answer
     WHERE run_id = @run_id AND id = @id AND status = 'pending'`,
    { run_id: runId, id, status: isAnswer ? "approved" : "rejected", now, by, answer: toJson(answer) },
  );
  return changes === 1;
}

/** Approvals are counted too. */
export function* countPendingOf(principal: Principal): Steps<number> {
  const sql = `SELECT count(*) AS pending ${PENDING_OF_PRINCIPAL}`;
  return (yield* first<{ pending: number }>(sql, { principal }))?.pending ?? 0;
}

/** Counts for all principals. The index of undelivered questions has the pending ones and few others. */
export function* countAllPending(): Steps<number> {
  const sql = "SELECT count(*) AS pending FROM questions WHERE delivered = 0 AND status = 'pending'";
  return (yield* first<{ pending: number }>(sql))?.pending ?? 0;
}

export function* countPending(whose: Asker): Steps<number> {
  const { condition, values } = ofAsker(whose);
  const sql = `SELECT count(*) AS pending FROM questions
    WHERE ${condition} AND delivered = 0 AND status = 'pending'`;
  return (yield* first<{ pending: number }>(sql, values))?.pending ?? 0;
}

/** Pending questions of all runs whose deadline has passed, approvals among them, and whose they are. */
export function* expired(now: number): Steps<(AnyQuestionRow & { principal: Principal })[]> {
  return yield* all<AnyQuestionRow & { principal: Principal }>(
    `SELECT questions.*, principal FROM questions JOIN runs ON runs.id = run_id
     WHERE questions.status = 'pending' AND expires_at IS NOT NULL AND expires_at <= @now`,
    { now },
  );
}

/** Withdraws what is pending, except for the interrupts that are still open; gives what it withdrew. */
export function* withdraw(
  whose: Asker,
  now: number,
  openInterrupts: readonly string[] = [],
): Steps<AnyQuestionRow[]> {
  const { condition, values } = ofAsker(whose);
  return yield* all<AnyQuestionRow>(
    `UPDATE questions SET status = 'withdrawn', decided_at = @now, delivered = 1
     WHERE ${condition} AND delivered = 0 AND status = 'pending'
       AND interrupt_id NOT IN (SELECT value FROM json_each(@open)) RETURNING *`,
    { ...values, now, open: JSON.stringify(openInterrupts) },
  );
}

/** Ids of questions of calls at work begin so: no interrupt waits for their answers. */
const HELD = "held_%";

/** Ends a question of a call at work, or all of them; gives those that nobody had answered. */
export function* endHeld(whose: Asker, id: string | undefined, now: number): Steps<QuestionRow[]> {
  const { condition, values: ofWhom } = ofAsker(whose);
  const own = id === undefined ? "" : "AND id = @id";
  const values = { ...ofWhom, now, ...(id === undefined ? {} : { id }) };
  const withdrawn = yield* all<QuestionRow>(
    `UPDATE questions SET status = 'withdrawn', decided_at = @now, delivered = 1
     WHERE ${condition} AND status = 'pending' AND id LIKE '${HELD}' ${own} RETURNING *`,
    values,
  );
  const { now: _now, ...which } = values;
  yield* change(
    `UPDATE questions SET delivered = 1 WHERE ${condition} AND delivered = 0 AND id LIKE '${HELD}' ${own}`,
    which,
  );
  return withdrawn;
}

/** Answers the agent has not taken in yet; an interrupt counts once all its calls are decided. */
export function* undelivered(whose: Asker): Steps<Answers> {
  const { condition, values } = ofAsker(whose);
  const rows = yield* all<AnyQuestionRow>(
    `SELECT * FROM questions WHERE ${condition} AND delivered = 0 AND status <> 'withdrawn'
       AND id NOT LIKE '${HELD}' AND kind <> 'review' ORDER BY interrupt_id, position`,
    values,
  );
  const answers: Answers = {};
  const waiting = new Set(rows.flatMap((row) => (row.decision === null ? [row.interrupt_id] : [])));
  for (const row of rows) {
    const { interrupt_id: id, kind } = row;
    if (waiting.has(id)) continue;
    const known = answers[id];
    const decisions = known !== undefined && "decisions" in known ? known.decisions : [];
    if (kind === "approval") answers[id] = { decisions: [...decisions, ...decisionOf(row)] };
    else Object.assign(answers, { [id]: toQuestion(row).answer });
  }
  return answers;
}

const decisionOf = (row: ApprovalRow): Decision[] => [toApproval(row).decision ?? []].flat();

export function* markDelivered(runId: string, interruptIds: readonly string[]): Steps<void> {
  if (interruptIds.length === 0) return;
  yield* change(
    `UPDATE questions SET delivered = 1 WHERE run_id = @run_id AND delivered = 0 AND status <> 'pending'
       AND interrupt_id IN (SELECT value FROM json_each(@interrupts))`,
    { run_id: runId, interrupts: JSON.stringify(interruptIds) },
  );
}
