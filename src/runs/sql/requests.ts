/** Requests of runs to people. */
import type { QuestionReply } from "../../agent/agent.ts";
import { defined } from "../../core/unknown.ts";
import { fromJson, toJson } from "../../core/json.ts";
import { NewestOf } from "../../core/newest-of.ts";
import { answeredEntry } from "../asked-events.ts";
import { type PendingRequest, type Principal, type RunRequest, contentOf } from "../run.ts";
import type { Answer, Decision } from "../../tools/request.ts";
import { columnValues } from "./columns.ts";
import * as journal from "./journal.ts";
import { ASKED, type Asker, CALL, IS_OF_PRINCIPAL, type RequestRow, toRequest } from "./rows.ts";
import { type Statement, type Steps, all, change, count, first, insert } from "./steps.ts";

/** Answers by interrupt, ready to resume with. */
export type Answers = Record<string, QuestionReply>;

/** Condition of requests of an asker, and the values for it. */
const ofAsker = ({ root, asker }: Asker) => ({
  condition: `run_id = @run_id${asker === undefined ? "" : " AND coalesce(asked_by, run_id) = @asker"}`,
  values: { run_id: root, ...defined({ asker }) },
});

const PENDING_OF_PRINCIPAL = `FROM runs JOIN questions ON run_id = runs.id
  WHERE principal = @principal AND runs.status = 'input_required' AND delivered = 0
    AND questions.status = 'pending'`;

function* find(condition: string, values: Statement["values"]): Steps<RunRequest | undefined> {
  const sql = `SELECT * FROM questions WHERE run_id = @run_id AND id = @id${condition}`;
  const row = yield* first<RequestRow>(sql, values);
  return row && toRequest(row);
}

export const get = (runId: string, id: string) => find("", { run_id: runId, id });

/** Reads a request if its run is the principal's. */
export const getOf = (principal: Principal, runId: string, id: string) =>
  find(` AND ${IS_OF_PRINCIPAL}`, { run_id: runId, id, principal });

/** Requests that wait for a person in any run of the principal, oldest first. */
export function* pendingOf(principal: Principal, limit: number): Steps<PendingRequest[]> {
  const rows = yield* all<RequestRow & { task: string }>(
    `SELECT questions.*, coalesce(runs.name, task) AS task ${PENDING_OF_PRINCIPAL}
     ORDER BY questions.number LIMIT @limit`,
    { principal, limit },
  );
  return rows.map((row) => ({ ...toRequest(row), task: row.task }));
}

/** False when it is stored already, answered or not. */
export function add(request: RunRequest): Steps<boolean> {
  const { kind, index: position } = request;
  // The columns of other questions that only approvals fill.
  const noCall = { tool: "", args: "{}", preview: "{}", allowed_decisions: "[]" };
  const content =
    kind === "approval" ? columnValues(request, CALL) : { ...noCall, body: toJson(contentOf(request)) };
  const row = { ...columnValues(request, ASKED), ...content, kind, position, status: "pending" };
  return insert("questions", row, "ON CONFLICT (run_id, id) DO NOTHING");
}

type NumberedRow = RequestRow & { number: number };

/** Rows of the run with `number > after`, oldest first. */
const after = (runId: string, number: number): Steps<NumberedRow[]> =>
  all<NumberedRow>(
    `SELECT * FROM questions INDEXED BY approvals_of_run
     WHERE run_id = @run_id AND number > @number ORDER BY number`,
    { run_id: runId, number },
  );

/** Oldest first. */
export function* ofRun(runId: string): Steps<RunRequest[]> {
  return (yield* after(runId, 0)).map(toRequest);
}

/**
 * The requests of runs as views show them. An answer is never taken back, so that each is read once: a look at a run
 * costs the same after a thousand. Not for use within a transaction, which may be undone.
 */
export class RequestViews {
  readonly #answered = new NewestOf<{
    /** Number of the newest row that is in `requests`; none before it is pending. */
    upTo: number;
    requests: RunRequest[];
  }>(256);

  /** Oldest first. */
  *of(runId: string): Steps<RunRequest[]> {
    const known = this.#answered.get(runId) ?? { upTo: 0, requests: [] };
    const rows = yield* after(runId, known.upTo);
    const firstPending = rows.findIndex(({ status }) => status === "pending");
    const answered = firstPending === -1 ? rows : rows.slice(0, firstPending);
    const requests = [...known.requests, ...answered.map(toRequest)];
    this.#answered.keep(runId, { upTo: answered.at(-1)?.number ?? known.upTo, requests });
    return [...requests, ...rows.slice(answered.length).map(toRequest)];
  }
}

/** Stores an answer, and returns false if the request was not pending any more. */
export function* storeAnswer(
  { runId, id }: Pick<RunRequest, "runId" | "id">,
  answer: Answer | Decision,
  by: string,
  now: number,
): Steps<boolean> {
  const changes = yield* change(
    `UPDATE questions SET status = @status, decided_at = @now, decided_by = @by, decision = @decision
     WHERE run_id = @run_id AND id = @id AND status = 'pending'`,
    { run_id: runId, id, status: statusAfter(answer), now, by, decision: toJson(answer) },
  );
  return changes === 1;
}

function statusAfter({ type }: Answer | Decision): "approved" | "edited" | "rejected" {
  if (type === "edit") return "edited";
  return type === "reject" || type === "decline" || type === "expired" ? "rejected" : "approved";
}

export const countPendingOf = (principal: Principal) =>
  count(`SELECT count(*) AS count ${PENDING_OF_PRINCIPAL}`, { principal });

/** Counts for all principals. The index of undelivered questions has the pending ones and few others. */
export const countAllPending = (): Steps<number> =>
  count("SELECT count(*) AS count FROM questions WHERE delivered = 0 AND status = 'pending'");

export function countPending(whose: Asker): Steps<number> {
  const { condition, values } = ofAsker(whose);
  const isPending = "delivered = 0 AND status = 'pending'";
  return count(`SELECT count(*) AS count FROM questions WHERE ${condition} AND ${isPending}`, values);
}

/** Pending requests of all runs whose deadline has passed, and their principals. */
export const expired = (now: number): Steps<(RequestRow & { principal: Principal })[]> =>
  all(
    `SELECT questions.*, principal FROM questions JOIN runs ON runs.id = run_id
     WHERE questions.status = 'pending' AND expires_at IS NOT NULL AND expires_at <= @now`,
    { now },
  );

/** Withdraws pending requests, but for open interrupts. Belongs into the transaction of that change. */
export function* withdraw(whose: Asker, by: string, now: number, openInterrupts: readonly string[] = []) {
  const { condition, values } = ofAsker(whose);
  const isOpen = `${condition} AND delivered = 0
       AND interrupt_id NOT IN (SELECT value FROM json_each(@open))`;
  const open = JSON.stringify(openInterrupts);
  yield* withdrawWhere(isOpen, { ...values, open }, { root: whose.root, by, now });
}

/** Withdraws those pending requests that meet a condition, with an event for each. */
function* withdrawWhere(
  condition: string,
  values: Statement["values"],
  { root, by, now }: { root: string; by: string; now: number },
): Steps<void> {
  const withdrawn = yield* all<RequestRow>(
    `UPDATE questions SET status = 'withdrawn', decided_at = @now, delivered = 1
     WHERE ${condition} AND status = 'pending' RETURNING *`,
    { ...values, now },
  );
  for (const row of withdrawn) yield* journal.append(root, answeredEntry(toRequest(row), undefined, by), now);
}

/** Ids of questions of calls at work begin so: no interrupt waits for their answers. */
const HELD = "held_%";

/** Ends the held question of this id, or all of them; `by` withdraws those that nobody has answered. */
export function* endHeld(whose: Asker, id: string | undefined, by: string, now: number): Steps<void> {
  const { condition, values } = ofAsker(whose);
  const isOne = `${condition} AND id LIKE '${HELD}'${id === undefined ? "" : " AND id = @id"}`;
  const which = { ...values, ...defined({ id }) };
  yield* withdrawWhere(isOne, which, { root: whose.root, by, now });
  yield* change(`UPDATE questions SET delivered = 1 WHERE ${isOne} AND delivered = 0`, which);
}

/** Answers the agent has not taken in yet; an interrupt counts once all its calls are decided. */
export function* undelivered(whose: Asker): Steps<Answers> {
  const { condition, values } = ofAsker(whose);
  const rows = yield* all<RequestRow>(
    `SELECT * FROM questions WHERE ${condition} AND delivered = 0 AND status <> 'withdrawn'
       AND id NOT LIKE '${HELD}' AND kind <> 'review' ORDER BY interrupt_id, position`,
    values,
  );
  const answers: Answers = {};
  const waiting = new Set(rows.flatMap((row) => (row.decision === null ? [row.interrupt_id] : [])));
  for (const row of rows) {
    const { interrupt_id: id, kind, decision } = row;
    if (waiting.has(id) || decision === null) continue;
    const answer = fromJson(decision);
    const known = answers[id];
    const decisions = known !== undefined && "decisions" in known ? known.decisions : [];
    Object.assign(answers, { [id]: kind === "approval" ? { decisions: [...decisions, answer] } : answer });
  }
  return answers;
}

export function* markDelivered(runId: string, interruptIds: readonly string[]): Steps<void> {
  if (interruptIds.length === 0) return;
  yield* change(
    `UPDATE questions SET delivered = 1 WHERE run_id = @run_id AND delivered = 0 AND status <> 'pending'
       AND interrupt_id IN (SELECT value FROM json_each(@interrupts))`,
    { run_id: runId, interrupts: JSON.stringify(interruptIds) },
  );
}
