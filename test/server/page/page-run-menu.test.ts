import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import { ME, mine, reach, startRun } from "../../runs/support.ts";
import { plainRuns } from "../support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { linkTo, openPages, visit, waitingRun } from "./support.ts";

const TASK = `検潮所の警報 🛰️ <img src=x onerror=alert(1)> ${"a-word-without-an-end-".repeat(12)}`;
const NAME = "潮 📟 <script>alert(1)</script> & the fix";

const opener = (page: Page) => page.getByLabel("More about this run");

describe("the menu of a run, in Chromium", { tags: "chromium" }, () => {
  const permissions = ["clipboard-read", "clipboard-write"];
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce", permissions });

  async function opened(service: RunService, runId: string, purpose: "decide" | "watch" = "decide") {
    const pages = await openPages(service);
    const { page, messages } = await open(pages.link({ principal: ME, purpose, first: runId }));
    await page.waitForURL(`**/runs/${runId}`);
    await page.locator("#screen").waitFor();
    return { page, messages, pages };
  }

  async function ended() {
    const service = plainRuns();
    const { id } = await startRun(service, TASK);
    await reach(service, id, "completed");
    return { service, id };
  }

  test("copies the link and the id, and saves the run as Markdown and JSON", async () => {
    const { service, id } = await ended();
    const { page, messages, pages } = await opened(service, id);
    const copied = (): Promise<string> => page.evaluate<string>("navigator.clipboard.readText()");
    await opener(page).click();
    expect(await problemsOf(page)).toEqual([]);
    for (const item of await page.locator("#run-menu .menu-item:visible").all())
      expect((await item.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("button", { name: "Copy link" }).click();
    await expect.poll(copied).toBe(`${pages.address}runs/${id}`);
    await page.getByRole("button", { name: "Copy run id" }).click();
    await expect.poll(copied).toBe(id);
    const saved = async (name: string): Promise<[string, string]> => {
      if ((await page.locator("#run-menu[open]").count()) === 0) await opener(page).click();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name }).click(),
      ]);
      return [download.suggestedFilename(), await readFile(await download.path(), "utf8")];
    };
    const [markdownName, markdown] = await saved("Export as Markdown");
    expect(markdownName).toBe(`${id}.md`);
    expect(markdown).toContain("> 検潮所の警報 🛰️");
    const [jsonName, json] = await saved("Export as JSON");
    expect(jsonName).toBe(`${id}.json`);
    expect(JSON.parse(json)).toMatchObject({ run_id: id, status: "completed", task: TASK.trim() });
    await opener(page).click();
    await page.getByRole("link", { name: "Start from an earlier step…" }).click();
    await page.waitForURL(/answer#fork$/);
    expect(messages).toEqual([]);
  });

  test("the address of an export shows a text, and nothing in it becomes part of the page", async () => {
    const { service, id } = await ended();
    const { page, messages, pages } = await opened(service, id);
    for (const form of ["json", "markdown"]) {
      await page.goto(`${pages.address}runs/${id}/export?as=${form}`);
      await page.locator("pre").getByText("onerror=alert(1)").first().waitFor();
      expect(await page.locator("body > *").count()).toBe(1);
      expect(await page.locator("img").count()).toBe(0);
    }
    await page.goto(`${pages.address}runs/${id}/work`);
    await page.locator("#screen").waitFor();
    await page.goto(`${pages.address}runs/${id}/export?as=pdf`);
    await page.getByText("Page not found").waitFor();
    expect(messages.filter((text) => !text.includes("404"))).toEqual([]);
  });

  test("renaming changes the name everywhere, and an empty name shows the task again", async () => {
    const { service, id } = await ended();
    const { page, pages } = await opened(service, id);
    const rename = async (name: string): Promise<void> => {
      await opener(page).click();
      await page.getByRole("button", { name: "Rename…" }).click();
      expect(await page.locator("#run-name:focus").count()).toBe(1);
      await page.getByLabel("Name", { exact: true }).fill(name);
      await page.getByRole("button", { name: "Rename", exact: true }).click();
      await page.locator("dialog[open]").waitFor({ state: "detached" });
    };
    await rename(NAME);
    await page.getByRole("heading", { level: 1, name: NAME }).waitFor();
    expect(await page.title()).toContain("潮 📟");
    expect((await mine(service).read.view(id))?.run).toMatchObject({ task: TASK.trim(), name: NAME });
    await page.goto(`${pages.address}?q=the+fix`);
    await page.locator(`#row-${id}`).getByText(NAME).waitFor();
    await page.goto(`${pages.address}runs/${id}`);
    await page.locator("#screen").waitFor();
    await opener(page).click();
    await page.getByRole("button", { name: "Rename…" }).click();
    expect(await problemsOf(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 1280, height: 800 });
    await rename("  ");
    await page.getByRole("heading", { level: 1, name: "検潮所の警報" }).waitFor();
    expect((await mine(service).read.view(id))?.run.name).toBeUndefined();
  });

  test("deleting asks first, with the focus on what keeps the run", async () => {
    const { service, id } = await ended();
    const { page, pages } = await opened(service, id);
    const ask = async (): Promise<void> => {
      await opener(page).click();
      await page.getByRole("button", { name: "Delete run…" }).click();
    };
    await ask();
    expect(await page.locator("button:focus").innerText()).toBe("Keep it");
    await page.getByText("Not deleted: files in the workspace, and memories.").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.keyboard.press("Enter");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    expect(await mine(service).read.view(id)).toBeDefined();
    await ask();
    await page.getByRole("button", { name: "Delete run", exact: true }).click();
    await page.waitForURL(pages.address);
    await page.locator("#screen").waitFor();
    expect(await page.locator(`#row-${id}`).count()).toBe(0);
    expect(await mine(service).read.view(id)).toBeUndefined();
    await page.goto(`${pages.address}runs/${id}`);
    await page.getByText("Page not found").waitFor();
  });

  test("a run at work has to be cancelled before it is deleted", async () => {
    const { service, runId } = await waitingRun("a");
    const { page } = await opened(service, runId);
    await opener(page).click();
    expect(await page.getByRole("button", { name: "Delete run… Cancel it first" }).isDisabled()).toBe(true);
    expect(await page.getByRole("link", { name: "Start from an earlier step…" }).count()).toBe(0);
    expect(await problemsOf(page)).toEqual([]);
  });

  test("a page that only looks exports, and neither renames nor deletes", async () => {
    const { service, id } = await ended();
    const { page } = await opened(service, id, "watch");
    await opener(page).click();
    await page.getByRole("link", { name: "Export as JSON" }).waitFor();
    expect(await page.locator("dialog:not(#keys, .finder)").count()).toBe(0);
    expect(await page.locator("[data-dialog]").count()).toBe(0);
  });
});

describe("forms of the menu", () => {
  test("need a session that may run, and a run that has ended", async () => {
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service);
    const watcher = await visit(linkTo(pages, runId, "watch"));
    for (const form of ["rename", "delete"])
      expect((await watcher.post(`/runs/${runId}/${form}`, { name: "mine" })).status).toBe(403);
    const person = await visit(linkTo(pages, runId, "decide"));
    const refused = await person.post(`/runs/${runId}/delete`, {});
    expect(refused.status).toBe(422);
    expect(refused.body).toContain("Cancel it first, then delete it.");
    await person.post(`/runs/${runId}/cancel`, {});
    await expect.poll(async () => (await person.post(`/runs/${runId}/delete`, {})).status).toBe(200);
    expect((await person.post(`/runs/${runId}/delete`, {})).status).toBe(404);
    expect((await person.post(`/runs/${runId}/rename`, { name: "gone" })).status).toBe(404);
  });
});
