import { describe, expect, test } from "vitest";
import type { Schedule, ScheduleRequest } from "../../src/runs/schedule.ts";
import { stepOf } from "../../src/runs/scheduler.ts";
import type { RunService, RunServiceOptions } from "../../src/runs/service.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  FAST,
  ME,
  mine,
  approve,
  calling,
  connect,
  databaseFile,
  note,
  noteTool,
  openServer,
  reach,
} from "./support.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.parse("2026-03-02T06:00:00Z");
const MORNING = Date.parse("2026-03-02T07:00:00Z");
const DAILY = { task: "Read the news", expression: "0 7 * * *", timeZone: "UTC", name: "news" };
const timing = { ...FAST, scheduleMs: 5 };
const saying = (text: string) => ({ model: scriptedModel(() => ({ text })) });

/** Servers whose clock the test sets. */
function world(): {
  file: string;
  at: { now: number };
  open: (agent: Parameters<typeof openServer>[1], more?: Partial<RunServiceOptions>) => RunService;
} {
  const file = databaseFile();
  const at = { now: START };
  const clock = () => at.now;
  return {
    file,
    at,
    open: (agent, more = {}) =>
      openServer(file, agent, { clock, timing, startsSchedules: true, ...more }).service,
  };
}

async function add(service: RunService, more: Partial<ScheduleRequest> = {}): Promise<Schedule> {
  const added = await mine(service).schedules.add({ ...DAILY, ...more });
  if (!added.ok) throw new Error(added.message);
  return added.schedule;
}

const onlyOne = async (service: RunService) => {
  const [one] = await mine(service).schedules.list();
  if (one === undefined) throw new Error("no schedule");
  return one;
};
const runCount = async (service: RunService): Promise<number> => (await onlyOne(service)).runs.length;

describe("a server", () => {
  test("starts the run of a schedule at its time, and the run says who started it", async () => {
    const { at, open } = world();
    const service = open(saying("Nothing happened."));
    const { id, dueAt } = await add(service);
    expect(dueAt).toBe(MORNING);
    at.now = MORNING - 1;
    expect(await mine(service).read.list({ limit: 9 })).toEqual([]);
    at.now = MORNING + 5;
    await expect.poll(() => runCount(service)).toBe(1);
    const [started] = (await onlyOne(service)).runs;
    const { run } = await reach(service, started?.id ?? "", "completed");
    expect(run).toMatchObject({
      task: "Read the news",
      answer: "Nothing happened.",
      schedule: { id, name: "news", dueAt: MORNING },
    });
    expect(await onlyOne(service)).toMatchObject({
      dueAt: MORNING + DAY,
      runs: [{ id: run.id, status: "completed" }],
      skips: [],
    });
  });

  test("starts what another process added, and nothing for one that only looks on", async () => {
    const { at, open } = world();
    const looksOn = open(saying(""), { concurrentRuns: 0 });
    const plain = open(saying(""), { startsSchedules: false });
    await add(looksOn);
    at.now = MORNING;
    expect(await runCount(plain)).toBe(0);
    open(saying("done"));
    await expect.poll(() => runCount(looksOn)).toBe(1);
    await add(looksOn, { name: "later", expression: "0 8 * * *" });
    at.now = MORNING + HOUR;
    await expect.poll(async () => (await mine(looksOn).schedules.list())[1]?.runs.length).toBe(1);
  });

  test("skips an occurrence while the earlier run waits for a person, and starts the next one after", async () => {
    const { at, open } = world();
    const notes: string[] = [];
    const agent = { model: calling(note("a")), tools: [noteTool(notes)], interruptOn: { note: true } };
    const service = open(agent);
    await add(service);
    at.now = MORNING;
    await expect.poll(() => runCount(service)).toBe(1);
    const first = (await onlyOne(service)).runs[0]?.id ?? "";
    await reach(service, first, "input_required");
    at.now += DAY;
    await expect.poll(async () => (await onlyOne(service)).skips.length).toBe(1);
    at.now += DAY;
    await expect.poll(async () => (await onlyOne(service)).dueAt).toBe(MORNING + 3 * DAY);
    expect((await onlyOne(service)).skips).toEqual([
      { from: MORNING + DAY, to: MORNING + 2 * DAY, reason: "previous_waits" },
    ]);
    expect(await mine(service).schedules.runNow((await onlyOne(service)).id)).toMatchObject({
      ok: false,
      code: "previous_open",
    });
    await approve(service, first, "a");
    await reach(service, first, "completed");
    at.now += DAY;
    await expect.poll(() => runCount(service)).toBe(2);
  });

  test("shows a failed run as failed, and starts the next one all the same", async () => {
    const { at, open } = world();
    const service = open({
      model: scriptedModel(() => {
        throw new Error("no such model");
      }),
    });
    await add(service);
    for (const count of [1, 2]) {
      at.now = MORNING + (count - 1) * DAY;
      await expect.poll(() => runCount(service)).toBe(count);
      await reach(service, (await onlyOne(service)).runs[0]?.id ?? "", "failed");
    }
    expect((await onlyOne(service)).runs.map(({ status }) => status)).toEqual(["failed", "failed"]);
  });

  test("that cannot start runs leaves the occurrence for later, or for another server", async () => {
    const { at, open } = world();
    let refusal: { code: "workspace_missing"; message: string } | undefined = {
      code: "workspace_missing",
      message: "gone",
    };
    const service = open(saying("done"), { preflight: async () => refusal });
    await add(service);
    at.now = MORNING + 1;
    await expect.poll(async () => (await onlyOne(service)).dueAt).toBe(MORNING);
    refusal = undefined;
    await expect.poll(() => runCount(service)).toBe(1);
    expect((await onlyOne(service)).runs[0]?.schedule?.dueAt).toBe(MORNING);
  });

  test("starts the missed runs one after the other where all count, the newest ones up to the limit", async () => {
    const { at, open } = world();
    const looksOn = open(saying(""), { concurrentRuns: 0 });
    await add(looksOn, { catchUp: "all", catchUpLimit: 3 });
    at.now = MORNING + 9 * DAY + HOUR;
    const read: string[] = [];
    const model = scriptedModel(({ messages }) => {
      read.push(messages.at(-1)?.text ?? "");
      return { text: "done" };
    });
    const service = open({ model });
    await expect.poll(() => runCount(service), { timeout: 10_000 }).toBe(3);
    const { runs, skips, dueAt } = await onlyOne(service);
    expect(runs.map(({ schedule }) => schedule?.dueAt)).toEqual(
      [9, 8, 7].map((days) => MORNING + days * DAY),
    );
    expect(skips).toEqual([{ from: MORNING, to: MORNING + 6 * DAY, reason: "too_old" }]);
    expect(dueAt).toBe(MORNING + 10 * DAY);
    await reach(service, runs[0]?.id ?? "", "completed");
    const late = ["09", "10", "11"].map((day) => `2026-03-${day} 07:00 UTC and starts late.]`);
    expect(read).toEqual(late.map((text) => expect.stringContaining(`was due at ${text}`)));
  });

  test("asks storage nothing while there is no schedule", async () => {
    const { file, open } = world();
    let asked = 0;
    const runs = sqliteRuns(connect(file));
    const { schedules } = runs;
    const due = schedules.due.bind(schedules);
    Object.assign(schedules, { due: (...args: Parameters<typeof due>) => ((asked += 1), due(...args)) });
    const service = open(saying("done"), { runs, timing: FAST });
    await expect.poll(() => asked).toBe(1);
    const started = await mine(service).control.start({ task: "other work" });
    if (started.ok) await reach(service, started.run.id, "completed");
    expect(asked).toBe(1);
  });

  test("that takes up no more work leaves due runs to others", async () => {
    const { at, open } = world();
    const service = open(saying("done"));
    await add(service);
    await service.drain(0);
    at.now = MORNING;
    const other = open(saying("done"));
    await expect.poll(() => runCount(other)).toBe(1);
    expect((await onlyOne(service)).runs[0]?.schedule?.dueAt).toBe(MORNING);
  });
});

describe("a person", () => {
  test("pauses, resumes and removes a schedule; the occurrences of a pause are skipped as such", async () => {
    const { at, open } = world();
    const service = open(saying("done"));
    const { id } = await add(service);
    expect(await mine(service).schedules.pause(id)).toMatchObject({
      ok: true,
      schedule: { pausedAt: START },
    });
    at.now = MORNING + 3 * DAY;
    expect(await mine(service).schedules.resume(id)).toMatchObject({ ok: true, schedule: { id } });
    expect(await onlyOne(service)).toMatchObject({
      dueAt: MORNING + 4 * DAY,
      runs: [],
      skips: [{ from: MORNING, to: MORNING + 3 * DAY, reason: "paused" }],
    });
    expect(await service.as({ principal: "you" }).schedules.remove(id)).toBe(false);
    expect(await mine(service).schedules.remove(id)).toBe(true);
    expect(await mine(service).schedules.list()).toEqual([]);
    for (const gone of [mine(service).schedules.pause(id), mine(service).schedules.resume(id)]) {
      expect(await gone).toMatchObject({ ok: false, code: "not_found" });
    }
  });

  test("changes a schedule; other times begin at once, and those that were missed before are skipped as such", async () => {
    const { at, open } = world();
    const service = open(saying("done"), { concurrentRuns: 0 });
    const { id } = await add(service);
    const words = { task: "Read the papers", name: "papers", catchUp: "all" as const, overlap: true };
    expect(await mine(service).schedules.edit(id, words)).toMatchObject({ ok: true });
    expect(await onlyOne(service)).toMatchObject({ ...words, expression: "0 7 * * *", dueAt: MORNING });
    at.now = MORNING + DAY + 1;
    const edited = await mine(service).schedules.edit(id, { expression: "30 9 * * *" });
    expect(edited).toMatchObject({ ok: true, schedule: { dueAt: MORNING + DAY + 2.5 * HOUR } });
    expect(await onlyOne(service)).toMatchObject({
      ...words,
      skips: [{ from: MORNING, to: MORNING + DAY, reason: "changed" }],
    });
    await add(service);
    for (const [changes, field] of [
      [{ name: "news" }, "name"],
      [{ task: " " }, "task"],
      [{ expression: "never" }, "expression"],
    ] as const) {
      expect(await mine(service).schedules.edit(id, changes)).toMatchObject({ ok: false, field });
    }
    expect(await service.as({ principal: "you" }).schedules.edit(id, words)).toMatchObject({
      ok: false,
      code: "not_found",
    });
    await mine(service).schedules.pause(id);
    await mine(service).schedules.edit(id, { name: "" });
    expect((await mine(service).schedules.list())[0]).toMatchObject({
      name: "Read the papers",
      pausedAt: at.now,
    });
  });

  test("who edits at the same time as another one loses neither change", async () => {
    const { open } = world();
    const services = [open(saying("")), open(saying(""))];
    const { id } = await add(services[0]!);
    await Promise.all([
      mine(services[0]!).schedules.edit(id, { task: "Read all" }),
      mine(services[1]!).schedules.edit(id, { overlap: true }),
      mine(services[0]!).schedules.edit(id, { timeZone: "Asia/Tokyo" }),
    ]);
    expect(await onlyOne(services[1]!)).toMatchObject({
      task: "Read all",
      overlap: true,
      timeZone: "Asia/Tokyo",
    });
  });

  test("starts a run now, which changes nothing of the times", async () => {
    const { open } = world();
    const service = open(saying("done"));
    const { id } = await add(service);
    const now = await mine(service).schedules.runNow(id);
    if (!now.ok) throw new Error(now.message);
    expect((await reach(service, now.run.id, "completed")).run.schedule).toEqual({ id, name: "news" });
    expect((await onlyOne(service)).dueAt).toBe(MORNING);
    expect(await service.as({ principal: "you" }).schedules.runNow(id)).toMatchObject({
      ok: false,
      code: "not_found",
    });
  });

  test.each<[Partial<ScheduleRequest>, object]>([
    [{ task: " \n" }, { field: "task" }],
    [{ task: "x".repeat(100_001) }, { field: "task" }],
    [{ expression: "every day" }, { field: "expression" }],
    [{ timeZone: "Moon" }, { field: "timeZone" }],
    [{ catchUp: "some" as "one" }, { field: "catchUp" }],
    [{ catchUpLimit: 0 }, { field: "catchUpLimit" }],
    [{ catchUpLimit: 101 }, { field: "catchUpLimit" }],
    [{ catchUpLimit: Number.NaN }, { field: "catchUpLimit" }],
    [{ name: "news" }, { field: "name", code: "name_taken" }],
  ])("is told what is wrong with %o", async (wrong, told) => {
    const { open } = world();
    const service = open(saying(""));
    await add(service);
    const refused = await mine(service).schedules.add({ ...DAILY, name: "other", ...wrong });
    expect(refused).toMatchObject({ ok: false, code: "invalid", ...told });
    expect(await mine(service).schedules.list()).toHaveLength(1);
  });

  test("need not name a schedule, and has no more than a hundred", async () => {
    const { open } = world();
    const service = open(saying(""));
    const { name } = await add(service, { name: "", task: `Read\n${"all ".repeat(50)}` });
    expect(name).toMatch(/^Read all .{1,60}$/);
    for (let at = 1; at < 100; at += 1) await add(service, { name: `n${at}` });
    const more = await mine(service).schedules.add({ ...DAILY, name: "one more" });
    expect(more).toMatchObject({ ok: false, code: "too_many_schedules" });
  });
});

describe("the next step of a schedule", () => {
  const daily: Schedule = {
    id: "s",
    principal: ME,
    environment: "e",
    overlap: false,
    createdAt: START,
    catchUpLimit: 3,
    ...DAILY,
    catchUp: "one",
    dueAt: MORNING,
  };
  const one = (time: number) => ({ from: time, to: time, before: time - DAY });
  const days = (count: number) => MORNING + count * DAY;

  test("is none before it is due, also when the clock was set back", () => {
    expect(stepOf(daily, MORNING - 1)).toBeUndefined();
    expect(stepOf({ ...daily, dueAt: days(40) }, MORNING)).toBeUndefined();
  });

  test.each(["skip", "one", "all"] as const)("starts in time with %s", (catchUp) => {
    const step = { start: one(MORNING), dueAt: days(1) };
    expect(stepOf({ ...daily, catchUp }, MORNING)).toEqual(step);
    expect(stepOf({ ...daily, catchUp }, MORNING + 60_000)).toEqual(step);
  });

  test("after the machine slept for days follows the way of catching up", () => {
    const now = days(5) + HOUR;
    const older = (last: number) => ({ from: MORNING, to: days(last), before: days(-1) });
    expect(stepOf({ ...daily, catchUp: "skip" }, now)).toEqual({ skipped: older(5), dueAt: days(6) });
    expect(stepOf(daily, now)).toEqual({ skipped: older(4), start: one(days(5)), dueAt: days(6) });
    expect(stepOf({ ...daily, catchUp: "all" }, now)).toEqual({
      skipped: older(2),
      start: one(days(3)),
      dueAt: days(4),
    });
    expect(stepOf({ ...daily, catchUp: "all", dueAt: days(4) }, now)).toEqual({
      start: one(days(4)),
      dueAt: days(5),
    });
    expect(stepOf({ ...daily, catchUp: "skip" }, days(5) + 1)).toEqual({
      skipped: older(4),
      start: one(days(5)),
      dueAt: days(6),
    });
  });

  test("after the clock was set ahead by years is one step, however often it would have been due", () => {
    const minutely = { ...daily, expression: "* * * * *" };
    const step = stepOf(minutely, days(2000));
    expect(step).toMatchObject({
      skipped: { from: MORNING, to: days(2000) - 60_000 },
      start: { from: days(2000) },
      dueAt: days(2000) + 60_000,
    });
  });

  test("counts a stored time that its time zone no longer has", () => {
    const moved = { ...daily, dueAt: MORNING + 1800_000 };
    expect(stepOf(moved, MORNING + HOUR)).toMatchObject({
      start: { from: MORNING + 1800_000 },
      dueAt: days(1),
    });
  });
});
