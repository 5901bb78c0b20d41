/** Adds, changes and removes schedules at a person's request. */
import { timeZone as serverZone } from "../core/clock.ts";
import { defined } from "../core/unknown.ts";
import { oneLine, shownName, wellFormed } from "../core/text.ts";
import { isDeepStrictEqual } from "node:util";
import type { ChoiceProblem, RunChoices, StartChoices } from "./choices.ts";
import { choiceProblem, loweredLimits, storableGoal, supervised } from "./choices.ts";
import { lastTimes, nextTime, readRule } from "./cron.ts";
import type { RunContext } from "./context.ts";
import type { NewRun } from "./ports.ts";
import { MAX_NAME, MAX_TASK } from "./run.ts";
import type {
  Schedule,
  ScheduleField,
  ScheduleOutcome,
  ScheduleRequest,
  Skip,
  SkipReason,
} from "./schedule.ts";
import { CATCH_UP } from "./schedule.ts";
import type { Implements, RunGroups } from "./scopes.ts";
import { tooManyOpen } from "./start.ts";

/** Schedules of one principal. */
const MAX_SCHEDULES = 100;
const MAX_CATCH_UP = 100;

export type SchedulesContext = Pick<
  RunContext,
  "schedules" | "environment" | "openRuns" | "choices" | "newId" | "clock"
>;

/** The fields of a schedule that a person chooses. */
type Chosen = Omit<Schedule, "id" | "principal" | "environment" | "createdAt" | "pausedAt" | "dueAt">;

type Method<Name extends keyof RunGroups["schedules"]> = Implements<"schedules", Name, SchedulesContext>;

export const addSchedule: Method<"add"> = async (context, principal, request) => {
  const { schedules, environment, choices, newId, clock } = context;
  const now = clock();
  const { catchUp = "one", catchUpLimit = 10, overlap = false, name = "", timeZone = serverZone() } = request;
  const given = supervised({ ...request, catchUp, catchUpLimit, overlap, name, timeZone });
  const read = readChoices(given, now);
  if (!read.ok) return read;
  const refused = refusedChoices(read.chosen, {}, choices);
  if (refused !== undefined) return refused;
  const schedule: Schedule = {
    ...read.chosen,
    id: newId("sch"),
    principal,
    environment: request.environment ?? environment,
    createdAt: now,
    dueAt: nextTime(read.chosen, now),
  };
  const added = await schedules.add(schedule, MAX_SCHEDULES);
  if (added === "added") return { ok: true, schedule };
  if (added === "name_taken") return nameTaken(schedule.name);
  const message = `You have ${MAX_SCHEDULES} schedules, which is the maximum. Remove one that nobody needs.`;
  return { ok: false, code: "too_many_schedules", message };
};

/** Applies the changes. New times begin now: earlier ones that started no run are skipped. */
export const editSchedule: Method<"edit"> = async ({ schedules, choices, clock }, principal, id, changes) => {
  for (;;) {
    const before = await schedules.find(principal, id);
    if (before === undefined) return toOutcome(before, id);
    const now = clock();
    const read = readChoices(supervised({ ...before, ...defined(changes) }), now);
    if (!read.ok) return read;
    const refused = refusedChoices(read.chosen, before, choices);
    if (refused !== undefined) return refused;
    const isOtherTime =
      read.chosen.expression !== before.expression || read.chosen.timeZone !== before.timeZone;
    const dueAt = isOtherTime ? nextTime(read.chosen, now) : before.dueAt;
    const { model: _model, limits: _limits, goal: _goal, changes: _changes, ...rest } = before;
    const schedule: Schedule = { ...rest, ...read.chosen, dueAt };
    const skipped = isOtherTime ? missedSkip(before, now, "changed") : undefined;
    const edited = await schedules.edit(before, schedule, skipped);
    if (edited === "edited") return { ok: true, schedule };
    if (edited === "name_taken") return nameTaken(schedule.name);
    // Somebody else changed it in between: the change is made to that.
  }
};

function readChoices(
  given: Omit<Chosen, "changes"> & Pick<ScheduleRequest, "changes">,
  now: number,
): { ok: true; chosen: Chosen } | Refused {
  const { expression, timeZone, catchUp, catchUpLimit, overlap } = given;
  const task = wellFormed(given.task).trim();
  if (task === "") return invalid("task", "Give a task: what should an agent do?");
  if (task.length > MAX_TASK) return invalid("task", `The task is longer than ${MAX_TASK} characters.`);
  const read = readRule({ expression, timeZone }, now);
  if (!read.ok) return invalid(read.field, read.message);
  if (!CATCH_UP.includes(catchUp))
    return invalid("catchUp", `Missed runs can be caught up on as ${CATCH_UP.join(", ")}.`);
  if (!Number.isInteger(catchUpLimit) || catchUpLimit < 1 || catchUpLimit > MAX_CATCH_UP)
    return invalid("catchUpLimit", `The limit must be a whole number from 1 to ${MAX_CATCH_UP}.`);
  const name = oneLine(wellFormed(given.name), MAX_NAME).trim() || oneLine(task, 60);
  const chosen = { task, name, ...read.rule, catchUp, catchUpLimit, overlap, ...runChoices(given) };
  return { ok: true, chosen };
}

/** Omits empty choices. */
function runChoices({ model, limits = {}, goal = [], changes }: Pick<ScheduleRequest, keyof RunChoices>) {
  const given = {
    model: model || undefined,
    limits: Object.keys(defined(limits)).length === 0 ? undefined : defined(limits),
    goal: goal.length === 0 ? undefined : storableGoal(goal),
    changes: changes || undefined,
  };
  return defined(given);
}

/** Earlier choices are not checked again: the operator may have changed the allowed ones since. */
function refusedChoices(wanted: RunChoices, before: RunChoices, choices: SchedulesContext["choices"]) {
  const [own, earlier] = [runChoices(wanted), runChoices(before)];
  if (isDeepStrictEqual(own, {}) || isDeepStrictEqual(own, earlier)) return undefined;
  const problem = choiceProblem(own, forSchedules(choices()));
  return problem && invalid(FIELDS[problem.code], problem.message);
}

const FIELDS: Readonly<Record<ChoiceProblem["code"], ScheduleField>> = {
  model_not_allowed: "model",
  limit_not_allowed: "limits",
  invalid_goal: "goal",
  cannot_propose: "changes",
};

/** Returns why a scheduled run cannot start now. Limits lowered by the server since then apply to the run too. */
export function startProblem({ model, limits }: Schedule, offered: StartChoices): ChoiceProblem | undefined {
  if (model === undefined && limits === undefined) return undefined;
  const own = defined({ model, limits: limits && loweredLimits(limits, offered.limits) });
  return choiceProblem(own, forSchedules(offered));
}

/** A schedule has a folder, whether the process that adds it works there or not. */
const forSchedules = ({ models, limits }: StartChoices): StartChoices => ({ models, limits });

type Refused = Exclude<ScheduleOutcome, { ok: true }>;

function nameTaken(name: string): Refused {
  const message = `You have a schedule named "${shownName(name)}". Give this one another name.`;
  return { ok: false, code: "name_taken", field: "name", message };
}

/** Occurrences until now that start no run any more. */
function missedSkip(schedule: Schedule, now: number, reason: SkipReason): Skip | undefined {
  const [last = 0] = lastTimes(schedule, now, 1);
  return last >= schedule.dueAt ? { from: schedule.dueAt, to: last, reason } : undefined;
}

function invalid(field: ScheduleField, message: string): Refused {
  return { ok: false, code: "invalid", field, message };
}

export const pauseSchedule: Method<"pause"> = async ({ schedules, clock }, principal, id) => {
  await schedules.pause(principal, id, clock());
  return toOutcome(await schedules.find(principal, id), id);
};

/** Continues with the next occurrence from now on. Those of the pause are skipped. */
export const resumeSchedule: Method<"resume"> = async ({ schedules, clock }, principal, id) => {
  for (;;) {
    const schedule = await schedules.find(principal, id);
    if (schedule?.pausedAt === undefined) return toOutcome(schedule, id);
    const now = clock();
    // If somebody else changed it in between, their change counts.
    await schedules.resume(schedule, nextTime(schedule, now), missedSkip(schedule, now, "paused"));
  }
};

const toOutcome = (schedule: Schedule | undefined, id: string): ScheduleOutcome =>
  schedule === undefined ? { ok: false, code: "not_found", message: noSchedule(id) } : { ok: true, schedule };

const noSchedule = (id: string): string => `There is no schedule ${shownName(id)}.`;

export const newRun = (
  environment: string,
  { openRuns, choices, newId, clock }: Omit<SchedulesContext, "schedules">,
): NewRun => ({
  runId: newId("run"),
  newThreadId: newId("thr"),
  environment,
  openRuns,
  changes: choices().changes,
  now: clock(),
});

/** Starts a run of a schedule now, which changes nothing of its times. */
export const runScheduleNow: Method<"runNow"> = async (context, principal, id) => {
  const { schedules, choices } = context;
  const schedule = await schedules.find(principal, id);
  if (schedule === undefined) return { ok: false, code: "not_found", message: noSchedule(id) };
  const problem = startProblem(schedule, choices());
  if (problem !== undefined)
    return { ok: false, code: problem.code, message: `No run was started. ${problem.message}` };
  const created = await schedules.runNow(schedule, newRun(schedule.environment, context));
  if (created.kind === "created") return { ok: true, run: created.run };
  if (created.kind === "previous_open") {
    const message = `Run ${created.run.id} of this schedule has not ended, and it does not allow runs to overlap. Wait for it, or cancel it.`;
    return { ok: false, code: "previous_open", message };
  }
  if (created.kind === "too_many_open")
    return { ok: false, code: "too_many_open_runs", message: tooManyOpen(created.limit) };
  throw new Error(`A run of a schedule was not started: ${created.kind}.`);
};
