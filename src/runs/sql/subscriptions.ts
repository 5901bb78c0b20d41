/** Clients that are sent events, and events that clients ask for, over any engine. */
import type { RunEvent } from "../events.ts";
import type { EventType, News, NewsType, OccurrenceQuery, Subscription } from "../news.ts";
import { NEWS_TYPES, targetOf } from "../news.ts";
import { defined } from "../../core/unknown.ts";
import { toJson } from "../../core/json.ts";
import { type Principal, isLimit } from "../run.ts";
import { type RowOf, columnValues, readFields } from "./columns.ts";
import { type EventRow, type RunRow, toEvent } from "./rows.ts";
import { IS_NEWS } from "./schema.ts";
import { type Steps, all, change, exists, first, insert, lockPrincipal } from "./steps.ts";

const SUBSCRIPTION = "id, principal, type, run_id, url, secret, expires_at, created_at, credential";

/** Kinds of journal events for each type. Of `budget.reached` only those of runs with a reason why they stopped. */
const KINDS_OF_NEWS: Readonly<Record<EventType, readonly RunEvent["kind"][]>> = {
  "run.finished": ["run_completed"],
  "run.failed": ["run_failed"],
  "question.asked": ["question_asked"],
  "approval.requested": ["approval_requested"],
  "budget.reached": ["run_completed"],
  "run.progress": ["todos", "subagent_started", "subagent_finished"],
};

export const newsOf = ({ kind, data }: Pick<RunEvent, "kind" | "data">): readonly NewsType[] =>
  NEWS_TYPES.filter(
    (type) =>
      KINDS_OF_NEWS[type].includes(kind) &&
      (type !== "budget.reached" ||
        ("stopReason" in data && data.stopReason !== undefined && isLimit(data.stopReason))),
  );

export const newsId = (runId: string, seq: number, type: EventType): string =>
  `${runId}_${seq}_${type.replace(".", "_")}`;

export type NamedEventRow = EventRow & Pick<RunRow, "thread_id" | "name" | "task" | "schedule_name">;

/** Columns of an event `e` with those of its run `r`. */
export const NAMED_EVENT =
  "e.run_id, e.seq, e.time, e.agent, e.kind, e.data, r.thread_id, r.name, r.task, r.schedule_name";

export const toNews = (row: NamedEventRow, type: EventType): News => ({
  id: newsId(row.run_id, row.seq, type),
  type,
  time: row.time,
  runId: row.run_id,
  threadId: row.thread_id,
  name: row.name ?? row.task,
  ...(row.schedule_name === null ? {} : { schedule: row.schedule_name }),
  event: toEvent(row),
});

/** Finds the events of a principal since a time; the SQL begins with `FROM`, and its columns are those of `e` and `r`. */
function wanted(principal: Principal, { type, runId, since, limit }: OccurrenceQuery) {
  const conditions = [
    `e.${IS_NEWS}`,
    "e.kind IN (SELECT value FROM json_each(@kinds))",
    "e.time >= @since AND r.principal = @principal",
    ...(type === "budget.reached" ? ["r.stop_reason IS NOT NULL AND r.stop_reason <> 'goal_not_met'"] : []),
    ...(runId === undefined ? [] : ["e.run_id = @run_id"]),
  ];
  return {
    sql: `FROM run_events AS e INDEXED BY run_events_news JOIN runs AS r ON r.id = e.run_id
      WHERE ${conditions.join(" AND ")}`,
    values: { principal, since, limit, kinds: toJson(KINDS_OF_NEWS[type]), ...defined({ run_id: runId }) },
  };
}

/** Ordered by time. An event may be stored a little later than one with a later time. */
export function* occurrences(principal: Principal, query: OccurrenceQuery): Steps<News[]> {
  const { sql, values } = wanted(principal, query);
  const inOrder = `SELECT ${NAMED_EVENT} ${sql} ORDER BY e.time, e.run_id, e.seq LIMIT @limit`;
  const rows = yield* all<NamedEventRow>(inOrder, values);
  return rows.map((row) => toNews(row, query.type));
}

/** Newest events that a new subscription is sent of those before it. */
const MOST_MISSED = 1000;

/** Sends the events since a time, oldest first; returns true if some before them were left out. */
function* sendMissed({ id, principal, type, runId }: Subscription, since: number, now: number) {
  const { sql, values } = wanted(principal, { type, runId, since, limit: MOST_MISSED });
  // Due at their own times, they are sent in their order.
  const sent = yield* change(
    `INSERT INTO news_deliveries (run_id, seq, type, target, environment, created_at, due_at)
     SELECT e.run_id, e.seq, @type, @target, r.environment, CAST(@now AS BIGINT), e.time
     ${sql} ORDER BY e.time DESC, e.run_id DESC, e.seq DESC LIMIT @limit`,
    { ...values, type, target: targetOf(id), now },
  );
  return sent === MOST_MISSED;
}

/** Finds one of the principal's that has not expired. */
export function* find(principal: Principal, id: string, now: number): Steps<Subscription | undefined> {
  const row = yield* first<RowOf<Subscription>>(
    "SELECT * FROM news_subscriptions WHERE id = @id AND principal = @principal AND expires_at > @now",
    { id, principal, now },
  );
  return row && readFields(row, SUBSCRIPTION);
}

/** The subscription of whichever principal, expired or not. */
export function* findAnyones(id: string): Steps<Subscription | undefined> {
  const row = yield* first<RowOf<Subscription>>("SELECT * FROM news_subscriptions WHERE id = @id", { id });
  return row && readFields(row, SUBSCRIPTION);
}

export const anyOpen = (now: number): Steps<boolean> =>
  exists("SELECT id FROM news_subscriptions WHERE expires_at > @now LIMIT 1", { now });

/**
 * Adds it, or changes its secret and its end. A new one is also sent the newest events since `since`. Expired ones of
 * the principal are deleted, with the messages on their way. Returns undefined if the principal has `most` others.
 */
export function* add(
  principal: Principal,
  wanted: Omit<Subscription, "principal">,
  { most, now, since }: { most: number; now: number; since?: number | undefined },
): Steps<{ isTruncated: boolean } | undefined> {
  const subscription = { ...wanted, principal };
  const { id } = subscription;
  yield* lockPrincipal(principal);
  const known = yield* all<Pick<RowOf<Subscription>, "id" | "expires_at">>(
    "SELECT id, expires_at FROM news_subscriptions WHERE principal = @principal",
    { principal },
  );
  for (const old of known) if (old.expires_at <= now) yield* remove(principal, old.id);
  const open = known.filter((one) => one.expires_at > now);
  const isNew = open.every((one) => one.id !== id);
  if (open.length - (isNew ? 0 : 1) >= most) return undefined;
  yield* insert(
    "news_subscriptions",
    columnValues(subscription, SUBSCRIPTION),
    `ON CONFLICT (id) DO UPDATE SET secret = excluded.secret, expires_at = excluded.expires_at,
       credential = excluded.credential`,
  );
  const isMissed = isNew && since !== undefined;
  return { isTruncated: isMissed && (yield* sendMissed(subscription, since, now)) };
}

/** Removes those of all principals, with the messages on their way. */
export function* removeExpired(now: number): Steps<void> {
  const sql = "DELETE FROM news_subscriptions WHERE expires_at <= @now RETURNING id";
  for (const { id } of yield* all<{ id: string }>(sql, { now })) yield* dropMessages(id);
}

const dropMessages = (id: string): Steps<number> =>
  change("DELETE FROM news_deliveries WHERE target = @target", { target: targetOf(id) });

/** Removes it with the messages on their way; false: the principal has none of this id. */
export function* remove(principal: Principal, id: string): Steps<boolean> {
  const sql = "DELETE FROM news_subscriptions WHERE id = @id AND principal = @principal";
  if ((yield* change(sql, { id, principal })) === 0) return false;
  yield* dropMessages(id);
  return true;
}
