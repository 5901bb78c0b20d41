import { isApproval } from "../../../src/runs/run.ts";
import { createCheckpointer } from "../../../src/storage/sqlite/checkpoints/checkpointer.ts";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import {
  mine,
  callingInTurn,
  connect,
  databaseFile,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { browser, problemsOf } from "./chromium.ts";
import { linkTo, openPages, visit } from "./support.ts";

const EVIL = `<img src=x onerror="document.title='owned'"> \u202E`;
const PATH = "/a.ts";
const lineOf = (number: number): string => (number === 20 ? EVIL : `const line${number} = ${number};`);
const numbered = (count: number): string =>
  Array.from({ length: count }, (_, index) => `${lineOf(index + 1)}\n`).join("");
const edit = (from: number) => ({
  name: "edit_file",
  args: { file_path: PATH, old_string: lineOf(from), new_string: `changed ${from}` },
});

/** A run that has written a file of so many lines, and waits to change two of them. */
async function waiting(lines = 60): Promise<{ service: RunService; id: string }> {
  const file = databaseFile();
  const checkpointer = createCheckpointer(connect(file));
  const write = { name: "write_file", args: { file_path: PATH, content: numbered(lines) } };
  const model = callingInTurn([write], [edit(10)], [edit(40)]);
  const agent = { model, checkpointer, interruptOn: { edit_file: true }, backend: StateBackend };
  const { service } = openServer(file, agent, { checkpoints: async () => checkpointer });
  const { id } = await startRun(service, "change it");
  await reach(service, id, "input_required");
  return { service, id };
}

async function approveNext(service: RunService, id: string): Promise<void> {
  const view = await mine(service).read.view(id);
  const open = view?.requests.filter(isApproval).find(({ status }) => status === "pending");
  await mine(service).requests.answer(id, { requestId: open?.id ?? "", answer: { type: "approve" } }, "test");
}

/** Lines of code in a page. */
const codeIn = (body: string): string[] =>
  [...body.matchAll(/<td class="cd">(.*?)<\/td>/g)].map(([, code = ""]) => code.replace(/<[^>]*>/g, ""));

/** Addresses of unchanged lines in a page. */
const linksIn = (body: string): string[] =>
  [...body.matchAll(/data-lines href="([^"]*)"/g)].map(([, address = ""]) =>
    address.replaceAll("&#38;", "&"),
  );

describe("unchanged lines", () => {
  test("of what waits are those of the file now, by their numbers", async () => {
    const { service, id } = await waiting();
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const [before = "", after = ""] = linksIn((await visitor.get(`${visitor.path}/review`)).body);
    expect(before).toContain("old=1&new=1&count=6");
    const first = await visitor.get(before);
    expect(first.status).toBe(200);
    expect(codeIn(first.body)).toEqual([1, 2, 3, 4, 5, 6].map(lineOf));
    const rest = await visitor.get(after);
    expect(rest.body).toContain("line60");
    expect(rest.body).not.toContain("<img");
    expect(rest.body).not.toContain("\u202E");
    const end = after.replace(/old=\d+&new=\d+/, "old=61&new=61");
    expect((await visitor.get(end)).body).toContain("The file ends here");
    for (const wrong of ["old=x&new=1&count=1", "old=-1&new=1&count=1", "", "old=1&new=1"]) {
      expect((await visitor.get(before.replace(/old=.*/, wrong))).status).toBe(404);
    }
    expect((await visitor.get(before.replace(/approval=[^&]*/, "approval=none"))).status).toBe(404);
    expect((await visitor.get(before.replace("count=6", "count=999999999"))).body).toContain("line60");
  });

  test("of what is done are there as long as the file is as the change left it", async () => {
    const { service, id } = await waiting();
    await approveNext(service, id);
    await expect
      .poll(async () => (await mine(service).read.view(id))?.requests.filter(isApproval).length)
      .toBe(2);
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const changes = `${visitor.path}/files${PATH}?view=history`;
    const [link = ""] = linksIn((await visitor.get(changes)).body);
    expect(codeIn((await visitor.get(link)).body)).toContain(lineOf(1));
    const approval = linksIn((await visitor.get(`${visitor.path}/review`)).body)[0] ?? "";
    await approveNext(service, id);
    await reach(service, id, "completed");
    expect((await visitor.get(approval)).status).toBe(404);
    const newest = linksIn((await visitor.get(changes)).body);
    expect(newest).not.toContain(link);
    expect(codeIn((await visitor.get(newest[0] ?? "")).body)).toContain("changed 10");
  });

  test("of all changes of a run as one are those of the file, against the file before the run", async () => {
    const file = databaseFile();
    const checkpointer = createCheckpointer(connect(file));
    const write = { name: "write_file", args: { file_path: PATH, content: numbered(60) } };
    const back = {
      name: "edit_file",
      args: { file_path: PATH, old_string: "changed 40", new_string: lineOf(40) },
    };
    const models = {
      first: callingInTurn([write]),
      second: callingInTurn([edit(10)], [edit(40)], [edit(12)], [back]),
    };
    const agent = ({ task }: { task: string }) => ({
      model: task === "first" ? models.first : models.second,
      checkpointer,
      backend: StateBackend,
    });
    const { service } = openServer(file, agent, { checkpoints: async () => checkpointer });
    const { id: first, threadId } = await startRun(service, "first");
    await reach(service, first, "completed");
    const { id } = await startRun(service, "second", { threadId });
    await reach(service, id, "completed");
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const { body } = await visitor.get(`${visitor.path}/files${PATH}?view=changes`);
    expect(body).toContain("against the file before this run");
    expect(body).toMatch(/\+2<\/span> <span class="minus">−2/);
    expect(codeIn(body).filter((line) => /changed|line1[02] /.test(line))).toEqual([
      lineOf(10),
      "changed 10",
      lineOf(12),
      "changed 12",
    ]);
    const [before = ""] = linksIn(body);
    expect(codeIn((await visitor.get(before)).body)).toContain(lineOf(1));
    const { body: history } = await visitor.get(`${visitor.path}/files${PATH}?view=history`);
    expect(codeIn(history)).toContain("changed 40");
    const { body: answer } = await visitor.get(`${visitor.path}/answer`);
    expect(answer).toMatch(/Files changed <span class="count">1<\/span>[^]*4 changes, /);
    expect(codeIn(answer)).not.toContain("changed 40");
    // Another run has changed the file since: its lines are not known any more, and the change still is.
    const { id: last } = await startRun(service, "first", { threadId });
    await reach(service, last, "completed");
    const { body: later } = await visitor.get(`${visitor.path}/files${PATH}?view=changes`);
    expect([codeIn(later).includes("changed 10"), linksIn(later)]).toEqual([true, []]);
  });

  test("of a long file come a thousand at a time", async () => {
    const { service, id } = await waiting(3000);
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const links = linksIn((await visitor.get(`${visitor.path}/review`)).body);
    const { body } = await visitor.get(links.at(-1) ?? "");
    expect(body.match(/<tr class="c">/g)).toHaveLength(1000);
    const [more = ""] = linksIn(body);
    expect(more).toContain("old=1014&new=1014&count=1987");
  });
});

describe("diffs in Chromium", { tags: "chromium" }, () => {
  const open = browser();
  const codeOf = (page: Page) => page.locator("[data-approval] .diff tr td.cd:not(.twin)").allTextContents();

  test("open unchanged lines in their place, and keep them", async () => {
    const { service, id } = await waiting();
    const { page, messages } = await open(linkTo(await openPages(service), id, "decide"));
    await page.getByRole("link", { name: "Show 6 unchanged lines" }).click();
    await expect.poll(() => codeOf(page)).toContain(lineOf(1));
    await page.getByRole("link", { name: "Show what follows" }).click();
    await expect.poll(() => codeOf(page)).toContain(lineOf(60));
    expect((await codeOf(page)).filter((line) => line.startsWith("<img"))).toHaveLength(1);
    await mine(service).control.tell(id, { text: "go on" });
    await mine(service).control.tell(id, { text: "and on" });
    await page.waitForTimeout(600);
    expect(await codeOf(page)).toHaveLength(61);
    expect(await problemsOf(page)).toEqual([]);
    expect(await page.title()).not.toContain("owned");
    expect(messages).toEqual([]);
  });

  test("stand beside each other if this browser wants it and there is room", async () => {
    const { service, id } = await waiting();
    const { page } = await open(linkTo(await openPages(service), id, "decide"));
    const at = async (row: string): Promise<{ x: number; y: number }> => {
      const { x = 0, y = 0 } =
        (await page.locator(`[data-approval] .diff ${row}`).first().boundingBox()) ?? {};
      return { x, y };
    };
    await page.getByRole("button", { name: "Split" }).click();
    const [removed, added] = [await at("tr.d"), await at("tr.a")];
    expect(added.y).toBe(removed.y);
    expect(added.x).toBeGreaterThan(removed.x + 200);
    const twin = page.locator("[data-approval] .diff tr.c .twin").first();
    expect(await twin.isVisible()).toBe(true);
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.reload();
    await twin.waitFor();
    expect(await page.getByRole("button", { name: "Split" }).getAttribute("aria-pressed")).toBe("true");
    await page.setViewportSize({ width: 900, height: 800 });
    expect((await at("tr.a")).y).toBeGreaterThan((await at("tr.d")).y);
    expect(await page.getByRole("button", { name: "Split" }).isVisible()).toBe(false);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("button", { name: "Unified" }).click();
    expect((await at("tr.a")).y).toBeGreaterThan((await at("tr.d")).y);
  });
});
