/** Where parts of the page stand in the window, and what moves them. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  ME,
  callingInTurn,
  databaseFile,
  mine,
  note,
  noteTool,
  openServer,
  startRun,
} from "../../runs/support.ts";
import { browser } from "./chromium.ts";
import { ASKED_AT, QUESTIONS, askingRun } from "./question-runs.ts";
import { NOW, seededRuns } from "./seeded-runs.ts";
import { linkTo, openPages } from "./support.ts";

describe("in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  /** The seeded runs, and a page that goes to their screens. */
  async function seeded() {
    const { service, runs } = await seededRuns();
    const pages = await openPages(service, () => NOW, { settings: { folder: "tide-alarms" } });
    const { page } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.locator("main").waitFor();
    const go = async (path: string): Promise<void> => {
      await page.goto(new URL(path, pages.address).href);
      await page.locator("main").waitFor();
    };
    return { page, runs, service, go };
  }

  const insideWindow = (page: Page, selector: string): Promise<boolean> =>
    page.evaluate(`(() => {
      const { top, left, bottom, right } = document.querySelector("${selector}").getBoundingClientRect();
      return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth;
    })()`);

  test("an open menu is inside the window: it opens upward, or scrolls", async () => {
    const { page } = await seeded();
    for (const [width, height] of [
      [1280, 600],
      [1280, 800],
      [720, 640],
    ] as const) {
      await page.setViewportSize({ width, height });
      for (const chip of ["#chip-folder", "#chip-model", "#chip-goal", "#chip-limit"]) {
        await page.locator(`${chip} > summary`).click();
        await expect
          .poll(() => insideWindow(page, `${chip} > .menu`), { message: `${chip} at ${width}` })
          .toBe(true);
        await page.keyboard.press("Escape");
      }
      await page.setViewportSize({ width, height: 300 });
      await page.getByTitle("Settings").click();
      await expect.poll(() => insideWindow(page, ".top .menu")).toBe(true);
      await page.keyboard.press("Escape");
    }
  });

  test("the field of a goal looks like a field", async () => {
    const { page } = await seeded();
    await page.locator("#chip-goal > summary").click();
    const look = "getComputedStyle(document.getElementById('goal'))";
    expect(await page.evaluate(`[${look}.borderTopWidth, ${look}.backgroundColor]`)).toEqual([
      "1px",
      "rgb(255, 255, 255)",
    ]);
  });

  const topOf = async (page: Page, selector: string): Promise<number> =>
    Math.round((await page.locator(selector).boundingBox())?.y ?? Number.NaN);

  test("a line that a person points at stays where it is when newer ones come and when it is folded", async () => {
    const opened: (() => void)[] = [];
    const tools = [noteTool([], () => new Promise((resolve) => opened.push(resolve)))];
    const turns = ["a", "b", "c", "d"].map((text) => [note(text)]);
    const { service } = openServer(databaseFile(), { model: callingInTurn(...turns), tools });
    const { id } = await startRun(service, "note these");
    const { page } = await open(linkTo(await openPages(service), id, "decide"));
    const steps = page.locator(".steps .i");
    const next = async (count: number): Promise<void> => {
      await expect.poll(() => opened.length).toBe(count);
      await expect.poll(() => steps.count()).toBeGreaterThanOrEqual(count);
      opened[count - 1]?.();
    };
    await next(1);
    await expect.poll(() => opened.length).toBe(2);
    const row = `#${await page.locator(".steps li").last().getAttribute("id")}`;
    await expect.poll(() => steps.count()).toBe(2);
    await page.locator(row).hover();
    const before = await topOf(page, row);
    await next(2);
    await next(3);
    await page.locator(".steps details").waitFor();
    await expect.poll(() => opened.length).toBe(4);
    await page.locator(".steps").getByText("4").first().waitFor();
    expect(await topOf(page, row)).toBe(before);
    opened[3]?.();
  });

  test("lines of the activity stay where they are while newer ones are out of sight", async () => {
    const { page, runs, service, go } = await seeded();
    await go(`/runs/${runs.twelve}/work?events=all`);
    const row = `#${await page.locator(".feed > li").nth(4).getAttribute("id")}`;
    await page.evaluate(
      `window.scrollTo(0, document.querySelector("${row}").getBoundingClientRect().top - 120)`,
    );
    await page.mouse.move(2, 2);
    const before = await topOf(page, row);
    await mine(service).control.tell(runs.twelve, { text: "look at the crontab again" });
    await page.locator(".feed").getByText("look at the crontab again").waitFor();
    expect(await topOf(page, row)).toBe(before);
  });

  test("at 1440 px the chosen agent stands beside the timeline", async () => {
    const { page, runs, go } = await seeded();
    await page.setViewportSize({ width: 1440, height: 800 });
    await go(`/runs/${runs.hundred}/work`);
    const [times, agent] = [
      await page.locator(".main > .panel").boundingBox(),
      await page.locator("#agent").boundingBox(),
    ];
    expect(agent?.y).toBe(times?.y);
    expect(agent?.x ?? 0).toBeGreaterThan((times?.x ?? 0) + (times?.width ?? 0));
  });

  test("the key of the timeline has what is drawn, in its colours, and nothing else", async () => {
    const { page, runs, go } = await seeded();
    for (const run of [runs.twelve, runs.hundred, runs.cancelled]) {
      await go(`/runs/${run}/work`);
      const colours = (where: string): Promise<string[]> =>
        page.evaluate(`[...new Set([...document.querySelectorAll("${where} rect:not(.edge, .some)")]
          .map((e) => getComputedStyle(e).fill + getComputedStyle(e).strokeDasharray))].sort()`);
      expect(await colours(".legend")).toEqual(await colours(".tl-body"));
    }
  });

  test("the search stays where it is on screens that are not live", async () => {
    const { page, go } = await seeded();
    const left = async (): Promise<number | undefined> => (await page.locator(".find").boundingBox())?.x;
    const live = await left();
    await go("/files");
    expect(await left()).toBe(live);
  });

  test("digits open the tabs of a run, and the list of keys names every key", async () => {
    const { page, runs, go } = await seeded();
    await go(`/runs/${runs.done}/work`);
    for (const [key, tab] of [
      ["3", "Answer"],
      ["4", "Files"],
      ["1", "Work"],
      ["2", "Review"],
    ] as const) {
      await page.keyboard.press(key);
      await page.locator(".tabs [aria-current=page]").getByText(tab).waitFor();
    }
    await page.keyboard.press("?");
    const keys = await page.locator("#keys kbd:visible").allInnerTexts();
    expect(keys).toEqual(expect.arrayContaining(["1", "2", "3", "4", "?", "Esc", "Space", "Ctrl K"]));
    expect(keys.join()).not.toContain("⌘");
  });

  test("an unknown run or page keeps the bar, gives the reason and leads home", async () => {
    const { page, go } = await seeded();
    for (const path of ["/runs/run_nobody", "/runs/run_nobody/files", "/nowhere"]) {
      await go(path);
      await page.getByRole("heading", { name: "Page not found" }).waitFor();
      await page.getByRole("navigation", { name: "Main", exact: true }).getByText("Files").waitFor();
    }
    await page.getByRole("link", { name: "Show all runs" }).click();
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
  });

  test("a reload keeps what was typed and chosen, until it is sent", async () => {
    const { page, runs, go } = await seeded();
    await page.getByLabel("New task").fill("Look around");
    await page.locator("#chip-goal > summary").click();
    await page.locator("#goal").fill("There is a report");
    await page.locator("#chip-model > summary").click();
    await page.locator("label", { has: page.locator("input[value='claude-haiku-4-5']") }).click();
    await page.reload();
    await expect.poll(() => page.locator("#chip-model [data-chip]").innerText()).toBe("claude-haiku-4-5");
    expect(await page.locator("#goal").inputValue()).toBe("There is a report");
    expect(await page.locator("#chip-goal [data-chip]").innerText()).toBe("Goal: 1 criterion");
    await go(`/runs/${runs.twelve}/review`);
    const card = page.locator("[data-approval]").nth(1);
    await card.locator("[data-fold=edit] > summary").click();
    const command = card.getByRole("textbox", { name: "command" });
    await card.locator("[data-mounted]").first().waitFor();
    await command.fill("node --test");
    await card.locator("[data-fold=reject] > summary").click();
    await card.locator("textarea[name=message]").fill("not now");
    await page.reload();
    await expect.poll(() => card.locator("textarea[name=message]").inputValue()).toBe("not now");
    expect(await card.locator("textarea[name=edited_text]").inputValue()).toBe("node --test");
    await card.locator("[data-fold=reject]").evaluate((fold) => fold.setAttribute("open", ""));
    await card.getByRole("button", { name: "Reject", exact: true }).click();
    await expect.poll(() => page.locator("[data-approval]").count()).toBe(1);
    expect(await page.evaluate("Object.values(sessionStorage).includes('not now')")).toBe(false);
  });

  test("answers to a question outlast a reload", async () => {
    const { service, runId } = await askingRun(QUESTIONS.slice(0, 1));
    const { page } = await open(linkTo(await openPages(service, () => ASKED_AT), runId, "decide"));
    await page.locator("input[data-other]").fill("gold");
    await page.getByLabel("Sunday").check();
    await page.getByLabel("Coats of paint").fill("2");
    await page.reload();
    await expect.poll(() => page.getByLabel("Coats of paint").inputValue()).toBe("2");
    expect(await page.getByLabel("Sunday").isChecked()).toBe(true);
    expect(await page.getByLabel("Saturday").isChecked()).toBe(false);
    expect(await page.locator("input[data-other]").inputValue()).toBe("gold");
    expect(await page.locator("input[name=v0][value=other]").isChecked()).toBe(true);
  });

  test("a memory is deleted only after a second question", async () => {
    const { page, go } = await seeded();
    await go("/files/memories/pager.md");
    await page.getByText("Edit", { exact: true }).click();
    expect(await page.getByRole("button", { name: "Delete this memory" }).isVisible()).toBe(false);
    await page.getByText("Delete this memory…").click();
    await page.getByText("Agents can no longer read it.").waitFor();
    expect(await page.getByRole("button", { name: "Delete this memory" }).isVisible()).toBe(true);
  });

  test("a decided request is opened: the change, the decision and the reason", async () => {
    const { page, runs, service, go } = await seeded();
    const [edit] = (await mine(service).read.view(runs.twelve))?.requests ?? [];
    const answer = { type: "reject", message: "not before the tests pass" } as const;
    await mine(service).requests.answer(runs.twelve, { requestId: edit?.id ?? "", answer }, "page");
    await go(`/runs/${runs.twelve}/review`);
    const past = page.locator(".past-box");
    await past.getByText("not before the tests pass").waitFor();
    await past.getByRole("link").first().click();
    await page.getByText("Rejected at").getByText("not before the tests pass").waitFor();
    await page.getByRole("group", { name: "What would change" }).waitFor();
    expect(await page.locator("[data-approval] form").count()).toBe(0);
  });

  test("the files of a run with one change open at that change", async () => {
    const { page, runs, go } = await seeded();
    await go(`/runs/${runs.twelve}/work`);
    await page.locator(".tabs").getByText("Files").click();
    await page.getByRole("heading", { name: "/workspace/notes/alarm-path.md" }).waitFor();
  });
});
