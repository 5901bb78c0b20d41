/** Where parts of the page stand in the window, and what moves them. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ME } from "../../runs/support.ts";
import { browser } from "./chromium.ts";
import { NOW, seededRuns } from "./seeded-runs.ts";
import { openPages } from "./support.ts";

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
        await expect.poll(() => insideWindow(page, `${chip} > .menu`), `${chip} at ${width}`).toBe(true);
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
});
