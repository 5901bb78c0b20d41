/** Schedules over any engine: the port of `runs/ports.ts`, one transaction for each method. */
import { defined } from "../../core/defined.ts";
import { type Json, fromJson, toJson } from "../../core/json.ts";
import type { Changes, RunLimits } from "../../runs/choices.ts";
import type { Created, NewRun, ScheduleRepository } from "../../runs/ports.ts";
import type { Principal, Run, RunSummary } from "../../runs/run.ts";
import type {
  Advanced,
  CatchUp,
  Occurrences,
  Schedule,
  ScheduleView,
  Skip,
  SkipReason,
  Step,
} from "../../runs/schedule.ts";
import { type RunRow, SUMMARY_COLUMNS, type SummaryRow, toRun, toSummary } from "./rows.ts";
import { create } from "./runs.ts";
import { type Engine, type Steps, all, change, first, lockPrincipal } from "./steps.ts";

/** Newest runs and skips of a schedule that are shown with it. */
const SHOWN = 5;
/** Newest skips of a schedule that are kept. */
const KEPT_SKIPS = 200;

interface ScheduleRow {
  id: string;
  principal: string;
  environment: string;
  name: string;
  task: string;
  expression: string;
  time_zone: string;
  catch_up: CatchUp;
  catch_up_limit: number;
  overlap: 0 | 1;
  created_at: number;
  paused_at: number | null;
  due_at: number;
  model: string | null;
  limits: Json<RunLimits> | null;
  goal: Json<string[]> | null;
  changes: Changes | null;
}

const toSchedule = (row: ScheduleRow): Schedule => ({
  id: row.id,
  principal: row.principal,
  environment: row.environment,
  name: row.name,
  task: row.task,
  expression: row.expression,
  timeZone: row.time_zone,
  catchUp: row.catch_up,
  catchUpLimit: row.catch_up_limit,
  overlap: row.overlap === 1,
  createdAt: row.created_at,
  ...(row.paused_at === null ? {} : { pausedAt: row.paused_at }),
  dueAt: row.due_at,
  ...(row.model === null ? {} : { model: row.model }),
  ...(row.limits === null ? {} : { limits: fromJson(row.limits) }),
  ...(row.goal === null ? {} : { goal: fromJson(row.goal) }),
  ...(row.changes === null ? {} : { changes: row.changes }),
});

const toColumns = (schedule: Schedule) => ({
  name: schedule.name,
  task: schedule.task,
  expression: schedule.expression,
  time_zone: schedule.timeZone,
  catch_up: schedule.catchUp,
  catch_up_limit: schedule.catchUpLimit,
  overlap: Number(schedule.overlap),
  due_at: schedule.dueAt,
  model: schedule.model ?? null,
  limits: schedule.limits === undefined ? null : toJson(schedule.limits),
  goal: schedule.goal === undefined ? null : toJson([...schedule.goal]),
  changes: schedule.changes ?? null,
});

const OWN = "id = @id AND principal = @principal";

function* add(schedule: Schedule, most: number): Steps<"added" | "name_taken" | "too_many"> {
  const { principal, name } = schedule;
  yield* lockPrincipal(principal);
  const others = yield* all<{ name: string }>("SELECT name FROM schedules WHERE principal = @principal", {
    principal,
  });
  if (others.some((other) => other.name === name)) return "name_taken";
  if (others.length >= most) return "too_many";
  yield* change(
    `INSERT INTO schedules (id, principal, environment, name, task, expression, time_zone, catch_up, catch_up_limit,
       overlap, created_at, due_at, model, limits, goal, changes)
     VALUES (@id, @principal, @environment, @name, @task, @expression, @time_zone, @catch_up, @catch_up_limit,
       @overlap, @created_at, @due_at, @model, @limits, @goal, @changes)`,
    {
      id: schedule.id,
      principal,
      environment: schedule.environment,
      created_at: schedule.createdAt,
      ...toColumns(schedule),
    },
  );
  return "added";
}

function* edit(
  before: Schedule,
  after: Schedule,
  skipped: Skip | undefined,
): Steps<"edited" | "name_taken" | "stale"> {
  const { id, principal, name } = after;
  yield* lockPrincipal(principal);
  const stored = yield* findToChange(before);
  if (stored === undefined || toJson(stored) !== toJson(before)) return "stale";
  const others = "SELECT id FROM schedules WHERE principal = @principal AND name = @name AND id <> @id";
  if ((yield* first(others, { principal, name, id })) !== undefined) return "name_taken";
  if (skipped !== undefined) yield* skip(id, skipped, skipped.reason);
  yield* change(
    `UPDATE schedules SET name = @name, task = @task, expression = @expression, time_zone = @time_zone,
       catch_up = @catch_up, catch_up_limit = @catch_up_limit, overlap = @overlap, due_at = @due_at,
       model = @model, limits = @limits, goal = @goal, changes = @changes WHERE id = @id`,
    { id, ...toColumns(after) },
  );
  return "edited";
}

function* find(principal: Principal, id: string): Steps<Schedule | undefined> {
  const row = yield* first<ScheduleRow>(`SELECT * FROM schedules WHERE ${OWN}`, { id, principal });
  return row && toSchedule(row);
}

/** The same, but locks the row until the transaction ends. */
function* findToChange({ principal, id }: Pick<Schedule, "principal" | "id">): Steps<Schedule | undefined> {
  const row = yield* first<ScheduleRow>(`SELECT * FROM schedules WHERE ${OWN} FOR UPDATE`, { id, principal });
  return row && toSchedule(row);
}

function* withHistory(rows: readonly ScheduleRow[]): Steps<ScheduleView[]> {
  const views: ScheduleView[] = [];
  for (const row of rows) {
    const { id, principal } = row;
    const runs = yield* all<SummaryRow>(
      `SELECT ${SUMMARY_COLUMNS} FROM runs WHERE schedule_id = @id AND principal = @principal
       ORDER BY number DESC LIMIT ${SHOWN}`,
      { id, principal },
    );
    const skips = yield* all<Skip>(
      `SELECT due_at AS "from", last_due_at AS "to", reason FROM schedule_skips WHERE schedule_id = @id
       ORDER BY due_at DESC LIMIT ${SHOWN}`,
      { id },
    );
    views.push({ ...toSchedule(row), runs: runs.map(toSummary), skips });
  }
  return views;
}

const viewsOf = (principal: Principal) =>
  function* (): Steps<ScheduleView[]> {
    const sql = "SELECT * FROM schedules WHERE principal = @principal ORDER BY number";
    return yield* withHistory(yield* all<ScheduleRow>(sql, { principal }));
  };

function* due(environment: string, now: number) {
  const isActive = "environment = @environment AND paused_at IS NULL";
  const rows = yield* all<ScheduleRow>(
    `SELECT * FROM schedules WHERE ${isActive} AND due_at <= @now ORDER BY due_at`,
    { environment, now },
  );
  const later = yield* first<{ next: number | null }>(
    `SELECT min(due_at) AS next FROM schedules WHERE ${isActive} AND due_at > @now`,
    { environment, now },
  );
  return { due: rows.map(toSchedule), next: later?.next ?? undefined };
}

function* resume(given: Schedule, dueAt: number, skipped: Skip | undefined): Steps<boolean> {
  const schedule = yield* findToChange(given);
  if (schedule?.pausedAt !== given.pausedAt || schedule?.dueAt !== given.dueAt) return false;
  if (skipped !== undefined) yield* skip(given.id, skipped, skipped.reason);
  yield* change("UPDATE schedules SET due_at = @due_at, paused_at = NULL WHERE id = @id", {
    id: given.id,
    due_at: dueAt,
  });
  return true;
}

function* remove(principal: Principal, id: string): Steps<boolean> {
  if ((yield* findToChange({ principal, id })) === undefined) return false;
  yield* change("DELETE FROM schedule_skips WHERE schedule_id = @id", { id });
  return (yield* change(`DELETE FROM schedules WHERE ${OWN}`, { id, principal })) > 0;
}

/** Notes occurrences that start no run. A skip for the same reason that ends right before them is extended. */
function* skip(id: string, { from, to, before }: Occurrences, reason: SkipReason): Steps<void> {
  const extended = yield* change(
    `UPDATE schedule_skips SET last_due_at = @to
     WHERE schedule_id = @id AND due_at = (SELECT max(due_at) FROM schedule_skips WHERE schedule_id = @id)
       AND last_due_at = @before AND reason = @reason`,
    { id, to, before: before ?? null, reason },
  );
  if (extended > 0) return;
  yield* change(
    `INSERT INTO schedule_skips (schedule_id, due_at, last_due_at, reason) VALUES (@id, @from, @to, @reason)
     ON CONFLICT DO NOTHING`,
    { id, from, to, reason },
  );
  yield* change(
    `DELETE FROM schedule_skips WHERE schedule_id = @id AND due_at <= (SELECT due_at FROM schedule_skips
       WHERE schedule_id = @id ORDER BY due_at DESC LIMIT 1 OFFSET ${KEPT_SKIPS})`,
    { id },
  );
}

function* openRunOf({ id, principal }: Schedule): Steps<Run | undefined> {
  const row = yield* first<RunRow>(
    "SELECT * FROM runs WHERE principal = @principal AND ended_at IS NULL AND schedule_id = @id LIMIT 1",
    { id, principal },
  );
  return row && toRun(row);
}

/** The fields that decide when a schedule starts a run, and whether it may. */
const startedBy = ({ expression, timeZone, model, limits }: Schedule): string =>
  toJson([expression, timeZone, model ?? null, limits ?? null]);

function* advance(given: Schedule, step: Step, fresh: NewRun): Steps<Advanced> {
  const schedule = yield* findToChange(given);
  const isSame = schedule !== undefined && startedBy(schedule) === startedBy(given);
  if (!isSame || schedule.dueAt !== given.dueAt || schedule.pausedAt !== undefined) return { kind: "stale" };
  const { skipped, start, refused, dueAt } = step;
  if (skipped !== undefined) yield* skip(given.id, skipped, "too_old");
  const outcome: Advanced =
    start === undefined
      ? { kind: "skipped", reason: "too_old" }
      : yield* startOrSkip(schedule, { start, refused }, fresh);
  const sql = "UPDATE schedules SET due_at = @due_at WHERE id = @id";
  yield* change(sql, { id: given.id, due_at: outcome.kind === "waits" ? (start?.from ?? dueAt) : dueAt });
  return outcome;
}

function* startOrSkip(
  schedule: Schedule,
  { start, refused }: { start: Occurrences; refused: SkipReason | undefined },
  fresh: NewRun,
): Steps<Advanced> {
  const { id, name, catchUp, principal } = schedule;
  // After the clock was set back, a schedule that was paused and resumed comes to its occurrences again.
  const known = "SELECT id FROM runs WHERE schedule_id = @id AND occurrence = @start";
  if ((yield* first(known, { id, start: start.from })) !== undefined) return { kind: "stale" };
  const open = schedule.overlap ? undefined : yield* openRunOf(schedule);
  let reason = refused;
  if (reason === undefined && open !== undefined) {
    if (open.status === "working" && catchUp === "all") return { kind: "waits" };
    reason = open.status === "input_required" ? "previous_waits" : "previous_at_work";
  }
  if (reason === undefined) {
    const created = yield* create(principal, requestOf(schedule), {
      ...fresh,
      schedule: { id, name, dueAt: start.from },
    });
    if (created.kind === "created") return { kind: "started", run: created.run };
    reason = "too_many_open";
  }
  yield* skip(id, start, reason);
  return { kind: "skipped", reason };
}

/** The request that its runs are started with. */
const requestOf = ({ task, model, limits, goal, changes }: Schedule) => ({
  task,
  ...defined({ model, limits, goal, changes }),
});

function* runNow(given: Schedule, fresh: NewRun): Steps<Created | { kind: "previous_open"; run: Run }> {
  const schedule = (yield* findToChange(given)) ?? given;
  const open = schedule.overlap ? undefined : yield* openRunOf(schedule);
  if (open !== undefined) return { kind: "previous_open", run: open };
  const { id, name, principal } = schedule;
  return yield* create(principal, requestOf(schedule), { ...fresh, schedule: { id, name } });
}

export class StoredSchedules implements ScheduleRepository {
  readonly #engine: Engine;
  readonly #started: (runId: string) => void;
  readonly #withPlaces: (runs: RunSummary[]) => Promise<RunSummary[]>;

  /** `started` is told of a new run after it is stored. */
  constructor(
    engine: Engine,
    started: (runId: string) => void,
    withPlaces: (runs: RunSummary[]) => Promise<RunSummary[]>,
  ) {
    this.#engine = engine;
    this.#started = started;
    this.#withPlaces = withPlaces;
  }

  add(schedule: Schedule, most: number) {
    return this.#engine.of(schedule.principal).write(() => add(schedule, most));
  }

  find(principal: Principal, id: string): Promise<Schedule | undefined> {
    return this.#engine.of(principal).read(() => find(principal, id));
  }

  async list(principal: Principal): Promise<ScheduleView[]> {
    return this.#placed(await this.#engine.of(principal).read(viewsOf(principal)));
  }

  async listAll(): Promise<ScheduleView[]> {
    const sql = "SELECT DISTINCT principal FROM schedules ORDER BY principal";
    const principals = await this.#engine.read(() => all<{ principal: Principal }>(sql));
    return (await Promise.all(principals.map(({ principal }) => this.list(principal)))).flat();
  }

  edit(before: Schedule, after: Schedule, skipped: Skip | undefined) {
    return this.#engine.of(after.principal).write(() => edit(before, after, skipped));
  }

  async pause(principal: Principal, id: string, now: number): Promise<boolean> {
    const sql = `UPDATE schedules SET paused_at = coalesce(paused_at, @now) WHERE ${OWN}`;
    return (await this.#engine.of(principal).write(() => change(sql, { id, principal, now }))) > 0;
  }

  resume(schedule: Schedule, dueAt: number, skipped: Skip | undefined): Promise<boolean> {
    return this.#engine.of(schedule.principal).write(() => resume(schedule, dueAt, skipped));
  }

  remove(principal: Principal, id: string): Promise<boolean> {
    return this.#engine.of(principal).write(() => remove(principal, id));
  }

  due(environment: string, now: number) {
    return this.#engine.read(() => due(environment, now));
  }

  async advance(schedule: Schedule, step: Step, fresh: NewRun): Promise<Advanced> {
    const write = () => advance(schedule, step, fresh);
    const outcome = await this.#engine.of(schedule.principal).write(write);
    if (outcome.kind === "started") this.#started(outcome.run.id);
    return outcome;
  }

  async runNow(schedule: Schedule, fresh: NewRun) {
    const outcome = await this.#engine.of(schedule.principal).write(() => runNow(schedule, fresh));
    if (outcome.kind === "created") this.#started(outcome.run.id);
    return outcome;
  }

  async #placed(views: ScheduleView[]): Promise<ScheduleView[]> {
    const placed = await this.#withPlaces(views.flatMap(({ runs }) => runs));
    return views.map((view) => ({ ...view, runs: placed.splice(0, view.runs.length) }));
  }
}
