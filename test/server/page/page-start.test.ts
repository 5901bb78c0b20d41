import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { StartChoices } from "../../../src/runs/choices.ts";
import { ME, mine, databaseFile, openServer } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { browser, problemsOf } from "./chromium.ts";
import { openPages } from "./support.ts";

const LONG = `d:${"a-model-without-an-end-".repeat(6)}検潮`;
const OFFERED: StartChoices = {
  models: [
    { spec: "a:main", price: { input: 3, output: 15 } },
    { spec: "b:small", price: { input: 1, output: 5 } },
    { spec: LONG, problem: `Model '${LONG}' needs the environment variable D_API_KEY, which is not set.` },
  ],
  limits: { costUsd: 5, tokens: 2_000_000 },
};

describe("what is chosen for one run, in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  async function opened(offered = OFFERED) {
    const { service } = openServer(
      databaseFile(),
      { model: scriptedModel(() => ({ text: "done" })) },
      { model: "a:main", choices: () => offered },
    );
    const settings = { folder: "tide-alarms", folderSetBy: "The setting workspace names it." };
    const pages = await openPages(service, undefined, { settings });
    const { page, messages } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.locator("#screen").waitFor();
    const newest = async () => {
      const [head] = await mine(service).read.list({ limit: 1 });
      return head && (await mine(service).read.view(head.id))?.run;
    };
    return { page, messages, newest, service };
  }

  const chips = async (page: Page): Promise<string[]> =>
    (await page.locator(".chip [data-chip]").allTextContents()).map((text) => text.trim());

  test("chips tell what counts, and their menus change it for this run, by mouse and by keys", async () => {
    const { page, messages, newest } = await opened();
    expect(await chips(page)).toEqual(["tide-alarms", "a:main", "No goal", "Limit $5.00, 2.00M tokens"]);
    await page.locator("#chip-folder summary").click();
    await page.getByText("The setting workspace names it.").waitFor();
    await page.locator("#chip-model summary").click();
    expect(await page.locator("#chip-folder[open]").count()).toBe(0);
    expect(await page.locator("input[name=model]:disabled").count()).toBe(1);
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    // Arrow keys choose and leave the menu open; Escape closes it and gives the focus back.
    await page.locator("input[name=model]:checked").focus();
    await page.keyboard.press("ArrowDown");
    expect(await chips(page)).toContain("b:small");
    expect(await page.locator("#chip-model[open]").count()).toBe(1);
    await page.keyboard.press("Escape");
    expect(await page.evaluate("document.activeElement.closest('details').id")).toBe("chip-model");
    await page.locator("#chip-limit summary").click();
    await page.getByLabel("Other cost, in US dollars").fill("2.5");
    await page.getByLabel("Tool calls").fill("40");
    expect(await chips(page)).toContain("Limit $2.5, 40 tool calls");
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.keyboard.press("Escape");
    await page.getByLabel("New task").fill("Look around");
    await page.getByRole("button", { name: "Start run" }).click();
    await page.waitForURL(/\/runs\//);
    const chosen = { model: "b:small", limits: { costUsd: 2.5, toolCalls: 40 } };
    expect(await newest()).toMatchObject({ task: "Look around", ...chosen });
    await page.locator(".facts").getByText("$2.50, 40 tool calls").waitFor();
    expect(messages).toEqual([]);
  });

  test("a run proposes its changes if that is chosen, and its facts say so", async () => {
    const { page, messages, newest } = await opened({ ...OFFERED, changes: "direct" });
    await page.locator("#chip-changes summary").click();
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.locator("#chip-changes").getByText("Propose changes").click();
    expect(await chips(page)).toContain("Propose changes");
    await page.getByLabel("New task").fill("Look around");
    await page.getByRole("button", { name: "Start run" }).click();
    await page.waitForURL(/\/runs\//);
    expect(await newest()).toMatchObject({ changes: "propose" });
    await page.locator(".facts").getByText("proposed for review").waitFor();
    expect(messages).toEqual([]);
  });

  test("where no run can propose changes, the choice is off and says why", async () => {
    const { page } = await opened({ ...OFFERED, changes: "direct", noProposals: "There is no workspace." });
    await page.locator("#chip-changes summary").click();
    await page.locator("#chip-changes").getByText("There is no workspace.").waitFor();
    expect(await page.locator("input[name=changes]:disabled").count()).toBe(1);
  });

  test("criteria of a goal, one a line, are those of the run; a wrong list is refused where it was written", async () => {
    const { page, messages, newest } = await opened();
    await page.getByLabel("New task").fill("Look around");
    await page.locator("#chip-goal summary").click();
    const field = page.getByLabel("Acceptance criteria, one per line");
    await field.fill("There is a report\n\nThere is a report\n");
    expect(await chips(page)).toContain("Goal: 2 criteria");
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Start run" }).click();
    await page.getByRole("alert").getByText("Criterion 2 of the goal is given twice").waitFor();
    expect(await page.locator("#chip-goal.fault").count()).toBe(1);
    expect(await newest()).toBeUndefined();
    await page.locator("#chip-goal summary").click();
    expect(await field.inputValue()).toBe("There is a report\n\nThere is a report\n");
    await field.fill("There is a report\n  The tests pass ");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.waitForURL(/\/runs\//);
    expect(await newest()).toMatchObject({ goal: ["There is a report", "The tests pass"] });
    expect(messages).toEqual([expect.stringContaining("422")]);
  });

  test("a limit above the server's is refused where it was written; text and choices stay", async () => {
    const { page, newest, service } = await opened();
    await page.getByLabel("New task").fill("Look around");
    await page.locator("#chip-model summary").click();
    await page.locator("label", { has: page.locator("input[value='b:small']") }).click();
    expect(await page.locator("#chip-model[open]").count()).toBe(0);
    await page.locator("#chip-limit summary").click();
    await page.getByLabel("Tokens").fill("3 000 000");
    await page.getByRole("button", { name: "Start run" }).click();
    await page.getByRole("alert").getByText("this server allows at most 2000000").waitFor();
    expect(await chips(page)).toEqual(["tide-alarms", "b:small", "No goal", "Limit 3 000 000 tokens"]);
    expect(await page.locator("#chip-limit.fault").count()).toBe(1);
    expect(await newest()).toBeUndefined();
    // News of other runs change the screen, and nothing that was chosen.
    await mine(service).control.start({ task: "another one" });
    await page.locator(".run-row").getByText("another one").waitFor();
    expect(await chips(page)).toEqual(["tide-alarms", "b:small", "No goal", "Limit 3 000 000 tokens"]);
    await page.locator("#chip-limit summary").click();
    await page.getByLabel("Tokens").fill("");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.waitForURL(/\/runs\//);
    expect(await newest()).toMatchObject({ model: "b:small" });
  });
});
