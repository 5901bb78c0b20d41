/** No screen of the page is wider than its window, from a small phone to a large display. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { PageServer } from "../../../src/server/contracts/deps.ts";
import { ME } from "../../runs/support.ts";
import { accessRuns } from "./access-runs.ts";
import { browser } from "./chromium.ts";
import { JUDGED_AT, goalRuns } from "./goal-runs.ts";
import { ASKED_AT, QUESTIONS, askingRun } from "./question-runs.ts";
import { PROPOSED_AT, proposingRun } from "./proposing-runs.ts";
import { NOW, seededRuns } from "./seeded-runs.ts";
import { openPages } from "./support.ts";

/** Phones, tablets, both sides of the breaks of the style sheet, windows at 200 % zoom, and displays. */
const WIDTHS = [320, 390, 560, 700, 701, 720, 760, 799, 820, 961, 1080, 1081, 1280, 1440, 1600, 1920];

describe("the page in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  const signedIn = async (pages: PageServer): Promise<Page> => {
    const { page } = await open("about:blank");
    await page.goto(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    return page;
  };

  /** Screens that scroll sideways, each with the width and by how much. */
  const sideways = async (pages: PageServer, paths: readonly string[]): Promise<string[]> => {
    const page = await signedIn(pages);
    const found: string[] = [];
    for (const path of paths) {
      await page.goto(new URL(path, pages.address).href);
      await page.locator("main").waitFor();
      await page.evaluate("document.fonts.ready");
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        const beyond = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
        if (beyond > 0) found.push(`${path} at ${width}: ${beyond} px`);
      }
    }
    return found;
  };

  test("no screen scrolls sideways", async () => {
    const { service, runs } = await seededRuns();
    const { twelve, hundred, done, failed, cancelled } = runs;
    const seeded = await openPages(service, () => NOW, {
      settings: { folder: "tide-alarms" },
      folderOf: ({ environment }) => environment,
    });
    const ofRuns = [`${twelve}/work`, `${twelve}/review`, `${hundred}/work?view=list`, `${done}/answer`];
    const ended = [`${done}/files`, `${failed}/answer`, `${cancelled}/work`];
    const several = ["/", "/review", "/schedules", "/servers", "/rules", "/files", "/search?q=tide"];
    const found = await sideways(seeded, [...several, ...[...ofRuns, ...ended].map((tab) => `/runs/${tab}`)]);
    found.push(...(await sideways(await openPages(await accessRuns(NOW), () => NOW), ["/access"])));
    const goals = await goalRuns();
    const goalPages = await openPages(goals.service, () => JUDGED_AT);
    found.push(...(await sideways(goalPages, [`/runs/${goals.asked}/work`, `/runs/${goals.ended}/answer`])));
    const proposing = await proposingRun();
    const proposed = await openPages(proposing.service, () => PROPOSED_AT, { folderOf: () => "tide-alarms" });
    found.push(...(await sideways(proposed, [`/runs/${proposing.runId}/review`])));
    const asking = await askingRun(QUESTIONS);
    const questions = await openPages(asking.service, () => ASKED_AT);
    found.push(...(await sideways(questions, ["/", "/review"])));
    expect(found).toEqual([]);
  });
});
