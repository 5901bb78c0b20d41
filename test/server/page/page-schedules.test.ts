import { describe, expect, test } from "vitest";
import type { StartChoices } from "../../../src/runs/choices.ts";
import { ME, mine, databaseFile, openServer, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { browser, problemsOf } from "./chromium.ts";
import { openPages, visit } from "./support.ts";

const NOW = Date.parse("2026-01-05T06:00:00Z");
const DAILY = { task: "Read the <b>news</b>", expression: "0 7 * * 1-5", timeZone: "UTC", name: "news" };

const OFFERED: StartChoices = {
  models: [
    { spec: "a:main", price: { input: 3, output: 15 } },
    { spec: "b:small", price: { input: 1, output: 5 } },
  ],
  limits: { tokens: 2_000_000 },
  changes: "direct",
};

async function opened(offered = OFFERED) {
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "done" })) },
    { clock: () => NOW, concurrentRuns: 0, model: "a:main", choices: () => offered },
  );
  const pages = await openPages(service, () => NOW, { settings: { folder: "tide-alarms" } });
  return { service, pages, link: pages.link({ principal: ME, purpose: "decide" }) };
}

const FIELDS = { ...DAILY, catchUp: "all", catchUpLimit: "5", overlap: "on" };

test("a schedule is added, paused, resumed, run and removed by the forms of its screen", async () => {
  const { service, link } = await opened();
  const { get, post } = await visit(link);
  expect((await get("/schedules")).body).toContain("No schedules yet");
  const added = await post("/schedules/add", FIELDS);
  expect([added.status, added.headers["location"]]).toEqual([303, "/schedules"]);
  const [schedule] = await mine(service).schedules.list();
  expect(schedule).toMatchObject({ ...DAILY, catchUp: "all", catchUpLimit: 5, overlap: true });
  const { body } = await get("/schedules");
  expect(body).toContain("At 07:00, Monday to Friday");
  expect(body).toContain("Read the &#60;b&#62;news&#60;/b&#62;");
  const id = { schedule: schedule?.id ?? "" };
  expect((await post("/schedules/pause", id)).status).toBe(303);
  expect((await get("/schedules")).body).toContain("1 schedule, 1 paused");
  expect((await post("/schedules/resume", id)).status).toBe(303);
  expect((await mine(service).schedules.list())[0]?.pausedAt).toBeUndefined();
  const now = await post("/schedules/run", id);
  const [run] = await mine(service).read.list({ limit: 1 });
  expect(now.headers["location"]).toBe(`/runs/${run?.id}`);
  expect((await get(`/runs/${run?.id}/work`)).body).toMatch(/Started by<\/dt>\s*<dd><a[^>]*>schedule news</);
  expect((await get("/")).body).toContain("by schedule news");
  expect((await post("/schedules/remove", id)).status).toBe(303);
  expect(await mine(service).schedules.list()).toEqual([]);
  expect((await get("/")).body).toContain("by schedule news");
});

test("a schedule is changed by the form that has its fields", async () => {
  const { service, link } = await opened();
  const { get, post } = await visit(link);
  await mine(service).schedules.add({ ...DAILY, overlap: true });
  await mine(service).schedules.add({ ...DAILY, name: "other", timeZone: "Asia/Tokyo" });
  const [{ id } = { id: "" }] = await mine(service).schedules.list();
  expect((await get("/schedules")).body).toContain(`/schedules?edit=${id}#new`);
  const { body } = await get(`/schedules?edit=${id}`);
  expect(body).toMatch(/Change news\s*<[\s\S]*name="expression"[^>]*value="0 7 \* \* 1-5"/);
  expect(body).toMatch(/name="overlap"\s+checked/);
  expect(body).not.toContain("data-own-zone");
  // The script asks for the meaning of what is typed.
  const typed = await get(`/schedules?edit=${id}&expression=0+9+*+*+*&timeZone=UTC`);
  expect(typed.body).toContain("At 09:00 every day");
  expect(typed.body).not.toMatch(/name="overlap"\s+checked/);
  const wrong = await post("/schedules/edit", { ...FIELDS, edit: id, name: "other" });
  expect([wrong.status, wrong.body]).toEqual([422, expect.stringContaining("You have a schedule named")]);
  expect(wrong.body).toContain("Save changes");
  const { overlap: _unchecked, ...rest } = FIELDS;
  const saved = await post("/schedules/edit", { ...rest, edit: id, task: "Read all", expression: "@daily" });
  expect([saved.status, saved.headers["location"]]).toEqual([303, `/schedules#${id}`]);
  const wanted = { id, task: "Read all", expression: "@daily", overlap: false, catchUp: "all" };
  expect((await mine(service).schedules.list())[0]).toMatchObject(wanted);
  const gone = await post("/schedules/edit", { ...FIELDS, edit: "sch_none" });
  expect([gone.status, gone.body]).toEqual([422, expect.stringContaining("There is no schedule")]);
});

test("model, limits and goal are chosen for the runs of a schedule as for a run", async () => {
  const { service, link } = await opened();
  const { get, post } = await visit(link);
  const cost = { cost: "other", costOther: "2.5" };
  const choices = { model: "b:small", ...cost, minutes: "1.5", goal: "One\r\n\r\nTwo", changes: "propose" };
  expect((await post("/schedules/add", { ...FIELDS, ...choices })).status).toBe(303);
  const chosen = {
    model: "b:small",
    limits: { costUsd: 2.5, workTime: 90 },
    goal: ["One", "Two"],
    changes: "propose",
  };
  const [schedule] = await mine(service).schedules.list();
  expect(schedule).toMatchObject(chosen);
  expect((await get("/schedules")).body).toContain(
    "Model b:small, limit $2.50, 1m 30s of work, changes are proposed, goal of 2 criteria",
  );
  const { body } = await get(`/schedules?edit=${schedule?.id}`);
  expect(body).toMatch(/name="model"\s+value="b:small"\s+data-word="b:small"\s+checked/);
  expect(body).toMatch(/value="2\.5"/);
  expect(body).toMatch(/name="minutes"[^>]*value="1\.5"/);
  expect(body).toMatch(/data-lines="criteria">\s*One\nTwo/);
  const edit = { ...FIELDS, edit: schedule?.id ?? "" };
  const wrong = await post("/schedules/edit", { ...edit, ...choices, tokens: "3000000" });
  expect([wrong.status, wrong.body]).toEqual([422, expect.stringContaining("allows at most 2000000")]);
  expect(wrong.body).toMatch(/chip drop fault"[^>]*id="chip-limit"/);
  expect(wrong.body).toMatch(/name="tokens"[^>]*value="3000000"/);
  const unread = await post("/schedules/edit", { ...edit, minutes: "soon" });
  expect([unread.status, unread.body]).toEqual([422, expect.stringContaining("minutes of work has to be")]);
  expect((await post("/schedules/edit", edit)).status).toBe(303);
  const [plain] = await mine(service).schedules.list();
  expect([plain?.model, plain?.limits, plain?.goal, plain?.changes]).toEqual(Array(4).fill(undefined));
});

test("a model that is not allowed any more stays chosen until a person chooses another", async () => {
  const offered = { ...OFFERED };
  const { service, link } = await opened(offered);
  const { get, post } = await visit(link);
  await mine(service).schedules.add({ ...DAILY, model: "b:small" });
  offered.models = OFFERED.models.slice(0, 1);
  const [schedule] = await mine(service).schedules.list();
  const edit = { ...DAILY, catchUp: "one", catchUpLimit: "10", edit: schedule?.id ?? "" };
  const { body } = await get(`/schedules?edit=${schedule?.id}`);
  expect(body).toMatch(/value="b:small"[\s\S]*checked[\s\S]*This server does not allow it/);
  expect((await post("/schedules/edit", { ...edit, model: "b:small", task: "Read all" })).status).toBe(303);
  expect((await mine(service).schedules.list())[0]).toMatchObject({ model: "b:small", task: "Read all" });
  const now = await post("/schedules/run", { schedule: schedule?.id ?? "" });
  expect([now.status, now.body]).toEqual([422, expect.stringContaining("does not allow the model")]);
});

test("what is wrong is shown where it was written, and what was typed stays", async () => {
  const { service, link } = await opened();
  const { get, post } = await visit(link);
  const wrong = await post("/schedules/add", { ...FIELDS, expression: `"><script>x</script>` });
  expect(wrong.status).toBe(422);
  expect(wrong.body).toContain("is not a cron expression");
  expect(wrong.body).toContain('value="&#34;&#62;&#60;script&#62;x&#60;/script&#62;"');
  expect(wrong.body).not.toContain("<script>x");
  expect(wrong.body).toMatch(/name="overlap"\s+checked/);
  const limit = await post("/schedules/add", { ...FIELDS, catchUpLimit: "many" });
  expect([limit.status, limit.body]).toEqual([422, expect.stringContaining("from 1 to 100")]);
  await mine(service).schedules.add(DAILY);
  const [schedule] = await mine(service).schedules.list();
  await mine(service).schedules.runNow(schedule?.id ?? "");
  const second = await post("/schedules/run", { schedule: schedule?.id ?? "" });
  expect(second.status).toBe(422);
  expect(second.body).toContain("does not allow runs to overlap");
  expect((await post("/schedules/pause", { schedule: "sch_none" })).status).toBe(422);
  const previewed = await get("/schedules?expression=0+9+1+*+*&timeZone=Asia/Tokyo");
  expect(previewed.body).toContain("At 09:00, on day 1 of the month");
  expect(previewed.body).toContain("Sun 1 Feb 2026, 09:00");
});

test("a page that only looks on has no schedules, and changes none", async () => {
  const { service, pages } = await opened();
  const { id } = await startRun(service, "look");
  await mine(service).schedules.add(DAILY);
  const [schedule] = await mine(service).schedules.list();
  const looker = await visit(pages.link({ principal: ME, purpose: "watch", run: id }));
  expect((await looker.get("/schedules")).status).not.toBe(200);
  expect((await looker.get(`/runs/${id}`)).body).not.toContain("/schedules");
  for (const change of ["pause", "remove", "run", "add", "edit"]) {
    const of = { schedule: schedule?.id ?? "", edit: schedule?.id ?? "" };
    const { status } = await looker.post(`/schedules/${change}`, { ...FIELDS, ...of });
    expect(status).toBeGreaterThanOrEqual(400);
  }
  const others = await visit(pages.link({ principal: "you", purpose: "decide" }));
  expect((await others.get("/schedules")).body).toContain("No schedules yet");
  await others.post("/schedules/remove", { schedule: schedule?.id ?? "" });
  expect(await mine(service).schedules.list()).toEqual([schedule]);
});

describe("in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "Asia/Tokyo", reducedMotion: "reduce" });

  test("the form suggests the browser's zone, and reads an expression while it is typed", async () => {
    const { service, pages, link } = await opened();
    const { page, messages } = await open(link);
    await page.waitForURL(pages.address);
    await page.getByRole("link", { name: "Schedules" }).first().click();
    const zone = page.getByLabel("Time zone");
    await expect.poll(() => zone.inputValue()).toBe("Asia/Tokyo");
    await page.getByLabel("Cron expression").fill("0 9 * * 6");
    await page.getByText("At 09:00, Saturday").waitFor();
    await page.getByText("Sat 10 Jan 2026, 09:00", { exact: false }).waitFor();
    await page.getByLabel("Cron expression").fill("0 99 * * 6");
    await page.getByText("is not a cron expression", { exact: false }).waitFor();
    await page.getByLabel("Cron expression").fill("0 9 * * 6");
    await page.getByLabel("Task").fill("Water the plants");
    await page.locator("#chip-limit summary").click();
    await page.getByLabel("Tool calls").fill("40");
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.keyboard.press("Escape");
    await page.locator("#chip-model summary").click();
    await page.locator("label", { has: page.locator("input[value='b:small']") }).click();
    const chips = ["b:small", "Edit files directly", "No goal", "Limit 40 tool calls"];
    expect(await page.locator(".chip [data-chip]").allTextContents()).toEqual(chips);
    await page.getByRole("button", { name: "Add schedule" }).click();
    await page.getByRole("heading", { name: "Water the plants" }).waitFor();
    const fields = {
      timeZone: "Asia/Tokyo",
      expression: "0 9 * * 6",
      model: "b:small",
      limits: { toolCalls: 40 },
    };
    expect(await mine(service).schedules.list()).toMatchObject([fields]);
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByText("Remove", { exact: true }).click();
    await page.getByRole("button", { name: "Remove the schedule" }).click();
    await page.getByText("No schedules yet").waitFor();
    expect(messages).toEqual([]);
  });
});
