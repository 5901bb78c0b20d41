/** The outbox of news over any engine, one transaction for each method. */
import type { JournalEntry } from "../events.ts";
import type { NewsRule, Outgoing, Settled, WaitingNews } from "../news.ts";
import { targetOf } from "../news.ts";
import { type RowOf, readFields } from "./columns.ts";
import * as journal from "./journal.ts";
import type { RunRow } from "./rows.ts";
import type { Engine, Steps } from "./steps.ts";
import { all, change, count, first, insert, ofPrincipal, ofServer } from "./steps.ts";
import * as subscriptions from "./subscriptions.ts";
import { NAMED_EVENT, type NamedEventRow, newsOf, toNews } from "./subscriptions.ts";

type NewsRow = RowOf<Omit<WaitingNews, "name" | "dueAt">> & {
  seq: number;
  environment: string;
  due_at: number;
  dead_at: number | null;
};

const toWaiting = (row: NewsRow & Pick<RunRow, "name" | "task">): WaitingNews => ({
  ...readFields(row, "number, target, type, run_id, created_at, attempts, problem"),
  name: row.name ?? row.task,
  ...(row.dead_at === null ? { dueAt: row.due_at } : {}),
});

/** Writes an event with its messages. Belongs into the transaction of the reported change. */
export function* append(
  { id, environment, principal }: Pick<RunRow, "id" | "environment" | "principal">,
  entry: JournalEntry,
  { now, rules }: { now: number; rules: readonly NewsRule[] },
): Steps<void> {
  const seq = yield* journal.append(id, entry, now);
  const isForeign = entry.kind === "question_asked" && entry.data.kind === "elicitation";
  for (const type of newsOf(entry)) {
    for (const { target, types } of rules) {
      if (!types.includes(type)) continue;
      const place = { run_id: id, type, target };
      // Adds a question to a message that waits for its first attempt. Keeps others from claiming it in the meantime.
      const join = `UPDATE news_deliveries SET due_at = due_at
  WHERE run_id = @run_id AND type = @type AND target = @target AND attempts = 0 AND dead_at IS NULL`;
      if (type === "question.asked" && (yield* change(join, place)) > 0) continue;
      // Time in which questions of other MCP servers are collected into one message: some ask several in a row.
      const due = { created_at: now, due_at: isForeign ? now + 2000 : now };
      yield* insert("news_deliveries", { ...place, seq, environment, ...due });
    }
    yield* change(
      `INSERT INTO news_deliveries (run_id, seq, type, target, environment, created_at, due_at)
       SELECT @run_id, CAST(@seq AS BIGINT), @type, '${targetOf("")}' || id, @environment, CAST(@now AS BIGINT), CAST(@now AS BIGINT)
       FROM news_subscriptions
       WHERE principal = @principal AND type = @type AND expires_at > @now AND (run_id IS NULL OR run_id = @run_id)`,
      { run_id: id, seq, type, environment, now, principal },
    );
  }
}

const DUE = "dead_at IS NULL AND target = @target AND environment = @environment AND due_at <= @now";

const SETTLED: Readonly<Record<Settled["kind"], string>> = {
  delivered: "DELETE FROM news_deliveries",
  again: "UPDATE news_deliveries SET due_at = @dueAt, problem = @problem",
  broken_off: "UPDATE news_deliveries SET due_at = @now, attempts = attempts - 1",
  dead: "UPDATE news_deliveries SET dead_at = @now, problem = @problem",
};

/** Deletes all but the newest 200 undeliverable messages of a target. */
const dropOldestDead = (target: string) =>
  change(
    `DELETE FROM news_deliveries WHERE target = @target AND dead_at IS NOT NULL AND number <= (
       SELECT number FROM news_deliveries WHERE target = @target AND dead_at IS NOT NULL
       ORDER BY number DESC LIMIT 1 OFFSET 200)`,
    { target },
  );

/** Steps of whoever delivers messages. */
const DELIVERY = {
  /** Claims the message that is due first, until `until`. Returns undefined if none is due. */
  *claim(
    place: { target: string; environment: string },
    now: number,
    until: number,
  ): Steps<Outgoing | undefined> {
    const row = yield* first<NewsRow>(
      `UPDATE news_deliveries SET attempts = attempts + 1, due_at = @until
       WHERE number = (SELECT number FROM news_deliveries WHERE ${DUE}
         ORDER BY due_at, number LIMIT 1 FOR UPDATE SKIP LOCKED)
       RETURNING *`,
      { ...place, now, until },
    );
    if (row === undefined) return undefined;
    const event = yield* first<NamedEventRow>(
      `SELECT ${NAMED_EVENT} FROM run_events AS e JOIN runs AS r ON r.id = e.run_id
       WHERE e.run_id = @run_id AND e.seq = @seq`,
      { run_id: row.run_id, seq: row.seq },
    );
    if (event === undefined) throw new Error(`News ${row.number} has no event.`);
    const { number, target, attempts, run_id, seq, type } = row;
    const since =
      "SELECT count(*) AS count FROM run_events WHERE run_id = @run_id AND kind = @kind AND seq >= @seq";
    const questions = type === "question.asked" ? yield* count(since, { run_id, seq, kind: event.kind }) : 1;
    return {
      number,
      target,
      attempts,
      news: { ...toNews(event, type), ...(questions > 1 && { questions }) },
    };
  },
  /** Does nothing if another server has claimed the message since. */
  *settle(
    { number, attempts, target }: Pick<Outgoing, "number" | "attempts" | "target">,
    { kind, ...facts }: Settled,
  ): Steps<void> {
    const isOwn = "number = @number AND attempts = @attempts AND dead_at IS NULL";
    yield* change(`${SETTLED[kind]} WHERE ${isOwn}`, { number, attempts, ...facts });
    if (kind === "dead") yield* dropOldestDead(target);
  },
  /** `dueAt`: times of the next attempts. A message with more failed attempts is abandoned. */
  *postpone(
    values: Record<"target" | "environment" | "problem", string> & { now: number },
    dueAt: readonly number[],
  ): Steps<void> {
    const counted = "UPDATE news_deliveries SET attempts = attempts + 1, problem = @problem";
    for (const [attempts, due] of dueAt.entries()) {
      const sql = `${counted}, due_at = @due WHERE ${DUE} AND attempts = @attempts`;
      yield* change(sql, { ...values, due, attempts });
    }
    yield* change(`${counted}, dead_at = @now WHERE ${DUE}`, values);
    yield* dropOldestDead(values.target);
  },
};

/** Changes each of the numbered messages, or all undeliverable ones; returns their number. */
function* ofThese(sql: string, numbers: readonly number[] | undefined, now: number): Steps<number> {
  if (numbers === undefined) return yield* change(`${sql} WHERE dead_at IS NOT NULL`, { now });
  let count = 0;
  for (const number of new Set(numbers))
    count += yield* change(`${sql} WHERE number = @number`, { number, now });
  return count;
}

/** The next attempt for each target that has messages of this environment. */
const due = (environment: string): Steps<{ target: string; dueAt: number }[]> =>
  all(
    `SELECT target, min(due_at) AS "dueAt" FROM news_deliveries
     WHERE dead_at IS NULL AND environment = @environment GROUP BY target`,
    { environment },
  );

export type StoredNews = ReturnType<typeof storedNews>;

export function storedNews(engine: Engine) {
  const nobody = { rules: [], posted: () => undefined };
  let receiver: { rules: readonly NewsRule[]; posted: () => void } = nobody;
  const { occurrences, find, findAnyones, anyOpen, remove, removeExpired } = subscriptions;
  return {
    /** Those of this process. */
    get rules() {
      return receiver.rules;
    },
    /** Called after a transaction that may have written messages. */
    posted: () => receiver.posted(),
    /** Writes messages for each rule with the events of this process. `posted` is called when there may be new ones. */
    open: (rules: readonly NewsRule[], posted: () => void) => {
      receiver = { rules, posted };
      return { close: () => void (receiver = nobody) };
    },
    subscribe: async (...args: Parameters<typeof subscriptions.add>) => {
      const [principal] = args;
      const added = await engine.of(principal).write(() => subscriptions.add(...args));
      receiver.posted();
      return added;
    },
    ...ofPrincipal(engine, "read", { occurrences, subscription: find }),
    ...ofPrincipal(engine, "write", { unsubscribe: remove }),
    ...ofServer(engine, "read", {
      due,
      /** Lists abandoned messages first, then the others by age. */
      *list(limit: number): Steps<WaitingNews[]> {
        const rows = yield* all<Parameters<typeof toWaiting>[0]>(
          `SELECT d.*, r.name, r.task FROM news_deliveries AS d JOIN runs AS r ON r.id = d.run_id
     ORDER BY (d.dead_at IS NULL), d.number LIMIT @limit`,
          { limit },
        );
        return rows.map(toWaiting);
      },
      /** Counts the abandoned messages to channels. */
      countDead: () =>
        count(
          `SELECT count(*) AS count FROM news_deliveries
     WHERE dead_at IS NOT NULL AND target NOT LIKE '${targetOf("%")}'`,
        ),
      subscriptionById: findAnyones,
      /** True if any subscription has not expired. */
      hasSubscriptions: anyOpen,
    }),
    ...ofServer(engine, "write", {
      retry: (numbers: readonly number[] | undefined, now: number) =>
        ofThese("UPDATE news_deliveries SET dead_at = NULL, attempts = 0, due_at = @now", numbers, now),
      drop: (numbers: readonly number[] | undefined) => ofThese("DELETE FROM news_deliveries", numbers, 0),
      deleteExpired: removeExpired,
    }),
    ...ofServer(engine, "note", DELIVERY),
  };
}
