import { expect, test } from "vitest";
import type { StartChoices } from "../../src/runs/choices.ts";
import type { Schedule, ScheduleRequest } from "../../src/runs/schedule.ts";
import type { RunService } from "../../src/runs/service.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { FAST, mine, databaseFile, openServer, reach } from "./support.ts";

const DAY = 24 * 3_600_000;
const MORNING = Date.parse("2026-03-02T07:00:00Z");
const DAILY = { task: "Read the news", expression: "0 7 * * *", timeZone: "UTC", name: "news" };
const OFFERED: StartChoices = {
  models: [
    { spec: "a:main", price: { input: 3, output: 15 } },
    { spec: "b:small", price: { input: 1, output: 5 } },
    { spec: "c:keyless", problem: "Model 'c:keyless' needs C_API_KEY." },
    { spec: "d:unpriced" },
  ],
  limits: { tokens: 2_000_000 },
};

/** A server whose clock and allowed choices the test sets. */
function world() {
  const at = { now: MORNING - 1, offered: OFFERED };
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "done" })) },
    {
      clock: () => at.now,
      choices: () => at.offered,
      timing: { ...FAST, scheduleMs: 5 },
      startsSchedules: true,
    },
  );
  return { at, service };
}

async function add(service: RunService, more: Partial<ScheduleRequest>): Promise<Schedule> {
  const added = await mine(service).schedules.add({ ...DAILY, ...more });
  if (!added.ok) throw new Error(added.message);
  return added.schedule;
}

const first = async (service: RunService) => (await mine(service).schedules.list())[0];

test("model, limits and goal of a schedule are those of its runs, also of one that a person starts", async () => {
  const { at, service } = world();
  const chosen = { model: "b:small", limits: { costUsd: 1, workTime: 90 }, goal: ["There is a report"] };
  const { id } = await add(service, { ...chosen, goal: [" There is a report "] });
  expect(await first(service)).toMatchObject(chosen);
  at.now = MORNING;
  await expect.poll(async () => (await first(service))?.runs.length).toBe(1);
  const due = (await first(service))?.runs[0]?.id ?? "";
  expect((await reach(service, due, "completed")).run).toMatchObject(chosen);
  const now = await mine(service).schedules.runNow(id);
  expect(now).toMatchObject({ ok: true, run: chosen });
});

test.each([
  [
    { model: "e:other" },
    "model",
    /^This server does not allow the model 'e:other'\. Choose a:main or b:small/,
  ],
  [{ model: "c:keyless" }, "model", /needs C_API_KEY/],
  [{ limits: { tokens: 3_000_000 } }, "limits", /tokens is 3000000, and this server allows at most 2000000/],
  [{ limits: { toolCalls: 0.5 } }, "limits", /The limit toolCalls is not valid/],
  [{ model: "d:unpriced", limits: { costUsd: 1 } }, "limits", /The price of d:unpriced is not known/],
  [{ goal: ["a", "a"] }, "goal", /Criterion 2 of the goal is given twice/],
  [{ goal: [" "] }, "goal", /Criterion 1 of the goal is empty/],
])("%j is refused when it is added and when it is changed, with what to do", async (choices, field, told) => {
  const { service } = world();
  const refused = { ok: false, code: "invalid", field, message: expect.stringMatching(told) };
  expect(await mine(service).schedules.add({ ...DAILY, ...choices })).toMatchObject(refused);
  const { id } = await add(service, { goal: ["There is a report"] });
  expect(await mine(service).schedules.edit(id, choices)).toMatchObject(refused);
  expect(await first(service)).toMatchObject({ goal: ["There is a report"] });
});

test("a schedule proposes changes where its server does not, and where nothing works here", async () => {
  const { at, service } = world();
  at.offered = { ...OFFERED, noProposals: "There is no workspace." };
  const { id } = await add(service, { changes: "propose" });
  await mine(service).schedules.edit(id, { name: "other" });
  expect(await first(service)).toMatchObject({ name: "other", changes: "propose" });
  at.offered = OFFERED;
  expect(await mine(service).schedules.runNow(id)).toMatchObject({ ok: true, run: { changes: "propose" } });
});

test("an edit changes the choices that it gives, and empty ones take them back", async () => {
  const { at, service } = world();
  const { id } = await add(service, { model: "b:small", limits: { tokens: 9 }, goal: ["a"] });
  await mine(service).schedules.edit(id, { limits: { tokens: 5, toolCalls: 2 } });
  expect(await first(service)).toMatchObject({
    model: "b:small",
    limits: { tokens: 5, toolCalls: 2 },
    goal: ["a"],
  });
  // What was chosen before is kept when the rest is changed, even if it is not allowed any more.
  at.offered = { models: OFFERED.models.slice(0, 1), limits: { tokens: 1 } };
  expect(await mine(service).schedules.edit(id, { name: "other" })).toMatchObject({ ok: true });
  expect(await mine(service).schedules.edit(id, { goal: ["b"] })).toMatchObject({
    ok: false,
    field: "model",
  });
  await mine(service).schedules.edit(id, { model: "", limits: {}, goal: [] });
  const { model, limits, goal, name } = (await first(service)) ?? {};
  expect({ model, limits, goal, name }).toEqual({ name: "other" });
});

test("a time whose model is not allowed any more is skipped and says so; a lowered limit counts", async () => {
  const { at, service } = world();
  const { id } = await add(service, { model: "b:small", limits: { tokens: 9000 } });
  at.offered = { models: OFFERED.models.slice(0, 1), limits: {} };
  at.now = MORNING;
  await expect.poll(async () => (await first(service))?.skips.length).toBe(1);
  expect(await first(service)).toMatchObject({
    dueAt: MORNING + DAY,
    runs: [],
    skips: [{ from: MORNING, to: MORNING, reason: "model_not_allowed" }],
  });
  expect(await mine(service).schedules.runNow(id)).toMatchObject({
    ok: false,
    code: "model_not_allowed",
    message: expect.stringMatching(/^No run was started\. This server does not allow the model 'b:small'/),
  });
  at.offered = { ...OFFERED, limits: { tokens: 100 } };
  at.now = MORNING + DAY;
  await expect.poll(async () => (await first(service))?.runs.length).toBe(1);
});

test("a time whose cost limit cannot be kept is skipped", async () => {
  const { at, service } = world();
  await add(service, { limits: { costUsd: 1 } });
  at.offered = { models: [{ spec: "d:unpriced" }], limits: {} };
  at.now = MORNING;
  await expect.poll(async () => (await first(service))?.skips).toMatchObject([{ reason: "price_unknown" }]);
});

test("a time whose model only lacks its key here stays due", async () => {
  const { at, service } = world();
  await add(service, { model: "b:small" });
  await add(service, { name: "plain", expression: "1 7 * * *" });
  at.offered = { ...OFFERED, models: [{ spec: "a:main" }, { spec: "b:small", problem: "needs B_API_KEY" }] };
  at.now = MORNING + 60_000;
  await expect.poll(async () => (await mine(service).schedules.list())[1]?.runs.length).toBe(1);
  expect(await first(service)).toMatchObject({ dueAt: MORNING, runs: [], skips: [] });
});
