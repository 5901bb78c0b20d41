import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { StartChoices } from "../../../src/runs/choices.ts";
import type { RunService } from "../../../src/runs/service.ts";
import {
  ME,
  callingInTurn,
  databaseFile,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { openPages } from "./support.ts";

const LONG = `検潮所 ${"a-word-without-an-end-".repeat(9)} 🛰️`;
const OFFERED: StartChoices = {
  models: [
    { spec: "a:main", price: { input: 3, output: 15 } },
    { spec: "b:small", price: { input: 1, output: 5 } },
  ],
  limits: { modelCalls: 40 },
};

/** A run of four calls of its model, which it may ask twice. */
async function stopped(): Promise<{ service: RunService; id: string }> {
  const calls = Array.from({ length: 9 }, (_, at) => [note(`${at}`)]);
  const { service } = openServer(
    databaseFile(),
    { model: callingInTurn(...calls), tools: [noteTool([])], limits: { maxIterations: 2 } },
    { model: "a:main", choices: () => OFFERED },
  );
  const run = await startRun(service, LONG, { limits: { modelCalls: 2 }, model: "b:small" });
  return { service, id: (await reach(service, run.id, "completed")).run.id };
}

describe("a run that a limit stopped, in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  async function answer() {
    const { service, id } = await stopped();
    const pages = await openPages(service);
    const { page, messages } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.goto(new URL(`/runs/${id}`, pages.address).href);
    await page.getByText("Stopped at the limit of 2 model calls. Results so far:").waitFor();
    const newest = async () => {
      const [head] = await mine(service).read.list({ limit: 1 });
      return head && (await mine(service).read.view(head.id))?.run;
    };
    return { page, messages, newest, id };
  }
  const leave = (page: Page, id: string) => page.waitForURL((url) => !url.pathname.includes(id));

  test("continues with as much again, and its other choices stay", async () => {
    const { page, messages, newest, id } = await answer();
    await page.getByRole("link", { name: "Continue with another 2 model calls" }).click();
    await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("more");
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.locator("form.compose").getByRole("button", { name: "Send" }).click();
    await leave(page, id);
    const chosen = { task: "Continue where you stopped.", model: "b:small", limits: { modelCalls: 2 } };
    expect(await newest()).toMatchObject(chosen);
    expect(messages).toEqual([]);
  });

  test("continues with a message, another model and another limit", async () => {
    const { page, newest, id } = await answer();
    const chips = page.locator("#chip-model, #chip-limit");
    expect(await chips.locator("[data-chip]").allTextContents()).toEqual(["b:small", "Limit 2 model calls"]);
    await page.locator("#chip-model summary").click();
    await page.locator("#chip-model").getByText("main").click();
    await page.locator("#chip-limit summary").click();
    await page.locator("#chip-limit").getByLabel("Model calls").fill("41");
    await page.getByLabel("Message", { exact: true }).fill(LONG);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("alert").getByText("this server allows at most 40").waitFor();
    expect(await page.locator("#chip-limit.fault").count()).toBe(1);
    await page.locator("#chip-limit summary").click();
    await page.locator("#chip-limit").getByLabel("Model calls").fill("30");
    await page.locator("form.compose").getByRole("button", { name: "Try again" }).click();
    await leave(page, id);
    const run = await newest();
    expect(run).toMatchObject({ task: LONG, limits: { modelCalls: 30 } });
    expect(run?.model).toBeUndefined();
  });
});
