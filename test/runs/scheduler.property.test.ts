import fc from "fast-check";
import { expect, test } from "vitest";
import { silentLogger as log } from "../../src/core/logger.ts";
import { nextTime } from "../../src/runs/cron.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import { isFinal } from "../../src/runs/run.ts";
import { CATCH_UP, type Schedule } from "../../src/runs/schedule.ts";
import { Scheduler } from "../../src/runs/scheduler.ts";
import { pauseSchedule, resumeSchedule } from "../../src/runs/schedules.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { attempts } from "../support/effort.ts";
import { ME, connect, databaseFile } from "./support.ts";

const MINUTE = 60_000;
const START = Date.parse("2026-10-24T20:10:30Z");
const never = new Promise<never>(() => undefined);

/** The end of a process: before it starts a run, or after that is stored and before it knows. */
type Death = "lives" | "before" | "after";

/** A server that looks once. A killed one never comes to an end. */
async function look(runs: RunRepository, now: () => number, death: Death, openRuns: number): Promise<void> {
  let die = (): void => undefined;
  const died = new Promise<void>((resolve) => (die = resolve));
  let number = 0;
  const end = (): Promise<never> => {
    die();
    return never;
  };
  const schedules: Pick<RunRepository["schedules"], "due" | "advance"> = {
    due: (...args) => runs.schedules.due(...args),
    advance: async (...args) => {
      await Promise.resolve();
      if (death === "before") return end();
      const outcome = await runs.schedules.advance(...args);
      return death === "after" ? end() : outcome;
    },
  };
  const scheduler = new Scheduler({
    schedules,
    environment: "e",
    openRuns,
    choices: () => ({ models: [], limits: {} }),
    preflight: async () => undefined,
    mayStart: () => true,
    clock: now,
    newId: (prefix) => `${prefix}_${now()}_${(number += 1)}_${Math.random()}`,
    log,
    checkMs: MINUTE,
  });
  await Promise.race([scheduler.look(), died]);
  // It waits for the next due time no longer.
  void scheduler.close();
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), minutes: fc.integer({ min: 0, max: 90 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      minutes: fc.integer({ min: -3000, max: 6000 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("look" as const),
      deaths: fc.array(fc.constantFrom<Death>("lives", "lives", "before", "after"), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("end" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom<"pause" | "resume">("pause", "resume") }) },
);

const rules = fc.record({
  expression: fc.constantFrom("* * * * *", "*/20 * * * *", "30 2 * * *", "0 1,2,3 * * *", "15 * * * 6,0"),
  timeZone: fc.constantFrom("Europe/Berlin", "UTC"),
  catchUp: fc.constantFrom(...CATCH_UP),
  catchUpLimit: fc.integer({ min: 1, max: 5 }),
  overlap: fc.boolean(),
});

/** All occurrences up to a moment, beginning with the first. */
function* occurrences(schedule: Schedule, first: number, until: number): Generator<number> {
  for (let time = first; time <= until; time = nextTime(schedule, time)) yield time;
}

test("each occurrence has one run or one logged skip, whatever servers do and clocks show", async () => {
  const property = fc.asyncProperty(
    rules,
    fc.array(step, { maxLength: 25 }),
    fc.constantFrom(2, 50),
    async (rule, steps, openRuns) => {
      let now = START;
      let latest = START;
      const clock = () => now;
      const file = databaseFile();
      const [one, other] = [sqliteRuns(connect(file)), sqliteRuns(connect(file))] as const;
      const dueAt = nextTime(rule, START);
      const names = { name: "n", task: "work", environment: "e", principal: ME };
      const schedule: Schedule = { id: "sch_1", ...names, ...rule, createdAt: START, dueAt };
      await one.schedules.add(schedule, 1);
      const endRuns = async (): Promise<void> => {
        for (const { id, status } of await one.read.list(ME, { limit: 1000 })) {
          if (!isFinal(status)) await one.cancel(ME, id, "end", now);
        }
      };
      const choices = () => ({ models: [], limits: {} });
      const context = {
        schedules: one.schedules,
        environment: "e",
        openRuns,
        choices,
        newId: () => "x",
        clock,
      };
      for (const next of steps) {
        if (next.kind === "wait") now += next.minutes * MINUTE;
        else if (next.kind === "end") await endRuns();
        else if (next.kind === "pause") await pauseSchedule(context, ME, "sch_1");
        else if (next.kind === "resume") {
          // Resuming after the clock was set back makes it due again, which counts as a wish of a person.
          if (now >= latest) await resumeSchedule(context, ME, "sch_1");
        } else if (next.kind === "look") {
          latest = Math.max(latest, now);
          const servers = next.deaths.map((death, index) =>
            look(index % 2 === 0 ? one : other, clock, death, openRuns),
          );
          await Promise.all(servers);
        }
      }
      // At last a server stays, and runs end.
      now = Math.max(now, latest);
      await resumeSchedule(context, ME, "sch_1");
      for (let more = 0; more < 8; more += 1) {
        await endRuns();
        await look(one, clock, "lives", openRuns);
      }
      const settled = await one.schedules.find(ME, "sch_1");
      expect(settled?.dueAt).toBe(nextTime(schedule, now));
      const skips = skipsOf(file);
      const started = (await one.read.list(ME, { limit: 1000 })).map((run) => run.schedule?.dueAt ?? 0);
      const accounts = [...occurrences(schedule, dueAt, now)].map((time) => ({
        time,
        runs: started.filter((at) => at === time).length,
        skips: skips.filter(({ from, to }) => from <= time && time <= to).length,
      }));
      expect(accounts.filter(({ runs, skips }) => runs + skips !== 1)).toEqual([]);
      expect(started.length).toBe(accounts.filter(({ runs }) => runs === 1).length);
    },
  );
  await fc.assert(property, attempts(80));
});

/** All of them, and not only the newest. */
function skipsOf(file: string): { from: number; to: number }[] {
  const database = connect(file);
  return database
    .prepare<[], { from: number; to: number }>(
      'SELECT due_at AS "from", last_due_at AS "to" FROM schedule_skips',
    )
    .all();
}
