import { isApproval } from "../../../src/runs/run.ts";
import { tool } from "@langchain/core/tools";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { calling, databaseFile, ME, mine, openServer, reach, startRun } from "../../runs/support.ts";
import { browser } from "./chromium.ts";
import { seededRuns } from "./seeded-runs.ts";
import { linkTo, openPages, waitingRun } from "./support.ts";

/** Patience is for slow machines: what is waited for comes at once. */
const eventually = <Value>(read: () => Value) => expect.poll(read);

/** For all that the browser does: as long as for a whole test. */
const PATIENCE_MS = 300_000;

/** What a browser did for one test. */
interface Tab {
  page: Page;
  /** Everything it asked for, with the referrer it told. */
  requests: { url: string; referer: string }[];
  /** Messages of the console: refusals of the policy and errors of scripts among them. */
  messages: string[];
}

// Without a browser there is nothing to test here; what does not need one is tested beside this file.
describe("in Chromium", { tags: "chromium" }, () => {
  const openAddress = browser();

  async function open(link: string): Promise<Tab> {
    const { page, messages } = await openAddress("about:blank");
    page.setDefaultTimeout(PATIENCE_MS);
    const tab: Tab = { page, requests: [], messages };
    page.on("request", (request) =>
      tab.requests.push({ url: request.url(), referer: request.headers()["referer"] ?? "" }),
    );
    await page.goto(link);
    await page.waitForURL(/\/runs\//);
    await page.locator("#screen").waitFor();
    return tab;
  }

  test("a person follows the link, reads what would happen, approves by keyboard and sees the end", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const pages = await openPages(service);
    const { page, requests, messages } = await open(linkTo(pages, runId, "decide"));
    expect(page.url()).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/runs/${runId}$`));
    await page.getByRole("heading", { name: "Call note" }).waitFor();
    await page.keyboard.press("a");
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(notes).toEqual(["a"]);
    await eventually(() => page.locator("[data-approval]").count()).toBe(0);
    await eventually(() => page.locator("#live-word").textContent()).toBe("Live");
    const { origin } = new URL(page.url());
    expect(requests.filter(({ url }) => new URL(url).origin !== origin)).toEqual([]);
    expect(requests.filter(({ referer }) => referer !== "")).toEqual([]);
    expect(messages).toEqual([]);
  });

  test("what a person is typing outlasts changes of the run, and other approvals come and go", async () => {
    const { service, runId } = await waitingRun("a", "b");
    const { page, messages } = await open(linkTo(await openPages(service), runId, "decide"));
    await eventually(() => page.locator("[data-approval]").count()).toBe(2);
    const [first, second] = (await mine(service).read.view(runId))?.requests.filter(isApproval) ?? [];
    const own = page.locator(`[data-approval="${first?.id ?? ""}"]`);
    await own.locator("[data-fold=reject] summary").click();
    await own.getByLabel("Reason").fill("wait for me");
    await own.getByLabel("Reason").blur();
    await mine(service).requests.answer(
      runId,
      { requestId: second?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    await eventually(() => page.locator("[data-approval]").count()).toBe(1);
    expect(await own.getByLabel("Reason").inputValue()).toBe("wait for me");
    expect(messages).toEqual([]);
  });

  test("the request that has the focus is updated like the others", async () => {
    const { service, runId, view } = await waitingRun("a", "b", "c");
    const { page } = await open(linkTo(await openPages(service), runId, "decide"));
    const [first, second] = view.requests.filter(isApproval).map(({ id }) => id);
    const own = page.locator(`[data-approval="${second ?? ""}"]`);
    await own.focus();
    expect(await own.locator(".ask-kicker .end").innerText()).toMatch(/^2 of 3/);
    await mine(service).requests.answer(
      runId,
      { requestId: first ?? "", answer: { type: "approve" } },
      "test",
    );
    await eventually(() => own.locator(".ask-kicker .end").innerText()).toMatch(/^1 of 2/);
    expect(await page.evaluate("document.activeElement?.dataset.approval")).toBe(second);
  });

  test("in a field, return decides nothing, and Ctrl and return press the button that it belongs to", async () => {
    const { service, runId } = await waitingRun("a");
    const { page } = await open(linkTo(await openPages(service), runId, "decide"));
    await page.keyboard.press("x");
    await page.keyboard.type("not now");
    await page.keyboard.press("Enter");
    await page.keyboard.type("and not here");
    await page.keyboard.press("Control+Enter");
    const view = await reach(service, runId, "completed");
    expect(view.requests.filter(isApproval)).toMatchObject([
      { answer: { type: "reject", message: "not now\nand not here" } },
    ]);
  });

  test("a text of many lines is edited as it is, and comes back unchanged when it is left alone", async () => {
    const kept: string[] = [];
    const content = "\n<first>\n\tsecond & last\n";
    const keep = tool(({ content: given }) => void kept.push(given), {
      name: "keep",
      description: "Keeps a text.",
      schema: z.object({ content: z.string(), place: z.string() }),
    });
    const call = { name: "keep", args: { content, place: "here" } };
    const { service } = openServer(databaseFile(), {
      model: calling(call, call),
      tools: [keep],
      interruptOn: { keep: true },
    });
    const { id } = await startRun(service, "keep it");
    await reach(service, id, "input_required");
    const { page } = await open(linkTo(await openPages(service), id, "decide"));
    await eventually(() => page.locator("[data-approval]").count()).toBe(2);
    await page.locator("[data-fold=edit] summary").first().click();
    expect(await page.locator("main").getByLabel("content").first().inputValue()).toBe(content);
    const shown = await page.locator("main").elementHandle();
    await page.getByRole("button", { name: "Approve", exact: true }).first().click();
    // The answer is a new screen.
    await shown?.waitForElementState("hidden");
    await eventually(() => page.locator("[data-approval]").count()).toBe(1);
    await page.locator("[data-fold=edit] summary").click();
    await page.locator("[data-mounted]").first().waitFor();
    await page.getByRole("textbox", { name: "content" }).fill(`${content}third`);
    await page.getByRole("button", { name: "Approve with changes" }).click();
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(kept.toSorted()).toEqual([content, `${content}third`]);
  });

  test("agents that have finished stay unfolded when the page changes, and after a reload", async () => {
    const { service, runs } = await seededRuns();
    const { page } = await open(linkTo(await openPages(service), runs.twelve, "decide"));
    await page.getByRole("link", { name: "Work", exact: true }).click();
    const finished = page.getByText("Check deploy/ and the crontab").first();
    expect(await finished.isVisible()).toBe(false);
    await page.locator("summary").getByText("4 finished").focus();
    await page.locator(".tl-fold > summary").press("Enter");
    await mine(service).control.tell(runs.twelve, { text: "look at the crontab again" });
    await page.locator("#act-h").locator("../..").getByText("look at the crontab again").waitFor();
    expect(await finished.isVisible()).toBe(true);
    await page.reload();
    await expect.poll(() => finished.isVisible()).toBe(true);
    await finished.click();
    await page.locator("a[aria-current]").getByText("Check deploy/ and the crontab").waitFor();
    await page.getByText("3 finished").waitFor();
  });

  test("on a phone one goes from folders to files and back, and looks at either", async () => {
    const { service, runs } = await seededRuns();
    const pages = await openPages(service);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide", first: runs.done }));
    await page.setViewportSize({ width: 390, height: 800 });
    await page.getByRole("navigation", { name: "Main, phone" }).getByText("Files").click();
    await page.getByRole("link", { name: "stations.md" }).click();
    await page.locator(".prose").getByText("Lerwick has no time zone.").waitFor();
    expect(await page.getByRole("link", { name: "pager.md" }).isVisible()).toBe(false);
    await page.getByRole("link", { name: "All files" }).click();
    await page.getByRole("link", { name: "pager.md" }).click();
    await page.locator(".prose").getByText("The pager answers within ten seconds").waitFor();
  });

  test("what has the focus in a request is not below its buttons", async () => {
    const { service, runs } = await seededRuns();
    const { page } = await open(linkTo(await openPages(service), runs.twelve, "decide"));
    await page.setViewportSize({ width: 1280, height: 500 });
    await page
      .getByRole("link", { name: /^Review/ })
      .first()
      .click();
    const command = page.getByRole("region", { name: "The command" });
    await page.locator("[data-approval]").first().focus();
    for (
      let presses = 0;
      presses < 12 && !(await command.evaluate("(e) => e === document.activeElement"));
      presses += 1
    )
      await page.keyboard.press("Tab");
    const [box, foot] = [await command.boundingBox(), await page.locator(".ask-foot").nth(1).boundingBox()];
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(foot?.y ?? 0);
  });

  test("another site can neither frame the page nor decide from its own forms", async () => {
    const { service, runId, view } = await waitingRun("a");
    const { page } = await open(linkTo(await openPages(service), runId, "decide"));
    const address = page.url();
    const { page: attacker } = await openAddress("about:blank");
    await attacker.route("http://attacker.example/**", (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<iframe src="${address}"></iframe>
          <form method="post" action="${address}/reply"><input name="request" value="${view.requests.filter(isApproval)[0]?.id ?? ""}">
          <button name="decision" value="approve">win</button></form>`,
      }),
    );
    await attacker.goto("http://attacker.example/");
    await eventually(() => attacker.frames()[1]?.url()).toMatch(/^chrome-error:/);
    const answer = attacker.waitForResponse(/\/reply$/);
    await attacker.getByRole("button", { name: "win" }).click();
    expect((await answer).status()).toBe(403);
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
  });
});
