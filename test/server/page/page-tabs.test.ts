import { isApproval } from "../../../src/runs/run.ts";
import { describe, expect, test } from "vitest";
import { ME, mine } from "../../runs/support.ts";
import { browser } from "./chromium.ts";
import { openPages, waitingRun } from "./support.ts";

/** More than the connections that a browser has to one server. */
const MANY = 9;

describe("many tabs in Chromium", { tags: "chromium" }, () => {
  const open = browser();

  test("all open, and each is up to date when it is seen", async () => {
    const { service, runId, view } = await waitingRun("a");
    const pages = await openPages(service);
    const { page: first } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await first.waitForURL(pages.address);
    // Chromium without a screen takes every tab for one that is seen.
    const isHidden =
      "Object.defineProperty(document, 'hidden', { configurable: true, get: () => !window.isSeen })";
    await first.context().addInitScript(isHidden);
    const tabs = [];
    for (let count = 1; count < MANY; count += 1) {
      const tab = await open(`${pages.address}runs/${runId}/work`);
      await tab.page.locator("#screen").waitFor();
      tabs.push(tab);
    }
    await expect.poll(() => first.title()).toMatch(/^\(1\) Runs/);
    await mine(service).requests.answer(
      runId,
      { requestId: view.requests.filter(isApproval)[0]?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    await expect.poll(() => first.title()).toMatch(/^Runs/);
    const last = tabs.at(-1);
    expect(await last?.page.title()).toMatch(/^\(1\) /);
    await last?.page.evaluate("window.isSeen = true, document.dispatchEvent(new Event('visibilitychange'))");
    await expect.poll(() => last?.page.title()).toMatch(/^note/);
    expect(await last?.page.getByText("Not connected").count()).toBe(0);
    expect(tabs.flatMap(({ messages }) => messages)).toEqual([]);
  });

  test("the one that was opened first tells at once what waits, also when it is not seen", async () => {
    const { service, runId, view } = await waitingRun("a");
    const pages = await openPages(service);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    const hide = "Object.defineProperty(document, 'hidden', { get: () => true })";
    await page.evaluate(`${hide}, document.dispatchEvent(new Event('visibilitychange'))`);
    await mine(service).requests.answer(
      runId,
      { requestId: view.requests.filter(isApproval)[0]?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    await expect.poll(() => page.title(), { timeout: 5000 }).toMatch(/^Runs/);
  });
});
