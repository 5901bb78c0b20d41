/** Runs as their owners see and change them. A change of a run belongs into one transaction with its event. */
import { copySources } from "./rules.ts";
import { createHash } from "node:crypto";
import { sep } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { defined } from "../../core/unknown.ts";
import { canonicalJson } from "../../core/json.ts";
import { messageEntry } from "../events.ts";
import type { Created, NewRun, Page, StartRequest } from "../ports.ts";
import type { Principal, Run, RunFilter, RunHead, RunStatus } from "../run.ts";
import { breakOff, isFinal, parsePoint } from "../run.ts";
import { wake } from "./child-reports.ts";
import { cancelChildren } from "./children.ts";
import { columnValues } from "./columns.ts";
import * as journal from "./journal.ts";
import * as messages from "./messages.ts";
import * as requests from "./requests.ts";
import type { HeadRow, RunRow, SummaryRow } from "./rows.ts";
import { HEAD_COLUMNS, SUMMARY_COLUMNS, toRun, toRunHead, toSummary, treeOf } from "./rows.ts";
import { lockParent } from "./leases.ts";
import * as status from "./status.ts";
import { addThread, begunAt, takeCopy } from "./threads.ts";
import type { Statement, Steps } from "./steps.ts";
import { all, change, count, exists, first, insert, lockPrincipal, storedText } from "./steps.ts";

export const OWN = "id = @id AND principal = @principal";

export function* runWhere(condition: string, values: Statement["values"]): Steps<Run | undefined> {
  const row = yield* first<RunRow>(`SELECT * FROM runs WHERE ${condition}`, values);
  return row && toRun(row);
}

export const get = (principal: Principal, id: string) => runWhere(OWN, { id, principal });

/** Returns the run and locks its row until the transaction ends, and before it that of the run that started it. */
export function* getToChange(principal: Principal, id: string): Steps<Run | undefined> {
  yield* lockParent(id);
  return yield* runWhere(`${OWN} FOR UPDATE`, { id, principal });
}

export function* head(principal: Principal, runId: string): Steps<RunHead | undefined> {
  const row = yield* first<HeadRow>(`SELECT ${HEAD_COLUMNS} FROM runs WHERE ${OWN}`, {
    id: runId,
    principal,
  });
  return row && toRunHead(row);
}

/** SQL that orders the principal's runs, newest first, and pages them; an unknown `before` counts as none. */
const BEFORE = `number < coalesce(
  (SELECT number FROM runs WHERE id = @before AND principal = @principal), 9223372036854775807)
  ORDER BY number DESC LIMIT @limit`;

/** Newest first. */
export function* list(principal: Principal, { limit, before }: Page): Steps<RunHead[]> {
  const sql = `SELECT ${HEAD_COLUMNS} FROM runs WHERE principal = @principal AND parent_id IS NULL AND ${BEFORE}`;
  return (yield* all<HeadRow>(sql, { principal, before: before ?? null, limit })).map(toRunHead);
}

/** The newest runs of all principals. The condition makes it read no more rows than it returns. */
export function* listAll(limit: number): Steps<RunHead[]> {
  const sql = `SELECT ${HEAD_COLUMNS} FROM runs WHERE number < 9223372036854775807 AND parent_id IS NULL
    ORDER BY number DESC LIMIT @limit`;
  return (yield* all<HeadRow>(sql, { limit })).map(toRunHead);
}

/** Does not look at the text of the filter. */
export function* summaries(principal: Principal, filter: Omit<RunFilter, "text">, { limit, before }: Page) {
  const { condition, values } = ownedRuns(principal, filter);
  const sql = `SELECT ${SUMMARY_COLUMNS} FROM runs WHERE ${condition} AND ${BEFORE}`;
  return (yield* all<SummaryRow>(sql, { ...values, before: before ?? null, limit })).map(toSummary);
}

/** Condition of the principal's runs that a filter lets through, but for its text. */
export function ownedRuns(principal: Principal, { status: only, threadId, folder }: Omit<RunFilter, "text">) {
  const conditions = [
    "principal = @principal AND parent_id IS NULL",
    ...(only === undefined ? [] : ["status = @status"]),
    ...(threadId === undefined ? [] : ["thread_id = @thread"]),
    ...(folder === undefined ? [] : ["environment LIKE @folder ESCAPE '!'"]),
  ];
  // An environment is JSON that begins with its workspace.
  const ending = JSON.stringify(sep + (folder ?? "")).slice(1);
  const pattern = folder && `{"workspace":"%${ending.replaceAll(/[!%_]/g, "!$&")},%`;
  const values = { principal, ...defined({ status: only, thread: threadId, folder: pattern }) };
  return { condition: conditions.join(" AND "), values };
}

export function* counts(principal: Principal): Steps<Record<RunStatus, number>> {
  // Children are taken off, because a condition on `parent_id` would read the rows instead of an index.
  const rows = yield* all<{ status: RunStatus; number: number }>(
    `SELECT status, count(*) AS number FROM runs WHERE principal = @principal GROUP BY status
     UNION ALL
     SELECT status, -count(*) AS number FROM runs WHERE principal = @principal AND parent_id IS NOT NULL
     GROUP BY status`,
    { principal },
  );
  const numbers = { ...NO_RUNS };
  for (const { status: one, number } of rows) numbers[one] += number;
  return numbers;
}

export const NO_RUNS: Readonly<Record<RunStatus, number>> = {
  working: 0,
  input_required: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
};

/**
 * Counts the next 2000 runs of all principals by status, without those that agents started in the background; `last` is
 * the highest number among them.
 */
export const countNext = (after: number): Steps<{ status: RunStatus; count: number; last: number }[]> =>
  all(
    `SELECT status, count(*) AS count, max(number) AS last FROM (
       SELECT status, number FROM runs WHERE number > @after AND parent_id IS NULL ORDER BY number LIMIT 2000
     ) AS next GROUP BY status`,
    { after },
  );

/** True of a run that has children which a server is still stopping. */
const HAS_LEASED_CHILD =
  "EXISTS (SELECT 1 FROM runs child WHERE child.parent_id = runs.id AND child.lease_owner IS NOT NULL)";

/** True of runs that nobody is stopping, that go with no other run, and whose changes are all applied. */
export const IS_FORGETTABLE = `lease_owner IS NULL AND NOT ${HAS_LEASED_CHILD}
  AND NOT EXISTS (SELECT 1 FROM runs parent WHERE parent.id = runs.parent_id)
  AND (changes IS NULL OR unapplied = 0)`;

/** Counts runs that ended before then and may be deleted. */
export const countForgettable = (before: number): Steps<number> =>
  count(`SELECT count(*) AS count FROM runs WHERE ended_at < @before AND ${IS_FORGETTABLE}`, { before });

export const countUnfinished = (): Steps<number> =>
  count("SELECT count(*) AS count FROM runs WHERE ended_at IS NULL");

/** The environments of open runs and of schedules. */
export function* environments(): Steps<string[]> {
  const sql = `SELECT environment FROM runs WHERE ended_at IS NULL UNION SELECT environment FROM schedules`;
  return (yield* all<{ environment: string }>(sql, {})).map(({ environment }) => environment);
}

function* startedWith(principal: Principal, key: string | undefined): Steps<Run | undefined> {
  if (key === undefined) return undefined;
  return yield* runWhere("principal = @principal AND idempotency_key = @key", { principal, key });
}

/** Finds the obstacle to a start with this request, without changing anything; `undefined`: there is none. */
export function* obstacle(
  principal: Principal,
  request: StartRequest,
  { environment, openRuns: limit = Number.MAX_SAFE_INTEGER }: Pick<NewRun, "environment" | "openRuns">,
): Steps<Exclude<Created, { kind: "created" }> | undefined> {
  const { threadId, idempotencyKey } = request;
  const task = storedText(request.task);
  const same = yield* startedWith(principal, idempotencyKey);
  if (same !== undefined) {
    const isSame = same.task === task && isDeepStrictEqual(same.goal, request.goal);
    const repeated = isSame && [undefined, same.threadId, same.forkedFrom].includes(threadId);
    return { kind: repeated ? "existing" : "conflict", run: same };
  }
  const sent = idempotencyKey === undefined ? undefined : yield* messages.byKey(principal, idempotencyKey);
  if (sent !== undefined) {
    const run = yield* existing(principal, sent.runId);
    return { kind: sent.text === task && run.threadId === threadId ? "existing" : "conflict", run };
  }
  const unanswered = yield* unansweredRun(principal, request, environment);
  if (unanswered !== undefined) return { kind: "joined", run: unanswered };
  if (threadId !== undefined) {
    const point = parsePoint(threadId);
    // The thread of a child belongs to its subagent and to its parent, which reads it.
    const sql = `SELECT id FROM threads WHERE id = @id AND principal = @principal
      AND NOT EXISTS (SELECT 1 FROM runs WHERE thread_id = threads.id AND parent_id IS NOT NULL)`;
    const isTheirs = yield* exists(sql, { id: point?.threadId ?? threadId, principal });
    if (!isTheirs) return { kind: "thread_not_found" };
    const isOpen =
      "thread_id = @thread AND status IN ('working', 'input_required') AND principal = @principal";
    const busy = point === undefined ? yield* runWhere(isOpen, { thread: threadId, principal }) : undefined;
    if (busy !== undefined) return { kind: "thread_busy", run: busy };
  }
  const sql = `SELECT id FROM runs WHERE principal = @principal AND ended_at IS NULL AND parent_id IS NULL
    LIMIT 1 OFFSET @offset`;
  const isFull = yield* exists(sql, { principal, offset: limit - 1 });
  return isFull ? { kind: "too_many_open", limit } : undefined;
}

function* existing(principal: Principal, runId: string): Steps<Run> {
  const run = yield* get(principal, runId);
  if (run === undefined) throw new Error(`Run ${runId} is missing.`);
  return run;
}

export function* create(principal: Principal, request: StartRequest, fresh: NewRun): Steps<Created> {
  yield* lockPrincipal(principal);
  const found = yield* obstacle(principal, request, fresh);
  if (found !== undefined) return found;
  const named = request.threadId;
  const isFork = named !== undefined && parsePoint(named) !== undefined;
  if (isFork && !(yield* takeCopy(principal, fresh.newThreadId))) return { kind: "copy_given_up" };
  const threadId = isFork ? fresh.newThreadId : (named ?? fresh.newThreadId);
  if (threadId !== named) yield* addThread(principal, threadId, fresh.now);
  if (isFork) yield* copySources(parsePoint(named)?.threadId ?? named, threadId);
  yield* insert("runs", {
    ...begunAt(fresh.now),
    id: fresh.runId,
    thread_id: threadId,
    principal,
    environment: fresh.environment,
    ...columnValues(request, "task, idempotency_key, model, limits, goal"),
    forked_from: isFork ? named : null,
    changes: (request.changes ?? fresh.changes) === "propose" ? "propose" : null,
    schedule_id: fresh.schedule?.id ?? null,
    schedule_name: fresh.schedule?.name ?? null,
    occurrence: fresh.schedule?.dueAt ?? null,
  });
  yield* noteCall(principal, fresh.runId, request);
  const data = { ...(isFork ? { forkedFrom: named } : {}), ...defined({ schedule: fresh.schedule?.name }) };
  yield* journal.append(fresh.runId, { kind: "run_started", agent: [], data }, fresh.now);
  return { kind: "created", run: yield* existing(principal, fresh.runId) };
}

/** A message for a run that is not over. */
interface NewMessage {
  id: string;
  text: string;
  idempotencyKey?: string | undefined;
  /** The call that made it instead of starting a run; the run's answer is for that call from now on. */
  call?: StartRequest;
  now: number;
}

type Sent =
  | { kind: "sent" | "repeated" | "ended"; run: Run }
  | { kind: "not_found" }
  /** The key already stands for another message or run, which this id names. */
  | { kind: "conflict"; runId: string };

/** Stores a message for a run that is not over, for its agent to read before it next asks its model. */
export function* send(principal: Principal, runId: string, message: NewMessage): Steps<Sent> {
  const sent = yield* addMessage(principal, runId, message);
  if (message.call !== undefined && (sent.kind === "sent" || sent.kind === "repeated"))
    yield* noteCall(principal, runId, message.call);
  return sent;
}

const addMessage: typeof send = function* (principal, runId, { id, text, idempotencyKey, now }) {
  if (idempotencyKey !== undefined) yield* lockPrincipal(principal);
  const run = yield* getToChange(principal, runId);
  if (run === undefined) return { kind: "not_found" };
  const before = idempotencyKey === undefined ? undefined : yield* messages.byKey(principal, idempotencyKey);
  if (before?.runId === runId && before.text === storedText(text)) return { kind: "repeated", run };
  const other = before?.runId ?? (yield* startedWith(principal, idempotencyKey))?.id;
  if (other !== undefined) return { kind: "conflict", runId: other };
  if (isFinal(run.status)) return { kind: "ended", run };
  yield* messages.add(runId, { id, text }, idempotencyKey, now);
  const { runId: root = runId, agent = [] } = run.parent ?? {};
  yield* journal.append(root, messageEntry(id, text, agent), now);
  yield* wake(runId, now);
  return { kind: "sent", run: yield* existing(principal, runId) };
};

/** `ended`: it had ended before. `children` end with it. A server that works on it keeps its lease until it stops. */
export function* cancel(principal: Principal, runId: string, reason: string, now: number) {
  const run = yield* getToChange(principal, runId);
  if (run === undefined || isFinal(run.status)) return run && { run, ended: true, children: [] };
  let children: string[] = [];
  const tree = treeOf({ id: runId, parent_id: run.parent?.runId ?? null });
  yield* requests.withdraw(tree, "end of the run", now);
  if (run.parent === undefined) {
    children = yield* cancelChildren(runId, reason, now);
    yield* journal.append(runId, { kind: "run_cancelled", agent: [], data: { reason } }, now);
  }
  yield* status.end(runId, breakOff(run.status, "cancelled"), { now, cancelReason: reason });
  return { run: yield* existing(principal, runId), ended: false, children };
}

/** `null`: the task stands for it again. False: no such run. */
export function* rename(principal: Principal, id: string, name: string | null): Steps<boolean> {
  return (yield* change(`UPDATE runs SET name = @name WHERE ${OWN}`, { id, principal, name })) > 0;
}

/** Takes a run away from its principal, so that nobody finds it any more. It is then the first to be pruned. */
export const DISOWN = "UPDATE runs SET principal = '', idempotency_key = NULL, ended_at = -1, unapplied = 0";

/** Disowns a run that has ended, and its children. False: somebody works on them, or it is a child or missing. */
export function* disown(principal: Principal, runId: string): Steps<boolean> {
  const sql = `${DISOWN} WHERE ${OWN} AND parent_id IS NULL AND ended_at IS NOT NULL AND lease_owner IS NULL
    AND NOT ${HAS_LEASED_CHILD}`;
  if ((yield* change(sql, { id: runId, principal })) === 0) return false;
  yield* change(`${DISOWN} WHERE parent_id = @id AND principal = @principal`, { id: runId, principal });
  return true;
}

/*
 * The newest call that each run was asked for by, until that call is answered. An unreported run is found by
 * the same request, so that a client which disconnected and calls again does not start a second run.
 */

/** Time after its end during which a repeated call still gets the run, in ms. */
const RECENT_MS = 3_600_000;

/** The run that the same request asked for in vain: it is open, or completed not long ago. */
function* unansweredRun(principal: Principal, request: StartRequest, environment: string) {
  const { askedAt, idempotencyKey } = request;
  if (askedAt === undefined || idempotencyKey !== undefined) return undefined;
  return yield* runWhere(
    `principal = @principal AND unanswered_call = @call AND environment = @environment
       AND (ended_at IS NULL OR (status = 'completed' AND ended_at > @since))
     ORDER BY number DESC LIMIT 1`,
    { principal, call: requestDigest(request), environment, since: askedAt - RECENT_MS },
  );
}

/** The call that makes this request waits for the run. One with an idempotency key finds it by that. */
export function* noteCall(principal: Principal, runId: string, request: StartRequest): Steps<void> {
  const { askedAt, idempotencyKey } = request;
  if (askedAt === undefined || idempotencyKey !== undefined) return;
  const sql = `UPDATE runs SET unanswered_call = @call, asked_at = @at WHERE ${OWN}`;
  yield* change(sql, { id: runId, principal, call: requestDigest(request), at: askedAt });
}

/** True if the newest call for the run began by `begunAt` and was not answered. */
export const isUnanswered = (principal: Principal, id: string, begunAt: number): Steps<boolean> =>
  exists(`SELECT id FROM runs WHERE ${OWN} AND unanswered_call IS NOT NULL AND asked_at <= @begunAt`, {
    id,
    principal,
    begunAt,
  });

export function* forgetCall(principal: Principal, id: string): Steps<void> {
  yield* change(`UPDATE runs SET unanswered_call = NULL, asked_at = NULL WHERE ${OWN}`, { id, principal });
}

/** Requests with other choices are other requests. */
function requestDigest({ task, threadId, model, limits, goal, changes }: StartRequest): string {
  const choices = defined({ model, limits, goal, changes });
  const chosen = Object.keys(choices).length === 0 ? [] : [choices];
  return createHash("sha256")
    .update(canonicalJson([task, ...(threadId === undefined ? [] : [threadId]), ...chosen]))
    .digest("base64url");
}
