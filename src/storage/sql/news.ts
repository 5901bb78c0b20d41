/** The outbox of news over any engine: the port of `runs/news.ts`, one transaction for each method. */
import type { JournalEntry } from "../../runs/events.ts";
import {
  type NewsRepository,
  type NewsRule,
  type NewsType,
  type Outgoing,
  type Settled,
  type Unreachable,
  type WaitingNews,
  type OccurrenceQuery,
  type Subscription,
  newsOf,
  targetOf,
} from "../../runs/news.ts";
import { type Principal, nameOf } from "../../runs/run.ts";
import * as journal from "./journal.ts";
import type { RunRow } from "./rows.ts";
import { type Engine, type Steps, all, change, first } from "./steps.ts";
import * as subscriptions from "./subscriptions.ts";
import { NAMED_EVENT, type NamedEventRow, toNews } from "./subscriptions.ts";

/** Newest messages of a target that are kept after they were given up. */
const KEPT_DEAD = 200;

interface NewsRow {
  number: number;
  run_id: string;
  seq: number;
  type: NewsType;
  target: string;
  environment: string;
  created_at: number;
  due_at: number;
  attempts: number;
  problem: string | null;
  dead_at: number | null;
}

type NamedRow = NewsRow & Pick<RunRow, "name" | "task">;

const toWaiting = (row: NamedRow): WaitingNews => ({
  number: row.number,
  target: row.target,
  type: row.type,
  runId: row.run_id,
  name: nameOf({ task: row.task, ...(row.name === null ? {} : { name: row.name }) }),
  createdAt: row.created_at,
  attempts: row.attempts,
  ...(row.problem === null ? {} : { problem: row.problem }),
  ...(row.dead_at === null ? { dueAt: row.due_at } : {}),
});

/**
 * Writes an event with a message for each rule and subscription that wants it. Belongs into the transaction of what it
 * tells of.
 */
export function* append(
  { id, environment, principal }: Pick<RunRow, "id" | "environment" | "principal">,
  entry: JournalEntry,
  { now, rules }: { now: number; rules: readonly NewsRule[] },
): Steps<void> {
  const seq = yield* journal.append(id, entry, now);
  for (const type of newsOf(entry)) {
    for (const { target, types } of rules) {
      if (!types.includes(type)) continue;
      yield* change(
        `INSERT INTO news_deliveries (run_id, seq, type, target, environment, created_at, due_at)
         VALUES (@run_id, @seq, @type, @target, @environment, @now, @now)`,
        { run_id: id, seq, type, target, environment, now },
      );
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

function* claim(
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
  const { number, target, attempts } = row;
  return { number, target, attempts, news: toNews(event, row.type) };
}

function* settle(
  { number, attempts, target }: Pick<Outgoing, "number" | "attempts" | "target">,
  settled: Settled,
): Steps<void> {
  const own = "number = @number AND attempts = @attempts AND dead_at IS NULL";
  const values = { number, attempts };
  switch (settled.kind) {
    case "delivered":
      yield* change(`DELETE FROM news_deliveries WHERE ${own}`, values);
      return;
    case "again": {
      const { dueAt, problem } = settled;
      const sql = `UPDATE news_deliveries SET due_at = @due_at, problem = @problem WHERE ${own}`;
      yield* change(sql, { ...values, due_at: dueAt, problem });
      return;
    }
    case "broken_off":
      yield* change(`UPDATE news_deliveries SET due_at = @now, attempts = attempts - 1 WHERE ${own}`, {
        ...values,
        now: settled.now,
      });
      return;
    case "dead": {
      const { now, problem } = settled;
      const sql = `UPDATE news_deliveries SET dead_at = @now, problem = @problem WHERE ${own}`;
      yield* change(sql, { ...values, now, problem });
      yield* dropOldestDead(target);
    }
  }
}

const dropOldestDead = (target: string) =>
  change(
    `DELETE FROM news_deliveries WHERE target = @target AND dead_at IS NOT NULL AND number <= (
       SELECT number FROM news_deliveries WHERE target = @target AND dead_at IS NOT NULL
       ORDER BY number DESC LIMIT 1 OFFSET ${KEPT_DEAD})`,
    { target },
  );

function* postpone({ target, environment, now, dueAt, problem }: Unreachable): Steps<void> {
  const values = { target, environment, now, problem };
  const counted = "UPDATE news_deliveries SET attempts = attempts + 1, problem = @problem";
  for (const [attempts, due] of dueAt.entries()) {
    const sql = `${counted}, due_at = @due WHERE ${DUE} AND attempts = @attempts`;
    yield* change(sql, { ...values, due, attempts });
  }
  yield* change(`${counted}, dead_at = @now WHERE ${DUE}`, values);
  yield* dropOldestDead(target);
}

function* list(limit: number): Steps<WaitingNews[]> {
  const rows = yield* all<NamedRow>(
    `SELECT d.*, r.name, r.task FROM news_deliveries AS d JOIN runs AS r ON r.id = d.run_id
     ORDER BY (d.dead_at IS NULL), d.number LIMIT @limit`,
    { limit },
  );
  return rows.map(toWaiting);
}

/** Changes each of the numbered messages, or all that were given up; gives how many there were. */
function* ofThese(sql: string, numbers: readonly number[] | undefined, now: number): Steps<number> {
  if (numbers === undefined) return yield* change(`${sql} WHERE dead_at IS NOT NULL`, { now });
  let count = 0;
  for (const number of new Set(numbers))
    count += yield* change(`${sql} WHERE number = @number`, { number, now });
  return count;
}

export class StoredNews implements NewsRepository {
  readonly #engine: Engine;
  #rules: readonly NewsRule[] = [];
  #posted = (): void => undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  open(rules: readonly NewsRule[], posted: () => void): { close(): void } {
    this.#rules = rules;
    this.#posted = posted;
    return { close: () => void ((this.#rules = []), (this.#posted = () => undefined)) };
  }

  /** Those of this process. */
  get rules(): readonly NewsRule[] {
    return this.#rules;
  }

  /** After a transaction that may have written messages. */
  posted(): void {
    this.#posted();
  }

  due(environment: string): Promise<{ target: string; dueAt: number }[]> {
    const sql = `SELECT target, min(due_at) AS "dueAt" FROM news_deliveries
      WHERE dead_at IS NULL AND environment = @environment GROUP BY target`;
    return this.#engine.read(() => all<{ target: string; dueAt: number }>(sql, { environment }));
  }

  claim(place: { target: string; environment: string }, now: number, until: number) {
    return this.#engine.note(() => claim(place, now, until));
  }

  settle(outgoing: Pick<Outgoing, "number" | "attempts" | "target">, settled: Settled): Promise<void> {
    return this.#engine.note(() => settle(outgoing, settled));
  }

  postpone(unreachable: Unreachable): Promise<void> {
    return this.#engine.note(() => postpone(unreachable));
  }

  occurrences(principal: Principal, query: OccurrenceQuery) {
    return this.#engine.of(principal).read(() => subscriptions.occurrences(principal, query));
  }

  subscription(principal: Principal, id: string, now: number): Promise<Subscription | undefined> {
    return this.#engine.of(principal).read(() => subscriptions.find(principal, id, now));
  }

  async subscribe(...[subscription, terms]: Parameters<NewsRepository["subscribe"]>) {
    const add = () => subscriptions.add(subscription, terms);
    const added = await this.#engine.of(subscription.principal).write(add);
    this.#posted();
    return added;
  }

  unsubscribe(principal: Principal, id: string): Promise<boolean> {
    return this.#engine.of(principal).write(() => subscriptions.remove(principal, id));
  }

  subscriptionById(id: string): Promise<Subscription | undefined> {
    return this.#engine.read(() => subscriptions.findAnyones(id));
  }

  deleteExpired(now: number): Promise<void> {
    return this.#engine.write(() => subscriptions.removeExpired(now));
  }

  hasSubscriptions(now: number): Promise<boolean> {
    return this.#engine.read(() => subscriptions.anyOpen(now));
  }

  list(limit: number): Promise<WaitingNews[]> {
    return this.#engine.read(() => list(limit));
  }

  retry(numbers: readonly number[] | undefined, now: number): Promise<number> {
    const sql = "UPDATE news_deliveries SET dead_at = NULL, attempts = 0, due_at = @now";
    return this.#engine.write(() => ofThese(sql, numbers, now));
  }

  drop(numbers: readonly number[] | undefined): Promise<number> {
    return this.#engine.write(() => ofThese("DELETE FROM news_deliveries", numbers, 0));
  }

  async countDead(): Promise<number> {
    const sql = `SELECT count(*) AS count FROM news_deliveries
      WHERE dead_at IS NOT NULL AND target NOT LIKE '${targetOf("%")}'`;
    return (await this.#engine.read(() => first<{ count: number }>(sql)))?.count ?? 0;
  }
}
