/** Questions of runs: what approvals and all others have in common, and the others. */
import type { Decision, QuestionReply } from "../../agent/agent.ts";
import { defined } from "../../core/defined.ts";
import { toJson } from "../../core/json.ts";
import type { ApprovalStatus, OpenQuestion, Principal } from "../../runs/run.ts";
import type { Answer } from "../../tools/tool.ts";
import { valuesOf } from "./columns.ts";
import type { AnyQuestionRow, ApprovalRow, Asker, QuestionRow } from "./rows.ts";
import { ASKED, IS_OF_PRINCIPAL, toApproval, toQuestion } from "./rows.ts";
import { type Statement, type Steps, all, change, count, first, insert } from "./steps.ts";

/** Answers by interrupt, ready to resume with. */
export type Answers = Record<string, QuestionReply>;

/** Condition of questions of an asker, and the values for it. */
const ofAsker = ({ root, asker }: Asker) => ({
  condition: `run_id = @run_id${asker === undefined ? "" : " AND coalesce(asked_by, run_id) = @asker"}`,
  values: { run_id: root, ...defined({ asker }) },
});

const PENDING_OF_PRINCIPAL = `FROM runs JOIN questions ON run_id = runs.id
  WHERE principal = @principal AND runs.status = 'input_required' AND delivered = 0
    AND questions.status = 'pending'`;

/** Reads one kind of questions; `isOne` is its condition. */
export function readersOf<Read extends (row: never) => object>(isOne: string, read: Read) {
  const toOne = (row: object) => read(row as never) as ReturnType<Read>; // a row of the kind that it reads
  const find = function* (
    condition: string,
    values: Statement["values"],
  ): Steps<ReturnType<Read> | undefined> {
    const sql = `SELECT * FROM questions WHERE run_id = @run_id AND id = @id AND ${isOne}${condition}`;
    const row = yield* first(sql, values);
    return row && toOne(row);
  };
  const list = function* (sql: string, values: Statement["values"]) {
    const rows = yield* all<{ task: string }>(sql, values);
    return rows.map((row) => ({ ...toOne(row), task: row.task }));
  };
  return {
    get: (runId: string, id: string) => find("", { run_id: runId, id }),
    /** The same, if the run is the principal's. */
    getOf: (principal: Principal, runId: string, id: string) =>
      find(` AND ${IS_OF_PRINCIPAL}`, { run_id: runId, id, principal }),
    /** Those of any run of the principal, oldest first. */
    pendingOf: (principal: Principal, limit: number) =>
      list(
        `SELECT questions.*, coalesce(runs.name, task) AS task ${PENDING_OF_PRINCIPAL} AND ${isOne}
         ORDER BY questions.number LIMIT @limit`,
        { principal, limit },
      ),
  };
}

const IS_OTHER = "kind <> 'approval'";
export const { get, getOf, pendingOf } = readersOf(IS_OTHER, toQuestion);

/** The columns of other questions that only approvals fill. */
const NO_CALL = { position: 0, tool: "", args: "{}", preview: "{}", allowed_decisions: "[]" };

/** False when it is stored already, answered or not. */
export function add(asked: OpenQuestion): Steps<boolean> {
  const { id, status, question } = asked;
  const own = { interrupt_id: id, status, kind: question.kind, body: toJson(question) };
  const row = { ...valuesOf(asked, ASKED), ...NO_CALL, ...own };
  return insert("questions", row, "ON CONFLICT (run_id, id) DO NOTHING");
}

/** Oldest first. */
export function* ofRun(runId: string): Steps<OpenQuestion[]> {
  const sql = `SELECT * FROM questions WHERE run_id = @run_id AND ${IS_OTHER} ORDER BY number`;
  return (yield* all<QuestionRow>(sql, { run_id: runId })).map(toQuestion);
}

/** Compare-and-set: false when it was not pending any more. */
export const decide = (question: OpenQuestion, answer: Answer, by: string, now: number): Steps<boolean> => {
  const isAnswer = answer.type !== "decline" && answer.type !== "expired";
  return settle(question, { status: isAnswer ? "approved" : "rejected", decision: answer }, by, now);
};

/** Stores a decision on a question of any kind, unless it is not pending any more. */
export function* settle(
  { runId, id }: Pick<OpenQuestion, "runId" | "id">,
  { status, decision }: { status: ApprovalStatus; decision: Decision | Answer },
  by: string,
  now: number,
): Steps<boolean> {
  const changes = yield* change(
    `UPDATE questions SET status = @status, decided_at = @now, decided_by = @by, decision = @decision
     WHERE run_id = @run_id AND id = @id AND status = 'pending'`,
    { run_id: runId, id, status, now, by, decision: toJson(decision) },
  );
  return changes === 1;
}

/** Approvals are counted too. */
export const countPendingOf = (principal: Principal): Steps<number> =>
  count(`SELECT count(*) AS count ${PENDING_OF_PRINCIPAL}`, { principal });

/** Counts for all principals. The index of undelivered questions has the pending ones and few others. */
export const countAllPending = (): Steps<number> =>
  count("SELECT count(*) AS count FROM questions WHERE delivered = 0 AND status = 'pending'");

export function countPending(whose: Asker): Steps<number> {
  const { condition, values } = ofAsker(whose);
  const isPending = "delivered = 0 AND status = 'pending'";
  return count(`SELECT count(*) AS count FROM questions WHERE ${condition} AND ${isPending}`, values);
}

/** Pending questions of all runs whose deadline has passed, approvals among them, and whose they are. */
export const expired = (now: number): Steps<(AnyQuestionRow & { principal: Principal })[]> =>
  all(
    `SELECT questions.*, principal FROM questions JOIN runs ON runs.id = run_id
     WHERE questions.status = 'pending' AND expires_at IS NOT NULL AND expires_at <= @now`,
    { now },
  );

/** Withdraws what is pending, except for the interrupts that are still open; gives what it withdrew. */
export function withdraw(
  whose: Asker,
  now: number,
  openInterrupts: readonly string[] = [],
): Steps<AnyQuestionRow[]> {
  const { condition, values } = ofAsker(whose);
  return all<AnyQuestionRow>(
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
  const { condition, values } = ofAsker(whose);
  const isOne = `${condition} AND id LIKE '${HELD}'${id === undefined ? "" : " AND id = @id"}`;
  const which = { ...values, ...defined({ id }) };
  const withdrawn = yield* all<QuestionRow>(
    `UPDATE questions SET status = 'withdrawn', decided_at = @now, delivered = 1
     WHERE ${isOne} AND status = 'pending' RETURNING *`,
    { ...which, now },
  );
  yield* change(`UPDATE questions SET delivered = 1 WHERE ${isOne} AND delivered = 0`, which);
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
