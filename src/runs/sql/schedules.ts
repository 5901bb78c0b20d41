/** Schedules over any engine, one transaction for each method. */
import { defined } from "../../core/unknown.ts";
import { canonicalJson, toJson } from "../../core/json.ts";
import type { Created, NewRun } from "../ports.ts";
import type { Principal, Run, RunSummary } from "../run.ts";
import type { Advanced, Occurrences, Schedule, ScheduleView, Skip, SkipReason, Step } from "../schedule.ts";
import { type RowOf, columnValues, readFields } from "./columns.ts";
import { SUMMARY_COLUMNS, type SummaryRow, toSummary } from "./rows.ts";
import { OWN, create, runWhere } from "./runs.ts";
import type { Engine, Steps } from "./steps.ts";
import { all, change, exists, first, insert, lockPrincipal, ofPrincipal, ofServer } from "./steps.ts";

/** Newest runs and skips of a schedule that are shown with it. */
const SHOWN = 5;

const ADDED = "id, principal, environment, created_at";
/** Columns that a person can change. */
const CHOSEN =
  "name, task, expression, time_zone, catch_up, catch_up_limit, due_at, model, limits, goal, changes";

const toSchedule = (row: RowOf<Schedule>): Schedule => ({
  ...readFields(row, `${ADDED}, ${CHOSEN}, paused_at`),
  overlap: row.overlap === 1,
});

const chosenColumns = (schedule: Schedule) => ({
  ...columnValues(schedule, CHOSEN),
  overlap: Number(schedule.overlap),
});

function* addSchedule(schedule: Schedule, most: number): Steps<"added" | "name_taken" | "too_many"> {
  const { principal, name } = schedule;
  yield* lockPrincipal(principal);
  const sql = "SELECT name FROM schedules WHERE principal = @principal";
  const others = yield* all<{ name: string }>(sql, { principal });
  if (others.some((other) => other.name === name)) return "name_taken";
  if (others.length >= most) return "too_many";
  yield* insert("schedules", { ...columnValues(schedule, ADDED), ...chosenColumns(schedule) });
  return "added";
}

/** Stores `after` in the place of `before`. `stale`: it was changed since it was read. */
function* edit(
  before: Schedule,
  after: Schedule,
  skipped: Skip | undefined,
): Steps<"edited" | "name_taken" | "stale"> {
  const { id, principal, name } = after;
  yield* lockPrincipal(principal);
  const stored = yield* findToChange(before);
  if (stored === undefined || canonicalJson(stored) !== canonicalJson(before)) return "stale";
  const others = "SELECT id FROM schedules WHERE principal = @principal AND name = @name AND id <> @id";
  if (yield* exists(others, { principal, name, id })) return "name_taken";
  if (skipped !== undefined) yield* skip(id, skipped, skipped.reason);
  const values = chosenColumns(after);
  const changes = Object.keys(values).map((column) => `${column} = @${column}`);
  yield* change(`UPDATE schedules SET ${changes.join(", ")} WHERE id = @id`, { id, ...values });
  return "edited";
}

function* findSchedule(principal: Principal, id: string, lock = ""): Steps<Schedule | undefined> {
  const row = yield* first<RowOf<Schedule>>(`SELECT * FROM schedules WHERE ${OWN}${lock}`, { id, principal });
  return row && toSchedule(row);
}

/** Returns the schedule and locks its row until the transaction ends. */
const findToChange = ({ principal, id }: Pick<Schedule, "principal" | "id">): Steps<Schedule | undefined> =>
  findSchedule(principal, id, " FOR UPDATE");

function* withHistory(rows: readonly RowOf<Schedule>[]): Steps<ScheduleView[]> {
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

/** The schedules of an environment that are due, and the next time that one is. */
function* due(environment: string, now: number): Steps<{ due: Schedule[]; next: number | undefined }> {
  const isActive = "environment = @environment AND paused_at IS NULL";
  const dueNow = `SELECT * FROM schedules WHERE ${isActive} AND due_at <= @now ORDER BY due_at`;
  const rows = yield* all<RowOf<Schedule>>(dueNow, { environment, now });
  const later = `SELECT min(due_at) AS next FROM schedules WHERE ${isActive} AND due_at > @now`;
  const found = yield* first<{ next: number | null }>(later, { environment, now });
  return { due: rows.map(toSchedule), next: found?.next ?? undefined };
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
  const fresh = { schedule_id: id, due_at: from, last_due_at: to, reason };
  yield* insert("schedule_skips", fresh, "ON CONFLICT DO NOTHING");
  // The newest 200 skips of a schedule are kept.
  yield* change(
    `DELETE FROM schedule_skips WHERE schedule_id = @id AND due_at <= (SELECT due_at FROM schedule_skips
       WHERE schedule_id = @id ORDER BY due_at DESC LIMIT 1 OFFSET 200)`,
    { id },
  );
}

/** The open run that keeps a schedule from starting another. */
function* findOpenRun({ id, principal, overlap }: Schedule): Steps<Run | undefined> {
  if (overlap) return undefined;
  const isOpen = "principal = @principal AND ended_at IS NULL AND schedule_id = @id LIMIT 1";
  return yield* runWhere(isOpen, { id, principal });
}

/** The fields that decide when a schedule starts a run, and whether it may. */
const startedBy = ({ expression, timeZone, model, limits }: Schedule): string =>
  toJson([expression, timeZone, model ?? null, limits ?? null]);

/** Starts or skips occurrences and stores the next due time. */
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
  if (yield* exists(known, { id, start: start.from })) return { kind: "stale" };
  const open = yield* findOpenRun(schedule);
  let reason = refused;
  if (reason === undefined && open !== undefined) {
    if (open.status === "working" && catchUp === "all") return { kind: "waits" };
    reason = open.status === "input_required" ? "previous_waits" : "previous_at_work";
  }
  if (reason === undefined) {
    const created = yield* create(principal, scheduledRequest(schedule), {
      ...fresh,
      schedule: { id, name, dueAt: start.from },
    });
    if (created.kind === "created") return { kind: "started", run: created.run };
    reason = "too_many_open";
  }
  yield* skip(id, start, reason);
  return { kind: "skipped", reason };
}

const scheduledRequest = ({ task, model, limits, goal, changes }: Schedule) => ({
  task,
  ...defined({ model, limits, goal, changes }),
});

/** Lets it continue at `dueAt`. False: it was changed since it was read. */
function* resume(schedule: Schedule, dueAt: number, skipped: Skip | undefined): Steps<boolean> {
  const found = yield* findToChange(schedule);
  if (found?.pausedAt !== schedule.pausedAt || found?.dueAt !== schedule.dueAt) return false;
  if (skipped !== undefined) yield* skip(schedule.id, skipped, skipped.reason);
  const sql = "UPDATE schedules SET due_at = @due_at, paused_at = NULL WHERE id = @id";
  yield* change(sql, { id: schedule.id, due_at: dueAt });
  return true;
}

/** `started` is called with a new run after it is stored. */
export function storedSchedules(
  engine: Engine,
  started: (runId: string) => void,
  withPlaces: (runs: RunSummary[]) => Promise<RunSummary[]>,
) {
  type StartedNow = Created | { kind: "previous_open"; run: Run };

  /** Runs steps that may start a run. */
  const starting = async <T extends Advanced | StartedNow>(schedule: Schedule, steps: () => Steps<T>) => {
    const outcome = await engine.of(schedule.principal).write(steps);
    if (outcome.kind === "started" || outcome.kind === "created") started(outcome.run.id);
    return outcome;
  };
  /** In the order in which they were added. */
  const list = async (principal: Principal): Promise<ScheduleView[]> => {
    const views = await engine.of(principal).read(function* () {
      const sql = "SELECT * FROM schedules WHERE principal = @principal ORDER BY number";
      return yield* withHistory(yield* all<RowOf<Schedule>>(sql, { principal }));
    });
    const placed = await withPlaces(views.flatMap(({ runs }) => runs));
    return views.map((view) => ({ ...view, runs: placed.splice(0, view.runs.length) }));
  };
  return {
    ...ofPrincipal(engine, "read", { find: findSchedule }),
    ...ofPrincipal(engine, "write", {
      /** False: no such schedule. */
      *pause(principal: Principal, id: string, now: number): Steps<boolean> {
        const sql = `UPDATE schedules SET paused_at = coalesce(paused_at, @now) WHERE ${OWN}`;
        return (yield* change(sql, { id, principal, now })) > 0;
      },
      /** Removes it with its skips; its runs stay. False: no such schedule. */
      *remove(principal: Principal, id: string): Steps<boolean> {
        if ((yield* findToChange({ principal, id })) === undefined) return false;
        yield* change("DELETE FROM schedule_skips WHERE schedule_id = @id", { id });
        return (yield* change(`DELETE FROM schedules WHERE ${OWN}`, { id, principal })) > 0;
      },
    }),
    ...ofServer(engine, "read", { due }),
    list,
    listAll: async () => {
      const sql = "SELECT DISTINCT principal FROM schedules ORDER BY principal";
      const principals = await engine.read(() => all<{ principal: Principal }>(sql));
      return (await Promise.all(principals.map(({ principal }) => list(principal)))).flat();
    },
    add: (schedule: Schedule, most: number) =>
      engine.of(schedule.principal).write(() => addSchedule(schedule, most)),
    edit: (...args: Parameters<typeof edit>) => engine.of(args[1].principal).write(() => edit(...args)),
    resume: (...args: Parameters<typeof resume>) => engine.of(args[0].principal).write(() => resume(...args)),
    advance: (...args: Parameters<typeof advance>) => starting(args[0], () => advance(...args)),
    /** Starts a run outside the times of a schedule. */
    runNow: (schedule: Schedule, fresh: NewRun) =>
      starting(schedule, function* (): Steps<StartedNow> {
        const found = (yield* findToChange(schedule)) ?? schedule;
        const open = yield* findOpenRun(found);
        if (open !== undefined) return { kind: "previous_open", run: open };
        const { id, name, principal } = found;
        return yield* create(principal, scheduledRequest(found), { ...fresh, schedule: { id, name } });
      }),
  };
}
