import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ME, reach, replaceIn, startRun } from "../../runs/support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { ALARMS, EVIL_NAME, LONG_NAME, REPORT, TASK, fileRuns } from "./file-runs.ts";
import { linkTo, openPages, visit } from "./support.ts";

const EVIL_TASK = `<img src=x onerror=alert(1)> "alarm" ${"a-task-without-an-end-".repeat(20)} 検潮所 🛰️ \u202Eend`;

/** Runs with such tasks that wait for a person, besides the one that changed files. */
async function searched(...tasks: string[]) {
  const made = await fileRuns();
  // The edit of the first run is one again that a person can be asked about.
  writeFileSync(join(made.rootDir, "src/alarms.js"), ALARMS);
  for (const task of tasks) {
    const { id } = await startRun(made.service, task);
    await reach(made.service, id, "input_required");
  }
  const pages = await openPages(made.service);
  return { ...made, pages };
}

/** The names of the results by kind. */
const groupsOf = (body: string): Record<string, string[]> =>
  Object.fromEntries(
    [...body.matchAll(/role="group" aria-label="(\w+)">([^]*?)<\/section>/g)].map(([, kind, group = ""]) => [
      kind,
      [...group.matchAll(/<a\s+class="hit[^>]*>([^]*?)<\/a\s*>/g)].map(([, hit = ""]) =>
        hit
          .replace(/<small[^]*?<\/small\s*>|<span class="end">[^]*|<span class="hide">[^]*?<\/span\s*>/g, "")
          .replace(/<[^>]*>/g, "")
          .trim(),
      ),
    ]),
  );

test("one search finds runs, files, memories and commands, names before contents", async () => {
  const { pages } = await searched(EVIL_TASK, "Something else");
  const visitor = await visit(pages.link({ principal: ME, purpose: "decide" }));
  const { status, body } = await visitor.get("/search?q=ALARM");
  expect(status).toBe(200);
  const { Runs, ...others } = groupsOf(body);
  expect(Runs).toHaveLength(2);
  expect(Runs?.[1]).toBe(TASK);
  expect(Runs?.[0]).toMatch(/^&#60;img src=x onerror=alert\(1\)&#62; &#34;alarm&#34; a-task/);
  expect(others).toEqual({
    Files: ["src/alarms.js", "deploy/crontab", "docs/operations.md"],
    Memories: ["people.md"],
    Commands: ["Start a run with “ALARM”"],
  });
  expect(body).toContain("<mark>alarm</mark>");
  expect(body).toContain(`“An <mark>Alarm</mark> reaches the officer.”`);
  expect(body).toContain('href="/files/workspace/docs/operations.md#L3"');
  expect(body).toContain("about &#60;<mark>ALARM</mark>&#62;");
  expect(body).not.toMatch(/<img|\u202E/);
  const named = groupsOf((await visitor.get("/search?q=ALARM&part=names")).body);
  expect(Object.keys(named)).toEqual(["Runs", "Files", "Commands"]);
  expect(named["Files"]).toEqual(["src/alarms.js"]);
});

test("names in other scripts and with markup are found and have addresses", async () => {
  const { pages } = await searched();
  const visitor = await visit(pages.link({ principal: ME, purpose: "watch" }));
  for (const [text, address] of [
    ["报告 🛰️", REPORT],
    [LONG_NAME.slice(0, 150), `/workspace/src/${LONG_NAME}`],
    ["<img src=x>#%2F?", `/workspace/src/${EVIL_NAME}`],
  ] as const) {
    const { body } = await visitor.get(`/search?q=${encodeURIComponent(text)}`);
    const encoded = address.split("/").map(encodeURIComponent).join("/");
    expect(body, text).toContain(`href="/files${encoded}"`);
    expect(body).not.toContain("<img");
  }
  for (const text of ["", "[", "***", "{a,b}", "\\", "%", "\u0000", "\ud800", "a".repeat(5000)]) {
    expect((await visitor.get(`/search?q=${encodeURIComponent(text.toWellFormed())}`)).status).toBe(200);
  }
});

test("nothing is counted that was not searched", async () => {
  const { pages } = await searched("Something else");
  const visitor = await visit(pages.link({ principal: ME, purpose: "decide" }));
  const kindsAt = async (path: string): Promise<string[]> =>
    [...(await visitor.get(path)).body.matchAll(/<a href="\/search\?[^>]*>([^<]*)<\/a/g)].map(
      ([, name = ""]) => name,
    );
  expect(await kindsAt("/search")).toEqual([
    "All",
    "Runs 2",
    "Files",
    "Memories",
    expect.stringMatching(/^Commands \d/),
  ]);
  expect((await kindsAt("/search?q=ALARM&part=names")).slice(2, 4)).toEqual(["Files 1+", "Memories 0+"]);
  expect((await kindsAt("/search?q=ALARM")).slice(2, 4)).toEqual(["Files 3", "Memories 1"]);
  expect((await visitor.get("/search?kind=files")).body).not.toContain("found for");
});

test("more than five of a kind are behind “Show all”, and a kind can be shown alone", async () => {
  const { pages, rootDir } = await searched();
  for (let at = 0; at < 70; at += 1) writeFileSync(join(rootDir, `gauge-${at}.txt`), "level\n");
  const visitor = await visit(pages.link({ principal: ME, purpose: "watch" }));
  const { body } = await visitor.get("/search?q=gauge");
  expect(groupsOf(body)["Files"]).toHaveLength(6);
  expect(groupsOf(body)["Files"]?.[5]).toBe("Show all 50+");
  expect(body).toMatch(/Files 50\+<\/a/);
  const files = groupsOf((await visitor.get("/search?q=gauge&kind=files")).body);
  expect(Object.keys(files)).toEqual(["Files"]);
  expect(files["Files"]).toHaveLength(50);
});

test("a search without results says where it looked, and offers a start only to who may start", async () => {
  const { pages, service, runId } = await searched();
  replaceIn(service, "files", () => ({ searchMemories: async () => ({ hits: [] }) }));
  const decides = await visit(pages.link({ principal: ME, purpose: "decide" }));
  const { body } = await decides.get("/search?q=barometer");
  expect(body).toContain("Nothing found for “barometer”");
  expect(body).toContain(
    "Searched 1 run, the files in workspace, and memories. Hidden files are not searched.",
  );
  expect(body).toContain('href="/?task=barometer#task"');
  const home = (await decides.get("/?task=%3Cb%3Ebarometer")).body;
  expect(home).toMatch(/<textarea id="task"[^>]*>\n&#60;b&#62;barometer<\/textarea>/);
  const looks = await visit(pages.link({ principal: ME, purpose: "watch" }));
  expect((await looks.get("/search?q=barometer")).body).not.toContain("Start a run");
  // A session of one run sees nothing else, so it has no search.
  const ofRun = await visit(linkTo(pages, runId, "watch"));
  expect((await ofRun.get("/search?q=alarm")).body).not.toContain(TASK);
  expect((await ofRun.get(`/runs/${runId}`)).body).not.toContain("data-find");
});

describe("the search box in Chromium", { tags: "chromium" }, () => {
  const open = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  async function opened(...tasks: string[]) {
    const made = await searched(...tasks);
    const { page, messages } = await open(made.pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(made.pages.address);
    await page.locator("#screen").waitFor();
    return { ...made, page, messages };
  }
  const field = (page: Page) => page.getByRole("combobox");
  const active = (page: Page) => page.evaluate<string>("document.activeElement.id");
  const chosen = (page: Page) => page.locator("[role=option][aria-selected=true]");

  test("it opens over the page, is used with keys alone, and gives the focus back", async () => {
    const { page, messages } = await opened(EVIL_TASK, "Read the tide tables");
    await page.getByLabel("New task").focus();
    await page.keyboard.press("Control+k");
    expect(await active(page)).toBe("query");
    await expect.poll(() => chosen(page).textContent()).toContain("Read the tide tables");
    await page.keyboard.type("alarm");
    await expect
      .poll(() => page.locator(".finder-list h2").allTextContents())
      .toEqual(["Runs", "Files", "Memories", "Commands"]);
    expect(await page.locator(".finder").evaluate((box) => [box.clientWidth, box.clientHeight])).toEqual([
      678, 558,
    ]);
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await expect.poll(() => chosen(page).textContent()).toContain("<img src=x");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    expect(await chosen(page).textContent()).toContain("src/alarms.js");
    const id = await field(page).getAttribute("aria-activedescendant");
    expect(await page.locator(`#${id}`).textContent()).toContain("src/alarms.js");
    await page.keyboard.press("Tab");
    await expect.poll(() => page.locator(".finder-list h2").allTextContents()).toEqual(["Runs"]);
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Escape");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    expect(await active(page)).toBe("task");
    await page.locator("h1").click();
    await page.getByLabel("New task").blur();
    await page.keyboard.press("/");
    await page.keyboard.type("operations");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/files\/workspace\/docs\/operations\.md$/);
    expect(messages).toEqual([]);
  });

  test("without results it offers to start a run with these words, in the task's own box", async () => {
    const { page, service } = await opened();
    replaceIn(service, "files", () => ({ searchMemories: async () => ({ hits: [] }) }));
    await page.getByLabel("New task").fill("half a thought");
    await page.locator("[data-find]").click();
    await page.keyboard.type("検潮所 barometer");
    await page.getByText("Nothing found for “検潮所 barometer”").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\?task=/);
    await expect.poll(() => page.getByLabel("New task").inputValue()).toBe("検潮所 barometer");
    await page.goto(new URL("/", page.url()).href);
    await expect.poll(() => page.getByLabel("New task").inputValue()).toBe("half a thought");
  });

  test("it is a page of its own too, and an answer to an earlier text never replaces a later one", async () => {
    const { page, pages } = await opened();
    await page.goto(new URL("/search?q=alarm", pages.address).href);
    await page.locator(".hit").first().waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await page.route(/q=tide&part=names/, async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 600));
      await route.continue().catch(() => undefined);
    });
    await field(page).fill("tide");
    await page.waitForTimeout(150);
    await field(page).fill("crontab");
    await page.waitForURL(/q=crontab/);
    await page.waitForTimeout(800);
    expect(await chosen(page).textContent()).toContain("deploy/crontab");
  });

  test("the list of runs is searched while one types, and its form works as before", async () => {
    const { page, service } = await opened("Measure the harbour", EVIL_TASK);
    await page.getByLabel("New task").fill("half a thought");
    await page.getByLabel("Search runs", { exact: true }).pressSequentially("harbour");
    await expect.poll(() => page.locator(".run-row .t").allTextContents()).toEqual(["Measure the harbour"]);
    expect(page.url()).toMatch(/\/\?q=harbour$/);
    expect(await page.getByLabel("Search runs", { exact: true }).inputValue()).toBe("harbour");
    // It follows the list that is shown now.
    await startRun(service, "Another harbour");
    await expect.poll(() => page.locator(".run-row .t").count()).toBe(2);
    await page.getByLabel("Search runs", { exact: true }).fill("nothing has this");
    await page.getByText("No runs match your search").waitFor();
    await page.getByLabel("Search runs", { exact: true }).fill("");
    await expect.poll(() => page.locator(".run-row .t").count()).toBe(4);
    expect(page.url()).toMatch(/\/$/);
    expect(await page.getByLabel("New task").inputValue()).toBe("half a thought");
    await page.getByLabel("Search runs", { exact: true }).press("Enter");
    expect(page.url()).toMatch(/\/$/);
  });
});
