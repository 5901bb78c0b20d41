/** Starts the runs of schedules when they are due. */
import { monotonicClock } from "../core/clock.ts";
import { coalesced } from "../core/concurrency.ts";
import { defined } from "../core/unknown.ts";
import type { RunContext } from "./context.ts";
import { lastTimes, nextTime } from "./cron.ts";
import type { RunRepository } from "./sql/repository.ts";
import type { Occurrences, Schedule, Step } from "./schedule.ts";
import { type SchedulesContext, newRun, startProblem } from "./schedules.ts";
import type { RunServiceOptions } from "./service.ts";
import { warnUnlessLocked } from "./worker.ts";

/** The next change of a schedule; `undefined`: it is not due. */
export function stepOf(schedule: Schedule, now: number): Step | undefined {
  const { dueAt, catchUp, catchUpLimit } = schedule;
  if (dueAt > now) return undefined;
  const wanted = catchUp === "all" ? catchUpLimit : 1;
  // The due time counts even if the rules of its time zone have changed since it was stored.
  const found = [...lastTimes(schedule, now, wanted).filter((time) => time > dueAt), dueAt];
  const start = found.slice(0, wanted).at(-1) ?? dueAt;
  const last = (time: number): number | undefined => lastTimes(schedule, time - 1, 1)[0];
  const range = (from: number, to: number): Occurrences => ({ from, to, before: last(from) });
  // An occurrence that starts within a minute was not missed.
  if (catchUp === "skip" && now - start > 60_000)
    return { skipped: range(dueAt, start), dueAt: nextTime(schedule, now) };
  const older = start > dueAt ? range(dueAt, Math.max(dueAt, last(start) ?? dueAt)) : undefined;
  return { ...defined({ skipped: older }), start: range(start, start), dueAt: nextTime(schedule, start) };
}

type SchedulerContext = SchedulesContext & Pick<RunContext, "preflight" | "log">;

interface SchedulerOptions extends Omit<SchedulerContext, "schedules"> {
  schedules: Pick<RunRepository["schedules"], "due" | "advance">;
  mayStart: () => boolean;
  /** Longest time between two looks at the clock, in ms: it may be set, and the machine may sleep. */
  checkMs: number;
}

/** Begins to start the runs of schedules, if the service is to and works on runs. */
export function openScheduler(
  { startsSchedules = false, concurrentRuns, mayClaim = () => true, timing }: RunServiceOptions,
  context: SchedulerContext,
): Scheduler | undefined {
  if (!startsSchedules || concurrentRuns === 0) return undefined;
  const checkMs = timing?.scheduleMs ?? 60_000;
  const scheduler = new Scheduler({ ...context, mayStart: mayClaim, checkMs });
  void scheduler.look();
  return scheduler;
}

/**
 * Starts the runs of schedules when they are due. Several servers may do so: each occurrence is started or skipped in
 * one transaction, which moves the due time. Without a schedule nothing happens. Does not keep the process alive.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  /** When it last looked, by the monotonic clock. */
  #lookedAt = -Infinity;
  #review: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** Starts due runs, then waits for the next due time. Resolves when all have started. */
  look(): Promise<void> {
    return (this.#looking = this.#lookAgain());
  }

  readonly #lookAgain = coalesced(async () => {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    clearTimeout(this.#review);
    this.#review = undefined;
    this.#lookedAt = monotonicClock();
    const { next, isBlocked } = await this.#startDue().catch((error: unknown) => {
      warnUnlessLocked(this.#options.log, "schedule.look_failed", { error });
      return { next: undefined, isBlocked: true };
    });
    this.#wait(next, isBlocked);
  });

  /** After another process wrote: looks soon, but not each time. */
  review(): void {
    if (this.#isClosed || this.#review !== undefined) return;
    const pause = Math.min(10_000, this.#options.checkMs);
    const wait = Math.max(0, this.#lookedAt + pause - monotonicClock());
    this.#review = setTimeout(() => void this.look(), wait).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#review);
    await this.#looking;
  }

  #wait(next: number | undefined, isBlocked: boolean): void {
    if (this.#isClosed || (next === undefined && !isBlocked)) return;
    const { clock, checkMs } = this.#options;
    const wait = Math.min(Math.max((next ?? Infinity) - clock(), 0), checkMs, isBlocked ? 30_000 : Infinity);
    const isDue = (): boolean => isBlocked || (next !== undefined && clock() >= next);
    this.#timer = setTimeout(() => (isDue() ? void this.look() : this.#wait(next, isBlocked)), wait).unref();
  }

  /** Returns the next due time, if there is a schedule. `isBlocked`: a due one could not continue. */
  async #startDue(): Promise<{ next: number | undefined; isBlocked: boolean }> {
    const { schedules, environment, clock, log, mayStart } = this.#options;
    if (!mayStart()) return { next: undefined, isBlocked: true };
    const { due, next } = await schedules.due(environment, clock());
    const times: (number | undefined)[] = [];
    for (const schedule of due) {
      if (this.#isClosed) break;
      const failed = (error: unknown): undefined => {
        warnUnlessLocked(log, "schedule.failed", { what: schedule.id, error });
      };
      times.push(await this.#startRuns(schedule).catch(failed));
    }
    const known = [next, ...times].filter((time) => time !== undefined);
    const first = known.length === 0 ? undefined : Math.min(...known);
    return { next: first, isBlocked: times.includes(undefined) };
  }

  /** Starts the due runs of a schedule, and returns its next due time, or undefined if it could not continue. */
  async #startRuns(due: Schedule): Promise<number | undefined> {
    const { schedules, environment, choices, preflight, clock, log } = this.#options;
    let schedule = due;
    for (let step = stepOf(schedule, clock()); step !== undefined; step = stepOf(schedule, clock())) {
      const refusal = step.start && (await preflight(schedule.principal));
      const problem = step.start && startProblem(schedule, choices());
      const reason = refusal?.code ?? (problem?.skip === undefined ? problem?.code : undefined);
      if (reason !== undefined) {
        log.warn("schedule.not_started", { scheduleId: schedule.id, reason });
        return undefined;
      }
      const fresh = newRun(environment, this.#options);
      const next = { ...step, ...defined({ refused: problem?.skip }) };
      const outcome = await schedules.advance(schedule, next, fresh);
      if (outcome.kind === "waits" || outcome.kind === "stale") return undefined;
      const facts = { scheduleId: schedule.id, dueAt: step.start?.from ?? step.skipped?.to };
      if (outcome.kind === "started")
        log.info("schedule.run_started", {
          ...facts,
          runId: outcome.run.id,
          principal: outcome.run.principal,
        });
      else log.info("schedule.skipped", { ...facts, reason: outcome.reason });
      schedule = { ...schedule, dueAt: step.dueAt };
    }
    return schedule.dueAt;
  }
}
