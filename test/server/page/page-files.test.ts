import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ME, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { browser, problemsOf } from "./chromium.ts";
import { ALARMS, EVIL_NAME, LONG_NAME, REPORT, TASK, fileRuns } from "./file-runs.ts";
import { linkTo, openPages, visit } from "./support.ts";

const addressOf = (path: string): string => path.split("/").map(encodeURIComponent).join("/");
const textOf = (html: string): string => html.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

test("the files of a run stay inside the run, with what it changed first", async () => {
  const { service, runId } = await fileRuns();
  const visitor = await visit(linkTo(await openPages(service), runId, "watch"));
  const { status, body } = await visitor.get(`/runs/${runId}/files`);
  expect(status).toBe(200);
  expect(body).toContain(`<h1 title="${TASK}">`);
  expect(body).toMatch(/href="\/runs\/[^"]*\/files"\s+aria-current="page"/);
  const sections = [
    ...body.slice(body.indexOf("<main")).matchAll(/<h2>([^<]+)(?:<span class="end">(\d+))?/g),
  ].map(([, title = "", count = ""]) => `${title} ${count}`.trim());
  const ofRun = ["Changed by this run 3", "Notes of this conversation 1", "Remembered by this run 1"];
  expect(sections).toEqual([...ofRun, "All files", "Choose a file"]);
  const marks = [...body.matchAll(/<span class="cut">([^<]*)<\/span\s*><span class="m (\w+)"/g)].map(
    ([, name, mark]) => [name, mark],
  );
  expect(marks).toEqual([
    ["报告 🛰️.md", "added"],
    ["alarms.js", "modified"],
    ["old.test.js", "deleted"],
    ["findings.json", "added"],
    ["how-to-test.md", "added"],
  ]);
  // The whole workspace is folded.
  expect(body).not.toContain(LONG_NAME);
});

test("a changed file says who changed it and who approved that", async () => {
  const { service, runId } = await fileRuns();
  const pages = await openPages(service);
  const all = await visit(pages.link({ principal: ME, purpose: "decide" }));
  const inRun = textOf((await all.get(`/runs/${runId}/files/workspace/src/alarms.js`)).body);
  expect(inRun).toContain("62 lines, 1.1 kB");
  expect(inRun).toMatch(/Changed by Main agent , \d\d:\d\d approved by you, on this page \+1 −1/);
  const shared = textOf((await all.get("/files/workspace/src/alarms.js")).body);
  expect(shared).toMatch(new RegExp(`Changed by ${TASK} , .* approved by you, on this page \\+1 −1`));
  const unapproved = textOf((await all.get(`/files${addressOf(REPORT)}`)).body);
  expect(unapproved).toContain(`Changed by ${TASK}`);
  expect(unapproved).not.toContain("approved");
  const memory = (await all.get("/files/memories/tide-alarms/how-to-test.md?view=changes")).body;
  expect(textOf(memory)).toContain(`Changed by ${TASK}`);
  expect(memory).toMatch(/<tr class="a">[^]*node --test/);
});

test("runs that work in another folder have not changed the files of this one", async () => {
  const { service } = await fileRuns();
  const pages = await openPages(service, undefined, { isHere: () => false });
  const visitor = await visit(pages.link({ principal: ME, purpose: "watch" }));
  expect((await visitor.get("/files/workspace/src/alarms.js")).body).not.toContain("Changed by");
  expect((await visitor.get("/files/memories/tide-alarms/how-to-test.md")).body).toContain("Changed by");
});

test("files are searched by name and by content, whatever the case", async () => {
  const { service, runId } = await fileRuns();
  const pages = await openPages(service);
  const visitor = await visit(pages.link({ principal: ME, purpose: "watch" }));
  const { body } = await visitor.get("/files?q=ALARM");
  const links = [...body.matchAll(/class="(?:link anywhere|line)" data-row href="([^"]*)"/g)].map(
    ([, to]) => to,
  );
  expect(links).toEqual([
    "/files/workspace/src/alarms.js",
    "/files/workspace/deploy/crontab",
    "/files/workspace/deploy/crontab#L1",
    "/files/workspace/docs/operations.md",
    "/files/workspace/docs/operations.md#L3",
    "/files/workspace/src/alarms.js",
    "/files/workspace/src/alarms.js#L1",
    "/files/memories/people.md",
  ]);
  expect(body).toContain("An <mark>Alarm</mark> reaches");
  expect(body).toContain("about &#60;ALARM&#62;");
  expect(body).toContain("Memories were searched by words.");
  expect((await visitor.get(`/files?q=${encodeURIComponent("报告")}`)).body).toContain(addressOf(REPORT));
  for (const text of ["[", "***", "{a,b}", "\\", "!(x)", "nothing has this"]) {
    const found = await visitor.get(`/runs/${runId}/files?q=${encodeURIComponent(text)}`);
    expect([found.status, found.body.includes("No files match your search.")], text).toEqual([200, true]);
  }
});

test("every name has an address, and no address leads out of the files", async () => {
  const { service, runId, rootDir } = await fileRuns();
  writeFileSync(join(rootDir, "..", "outside.txt"), "secret of the machine");
  const pages = await openPages(service);
  const visitor = await visit(pages.link({ principal: ME, purpose: "watch" }));
  const tree = (await visitor.get("/files/workspace/src/")).body;
  expect(tree).toContain(`/files/workspace/src/${encodeURIComponent(EVIL_NAME)}"`);
  expect(tree).not.toContain("<img");
  const evil = await visitor.get(`/files/workspace/src/${encodeURIComponent(EVIL_NAME)}`);
  expect(evil.body).toContain('<td class="cd">evil</td>');
  const outside = ["workspace/..%2foutside.txt", "workspace/%2e%2e%2foutside.txt"];
  const paths = [...outside.map((path) => `/files/${path}`), "/files/%ff"];
  for (const path of [...paths, `/runs/${runId}/files/..%2f..%2fetc/passwd`]) {
    for (const query of ["", "?as=text"]) {
      const { body } = await visitor.get(path + query);
      expect(body, path).not.toMatch(/secret of the machine|root:/);
    }
  }
  expect((await visitor.get("/runs/run_none/files/a.md")).status).toBe(404);
  expect((await visitor.get("/files/workspace/none.txt?as=text")).status).toBe(404);
});

test("the text of a file is given as it is, to sessions alone", async () => {
  const { service, runId } = await fileRuns();
  const pages = await openPages(service);
  const visitor = await visit(linkTo(pages, runId, "watch"));
  const path = `/runs/${runId}/files/workspace/src/alarms.js?as=text`;
  const { status, body, headers } = await visitor.get(path);
  expect([status, body]).toEqual([200, ALARMS.replace("alarm = 1", "alarm = 3")]);
  expect(headers["content-type"]).toBe("text/plain; charset=utf-8");
  const stranger = await fetch(visitor.origin + path);
  expect(await stranger.text()).not.toContain("alarm");
  expect((await visitor.get("/files/workspace/src/alarms.js?as=text")).status).not.toBe(200);
});

test("a run that changed nothing says so", async () => {
  const { service } = openServer(databaseFile(), { model: scriptedModel(() => ({ text: "seen" })) });
  const { id } = await startRun(service, "only look");
  await reach(service, id, "completed");
  const visitor = await visit(linkTo(await openPages(service), id, "watch"));
  expect((await visitor.get(`/runs/${id}/files`)).body).toContain("This run has not changed any files.");
});

describe("files in Chromium", { tags: "chromium" }, () => {
  const open = browser({ permissions: ["clipboard-read", "clipboard-write"] });

  test("folders open in their place, and are open again in the next screen", async () => {
    const { service } = await fileRuns();
    const pages = await openPages(service);
    const { page, messages } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.goto(new URL("/files", pages.address).href);
    const tree = page.getByRole("navigation", { name: "Files" });
    await tree.getByRole("link", { name: "src" }).click();
    await tree.getByRole("link", { name: "deep" }).click();
    await tree.getByRole("link", { name: "er", exact: true }).click();
    await tree.getByRole("link", { name: "docs" }).click();
    await tree.getByRole("link", { name: "docs" }).click();
    expect(await tree.getByRole("link", { name: "docs" }).getAttribute("aria-expanded")).toBe("false");
    await tree.getByRole("link", { name: "alarms.js" }).click();
    await page.waitForURL(/alarms\.js$/);
    await tree.getByRole("link", { name: "station.ts" }).waitFor();
    expect(await tree.getByRole("link", { name: "operations.md" }).isVisible()).toBe(false);
    await expect.poll(() => page.locator("code-text[data-mounted]").count()).toBe(1);
    expect(await page.locator("code-text").textContent()).toContain("潮汐\\u200b");
    expect(await problemsOf(page)).toEqual([]);
    expect(messages.filter((message) => !message.includes("axe"))).toEqual([]);
  });

  test("a search leads to the line", async () => {
    const { service } = await fileRuns();
    const pages = await openPages(service);
    const { page } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.goto(new URL("/files", pages.address).href);
    await page.locator("#screen").waitFor();
    const box = page.locator('main input[name="q"]');
    await box.fill("last");
    await box.press("Enter");
    await page.getByRole("link", { name: "62 last" }).click();
    await page.waitForURL(/alarms\.js#L62$/);
    await expect.poll(() => page.locator("#L62").evaluate((row) => row.matches(":target"))).toBe(true);
    expect(await page.locator("#L62").isVisible()).toBe(true);
  });

  test("path, content and diff are copied as they are, and a tick says so", async () => {
    const { service, runId } = await fileRuns();
    const { page } = await open(linkTo(await openPages(service), runId, "watch"));
    await page.waitForURL(/\/runs\//);
    const base = `${new URL(page.url()).origin}/runs/${runId}`;
    await page.goto(`${base}/files/workspace/src/alarms.js`);
    const copied = async (name: string): Promise<string> => {
      const button = page.getByRole("button", { name });
      const before = await button.boundingBox();
      await button.click();
      await page.locator("#spoken").getByText("Copied", { exact: true }).waitFor({ state: "attached" });
      expect(await button.locator("use").getAttribute("href")).toBe("#i-tick");
      expect((await button.boundingBox())?.width).toBe(before?.width);
      await expect.poll(() => button.locator("use").getAttribute("href")).toBe("#i-copy");
      return page.evaluate<string>("navigator.clipboard.readText()");
    };
    expect(await copied("Copy path")).toBe("/workspace/src/alarms.js");
    expect(await copied("Copy content")).toBe(ALARMS.replace("alarm = 1", "alarm = 3"));
    await page.getByRole("link", { name: "Changes", exact: true }).click();
    const diff = await copied("Copy diff");
    expect(diff).toContain(
      "--- /workspace/src/alarms.js\n+++ /workspace/src/alarms.js\n@@ -1,4 +1,4 @@\n-export const alarm = 1;",
    );
    await page.getByRole("link", { name: "Main agent" }).click();
    await page.waitForURL(`${base}/work`);
  });
});
