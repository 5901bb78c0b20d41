import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { Readiness, RunService } from "../../../src/runs/service.ts";
import { ME, mine, calling, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { plainRuns } from "../support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { NOW, seededRuns } from "./seeded-runs.ts";
import { linkTo, openPages, visit, waitingRun } from "./support.ts";

const LONG = `検潮所 ${"a-word-without-an-end-".repeat(12)} 🛰️ <b>and</b> \u202Ewhere`;

const NO_MODEL =
  "No model is configured. To fix this, do one of the following:\n1. Set ANTHROPIC_API_KEY.\n2. Choose a model.\n3. Choose offline.";

const textsOf = async (parts: Locator): Promise<string[]> =>
  (await parts.allTextContents()).map((text) => text.trim());

describe("where people get stuck, in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  async function home(service: RunService, more: Parameters<typeof openPages>[2] = {}): Promise<Page> {
    const pages = await openPages(service, undefined, more);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.locator("#screen").waitFor();
    return page;
  }

  async function seeded(): Promise<{ page: Page; service: RunService; go: (path: string) => Promise<void> }> {
    const { service } = await seededRuns();
    const pages = await openPages(service, () => NOW);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    const go = async (path: string): Promise<void> => {
      await page.goto(new URL(path, pages.address).href);
      await page.locator("#screen").waitFor();
    };
    return { page, service, go };
  }

  test("a missing model is said before anything is typed, and the page goes on when there is one", async () => {
    let refusal: Readiness["refusal"] = {
      code: "model_not_configured",
      message: NO_MODEL,
      remedy: "deepagent-mcp keys set ANTHROPIC_API_KEY",
    };
    const { service } = openServer(
      databaseFile(),
      { model: calling() },
      {
        preflight: () => Promise.resolve(refusal),
        choices: () => ({ models: [], limits: { costUsd: 5, tokens: 2_000_000 } }),
      },
    );
    const settings = { folder: `${"a-very-long-folder-".repeat(8)}検潮所` };
    const page = await home(service, { settings });
    await page.getByRole("heading", { name: "Choose a model first" }).waitFor();
    expect(await page.locator(".ways li").allTextContents()).toEqual([
      "Set ANTHROPIC_API_KEY.",
      "Choose a model.",
      "Choose offline.",
    ]);
    await page.getByText("deepagent-mcp keys set ANTHROPIC_API_KEY").waitFor();
    const chips = [settings.folder, "No model yet", "No goal", "Limit $5.00, 2.00M tokens"];
    expect(await textsOf(page.locator(".chip.still, .chip [data-chip]"))).toEqual(chips);
    const start = page.getByRole("button", { name: "Start run" });
    expect(await start.isDisabled()).toBe(true);
    expect(await problemsOf(page)).toEqual([]);
    await page.getByLabel("New task").fill(LONG);
    await expect.poll(() => start.isDisabled()).toBe(true);
    refusal = undefined;
    await expect.poll(() => start.isDisabled()).toBe(false);
    expect(await page.getByRole("heading", { name: "Choose a model first" }).count()).toBe(0);
    await start.click();
    await page.waitForURL(/\/runs\//);
  });

  test("a start that fails keeps its text on the same page, with the reason in the form", async () => {
    const { service } = openServer(databaseFile(), { model: calling() }, { openRuns: 1, concurrentRuns: 0 });
    await startRun(service, "the one that is open");
    const page = await home(service);
    await page.getByLabel("New task").fill(LONG);
    await page.getByRole("button", { name: "Start run" }).click();
    const form = page.locator("form.start");
    await form.getByRole("alert").getByText("No run was started: 1 of your runs are unfinished").waitFor();
    expect(await page.getByLabel("New task").inputValue()).toBe(LONG);
    expect(await page.locator("header.top").getByRole("link", { name: "Runs" }).count()).toBe(1);
    expect(await problemsOf(page)).toEqual([]);
    const [run] = await mine(service).read.list({ limit: 1 });
    await mine(service).control.cancel(run?.id ?? "", "room for others");
    await form.getByRole("button", { name: "Try again" }).click();
    await page.waitForURL(/\/runs\//);
    expect((await mine(service).read.list({ limit: 1 }))[0]?.task).toContain("a-word-without-an-end");
  });

  test("a failed run says why in words, and goes on from there", async () => {
    const { page, service, go } = await seeded();
    await go("/runs/run_failed");
    await page.getByRole("heading", { name: "The model provider refused the API key" }).waitFor();
    expect(await page.locator("body").innerText()).not.toMatch(/model_auth|model auth|I look at the logs/);
    expect(await page.locator(".paper").count()).toBe(0);
    await page.getByText("Saved:").waitFor();
    // Another try cannot succeed before a person has done something.
    expect(await page.locator(".banner .btn.ink").count()).toBe(0);
    const said = page.getByText("401 authentication_error");
    expect(await said.isVisible()).toBe(false);
    await page.getByText("Message from the provider").click();
    await said.waitFor();
    await page.getByRole("link", { name: "Continue with a message" }).click();
    const focused = (): Promise<string> => page.evaluate("document.activeElement.id");
    await expect.poll(focused).toBe("more");
    expect(await problemsOf(page)).toEqual([]);
    await page.getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => page.url()).not.toContain("run_failed");
    const [again] = await mine(service).read.list({ limit: 1 });
    expect(again).toMatchObject({ task: "Summarize the logs of last night", threadId: "thr_failed" });
  });

  test("agents of a cancelled run are cancelled, and what was done is summed up", async () => {
    const { page, go } = await seeded();
    await go("/runs/run_cancelled");
    await page.getByRole("heading", { name: "The run was cancelled at" }).waitFor();
    await page.getByText("63 tool calls, 1 file changed, 9 of 24 agent reports").waitFor();
    await go("/runs/run_cancelled/work");
    const words = await page.locator(".tl-body .tl-name .hide").allTextContents();
    const count = (word: string): number => words.filter((text) => text === `${word}: `).length;
    expect([count("Cancelled"), count("Failed"), count("At work")]).toEqual([13, 3, 0]);
    expect(await page.locator(".tl-body .broke").count()).toBe(3);
    await go("/");
    const row = page.locator("#row-run_cancelled");
    expect(await row.locator(".agents-mini .num").textContent()).toBe("9 of 24");
    expect(await row.locator(".fill-red").getAttribute("width")).toBe("12.5%");
  });

  test("home and the run's page say the same", async () => {
    const { page, go } = await seeded();
    await go("/");
    const row = page.locator("#row-run_twelve");
    expect(await row.locator(".agents-mini .num").textContent()).toBe("4 of 12");
    expect(await row.innerText()).toContain("2 requests · 3 at work · 2 queued");
    expect(await row.locator(".hide").textContent()).toBe("At work, Needs you: ");
    expect(await page.locator(".home-head").innerText()).toContain(
      "3 at work (1 queued), 4 requests need your attention",
    );
    await page.getByRole("link", { name: "At work 3" }).click();
    await expect.poll(() => page.locator("a.run-row").count()).toBe(3);
    await go("/runs/run_twelve/work");
    expect(await textsOf(page.locator(".pill"))).toEqual(["At work", "Needs you"]);
    await page.getByText("4 of 12 done, 1 failed, 2 queued").waitFor();
    await page.getByText("2 requests need your attention").waitFor();
  });

  test("a rejection is a person's decision", async () => {
    const { service, runId } = await waitingRun("a");
    const visitor = await visit(linkTo(await openPages(service), runId, "decide"));
    await visitor.post(`${visitor.path}/reply`, { ...(await visitor.form()), decision: "reject" });
    await reach(service, runId, "completed");
    const work = (await visitor.get(`${visitor.path}/work?events=all`)).body;
    expect(work).toContain("You rejected calling <code>note</code>");
    expect(work).not.toMatch(/note failed|Failed: /);
    const review = (await visitor.get(`${visitor.path}/review`)).body.replace(/\s+/g, " ");
    expect(review).toMatch(/Rejected on the page/);
  });

  test("edit and reject close each other, and no button moves", async () => {
    const { page, go } = await seeded();
    await page.setViewportSize({ width: 1280, height: 900 });
    await go("/review");
    const foot = page.locator(".ask-foot").first();
    const place = async (part: Locator): Promise<number[]> => {
      const { x = 0, y = 0 } = (await part.boundingBox()) ?? {};
      return [Math.round(x), Math.round(y)];
    };
    const places = (): Promise<number[][]> =>
      Promise.all([foot.getByRole("button", { name: /^Approve\b/ }).first(), ...summaries].map(place));
    const summaries = [foot.locator("summary").nth(0), foot.locator("summary").nth(1)];
    const before = await places();
    await foot.locator("summary").nth(1).click();
    await foot.getByLabel("Reason").fill("not like this");
    expect(await places()).toEqual(before);
    await foot.locator("summary").nth(0).click();
    await expect.poll(() => foot.locator("details[open]").count()).toBe(1);
    expect(await foot.locator("details[open]").getAttribute("data-fold")).toBe("edit");
    expect(await places()).toEqual(before);
    expect(await problemsOf(page)).toEqual([]);
  });

  test("requests name the command or the file, whose end is in sight, and hidden characters are marks", async () => {
    const name = `${"検潮所-".repeat(20)}the-last-part.ts`;
    const path = `/${"a-deep-folder/".repeat(14)}${name}`;
    const content = "👩\u200d🚀 ships\u202e here\n";
    const { service } = openServer(databaseFile(), {
      model: calling({ name: "write_file", args: { file_path: path, content } }),
      interruptOn: { write_file: true },
    });
    const { id } = await startRun(service, LONG);
    await reach(service, id, "input_required");
    const page = await home(service);
    await page.setViewportSize({ width: 390, height: 844 });
    const what = page.locator(".needs-list .what");
    expect(await what.innerText()).toMatch(/^Create/);
    const end = what.locator(".path > :last-child");
    expect(await end.textContent()).toBe("e-last-part.ts");
    const { x = 0, width = 0 } = (await end.boundingBox()) ?? {};
    const box = (await what.boundingBox()) ?? { x: 0, width: 0 };
    expect(width).toBeGreaterThan(60);
    expect(x + width).toBeLessThanOrEqual(box.x + box.width + 1);
    await page
      .locator(".needs-list")
      .getByRole("link", { name: /^Review/ })
      .click();
    await page.locator(".ask").waitFor();
    await page.locator(".ask-foot summary").first().click();
    await page.locator("[data-mounted]").first().waitFor();
    expect(await page.locator(".cm-content").first().innerText()).toContain(
      "👩⟨U+200D⟩🚀 ships⟨U+202E⟩ here",
    );
    await page.getByRole("button", { name: "Approve with changes" }).click();
    await reach(service, id, "completed");
    const files = await mine(service).files.ofRun(id);
    expect(await files?.read(path)).toMatchObject({ content: expect.stringContaining(content.trim()) });
  });

  test("message and cancel are within reach of a thumb", async () => {
    const { page, service, go } = await seeded();
    await page.setViewportSize({ width: 390, height: 844 });
    for (const path of ["work", "review"]) {
      await go(`/runs/run_twelve/${path}`);
      const summary = page.locator(".thumb > summary");
      const { y = 0, height = 0 } = (await summary.boundingBox()) ?? {};
      expect([y > 700, height >= 44]).toEqual([true, true]);
      await summary.click();
      await page.getByLabel("Message the agent").waitFor();
      expect(await problemsOf(page)).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
    }
    await page.getByLabel("Message the agent").fill("mind the 🛰️ gap");
    await page.locator(".sheet").getByRole("button", { name: "Send" }).click();
    await page.waitForURL(/work$/);
    const told = await mine(service).read.recentEvents("run_twelve", {
      kinds: ["message_received"],
      limit: 1,
    });
    expect(told).toMatchObject([{ data: { text: "mind the 🛰️ gap" } }]);
    await page.locator(".thumb > summary").click();
    await page.locator(".sheet").getByText("Cancel run").click();
    await page.locator(".sheet").getByRole("button", { name: "Cancel the run" }).click();
    await page.getByRole("heading", { name: "The run was cancelled" }).waitFor();
    await page.locator(".thumb > summary").click();
    await page.locator(".sheet").getByRole("link", { name: "Continue with a message" }).click();
    await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("more");
  });
});

test("a message to a run that has ended stays in the box that continues it", async () => {
  const service = plainRuns();
  const { id } = await startRun(service, "hello");
  await reach(service, id, "completed");
  const visitor = await visit(linkTo(await openPages(service), id, "decide"));
  const { status, body } = await visitor.post(`${visitor.path}/tell`, { text: "too <late>" });
  expect(status).toBe(422);
  expect(body).toMatch(/id="more"[^>]*>\ntoo &#60;late&#62;<\/textarea>/);
  expect(body).toContain("The run has ended, so its agent did not read this.");
});
