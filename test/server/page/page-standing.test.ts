/** The page says what is: who works and who waits, what an approval led to, and the tab that a person reads. */
import { isApproval } from "../../../src/runs/run.ts";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import {
  APPROVE,
  ME,
  mine,
  callingInTurn,
  databaseFile,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { filesIn } from "../../support/files-in.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";
import { approvalRuns } from "../support.ts";
import { browser } from "./chromium.ts";
import { linkTo, openPages, visit, waitingRun } from "./support.ts";

const textOf = (html: string): string =>
  html
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();
const section = (body: string, begin: RegExp): string =>
  new RegExp(`${begin.source}[^]*?</section>`).exec(body)?.[0] ?? "";

/** A run whose calls change a real folder, each after an approval. */
async function changingRun(...replies: ScriptedToolCall[][]) {
  const rootDir = filesIn();
  writeFileSync(join(rootDir, "a.txt"), "one\n");
  const files = new FilesystemBackend({ rootDir, virtualMode: true });
  const { service } = openServer(databaseFile(), {
    model: callingInTurn(...replies),
    backend: () => new CompositeBackend(new StateBackend(), { "/workspace/": files }),
    interruptOn: { edit_file: true, write_file: true },
  });
  const { id } = await startRun(service, "Change a file");
  return { service, id, at: (name: string) => join(rootDir, name) };
}

const edit = (from: string, to: string): ScriptedToolCall => ({
  name: "edit_file",
  args: { file_path: "/workspace/a.txt", old_string: from, new_string: to },
});
const write = (content: string): ScriptedToolCall => ({
  name: "write_file",
  args: { file_path: "/workspace/a.txt", content },
});

test("a call that can only fail asks nobody, and the summary of a change is shown", async () => {
  const { service, id } = await changingRun([write("two\n")], [edit("one", "two")]);
  const approvals = (await reach(service, id, "input_required")).requests.filter(isApproval);
  expect(approvals.map(({ tool }) => tool)).toEqual(["edit_file"]);
  const visitor = await visit(linkTo(await openPages(service), id, "decide"));
  const { body } = await visitor.get(`/runs/${id}/review`);
  expect(textOf(body)).toContain("Edit /workspace/a.txt (1 occurrence)");
});

test("a change whose file changed after the approval is asked about again, which the page says in both places", async () => {
  const { service, id, at } = await changingRun([edit("one", "two")]);
  const [first] = (await reach(service, id, "input_required")).requests.filter(isApproval);
  writeFileSync(at("a.txt"), "one and more\n");
  await mine(service).requests.answer(id, { requestId: first?.id ?? "", answer: APPROVE }, "page");
  await expect
    .poll(async () => (await mine(service).read.view(id))?.requests.filter(isApproval).length)
    .toBe(2);
  const approvals = (await reach(service, id, "input_required")).requests.filter(isApproval);
  expect(readFileSync(at("a.txt"), "utf8")).toBe("one and more\n");
  const visitor = await visit(linkTo(await openPages(service), id, "decide"));
  const { body } = await visitor.get(`/runs/${id}/review`);
  expect(textOf(body)).toContain("Asked again: the file changed after the approval, so nothing was done");
  const past = section(body, /<section class="past-box"/);
  expect(textOf(past)).toMatch(
    /Approved on the page, \d\d:\d\d ?; the file had changed, so it was asked again/,
  );
  expect(past).toContain("#i-again");
  expect(past).not.toContain("#i-done");
  await mine(service).requests.answer(id, { requestId: approvals[1]?.id ?? "", answer: APPROVE }, "page");
  await reach(service, id, "completed");
  const after = section((await visitor.get(`/runs/${id}/review`)).body, /<section class="past-box"/);
  expect([after.split("#i-again").length, after.split("#i-done").length]).toEqual([2, 2]);
});

test("a flag of a region in a task is one flag on every screen", async () => {
  const england = "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
  const { service } = approvalRuns(note("a"));
  const { id } = await startRun(service, `Call the ${england} team`);
  await reach(service, id, "input_required");
  const visitor = await visit((await openPages(service)).link({ principal: ME, purpose: "decide" }));
  for (const path of ["/", "/search", "/review", `/runs/${id}/work`]) {
    const { body } = await visitor.get(path);
    expect(body).toContain(`the ${england} team`);
    expect(body).not.toContain("udb40");
  }
});

/** A run whose main agent starts so many agents, each of which asks once and then ends. */
async function askingAgents(count: number) {
  const notes: string[] = [];
  const task = (index: number): ScriptedToolCall => ({
    id: `task_${index}`,
    name: "task",
    args: { description: `Part ${index}`, subagent_type: "general-purpose" },
  });
  const model = scriptedModel(({ messages }) => {
    const part = /^Part (\d)/.exec(messages.find(({ type }) => type === "human")?.text ?? "")?.[1];
    if (messages.at(-1)?.type === "tool") return { text: "Done." };
    if (part !== undefined) return { toolCalls: [note(part)] };
    return { toolCalls: Array.from({ length: count }, (_, index) => task(index)) };
  });
  const { service } = openServer(databaseFile(), {
    model,
    tools: [noteTool(notes)],
    interruptOn: { note: true },
  });
  const { id } = await startRun(service, "Do all parts");
  await expect
    .poll(async () => (await mine(service).read.view(id))?.requests.filter(isApproval).length, {
      timeout: 30_000,
    })
    .toBe(count);
  return { service, id, view: await reach(service, id, "input_required") };
}

test("agents that all wait for a person are not shown at work, nor is the one that waits for them", async () => {
  const { service, id, view } = await askingAgents(3);
  const pages = await openPages(service);
  const visitor = await visit(linkTo(pages, id, "decide"));
  const work = (await visitor.get(`/runs/${id}/work`)).body;
  const steps = section(work, /<ol class="steps"/);
  expect(textOf(steps)).toMatch(/3 subagents started \d\d:\d\d 3 waiting/);
  expect(textOf(work)).toContain("Waiting for its agents: Main agent");
  expect(work.slice(work.indexOf("<main"))).not.toContain("#i-work");
  expect(textOf(work)).not.toContain("At work:");
  const all = await visit(pages.link({ principal: ME, purpose: "decide" }));
  expect(textOf((await all.get("/")).body)).toContain("0 at work, 3 requests need your attention");
  for (const { id: approval } of view.requests.filter(isApproval))
    await mine(service).requests.answer(id, { requestId: approval, answer: APPROVE }, "test");
  await reach(service, id, "completed");
  const done = section((await visitor.get(`/runs/${id}/work`)).body, /<ol class="steps"/);
  expect(textOf(done)).not.toMatch(/waiting|at work/);
});

test("a run that has ended has no step of its plan in progress, and one at a limit no green sign", async () => {
  const todos = [
    { content: "Look", status: "completed" },
    { content: "Change", status: "in_progress" },
  ];
  const model = callingInTurn([{ name: "write_todos", args: { todos } }], [note("a")], [note("b")]);
  const { service } = openServer(databaseFile(), {
    model,
    tools: [noteTool([])],
    limits: { maxIterations: 2 },
  });
  const { id } = await startRun(service, "Follow a plan");
  expect((await reach(service, id, "completed")).run.stopReason).toBeDefined();
  const visitor = await visit(linkTo(await openPages(service), id, "watch"));
  const { body } = await visitor.get(`/runs/${id}/work`);
  const plan = section(body, /<h2>Plan/);
  expect(textOf(plan)).toMatch(/1 of 2 Done: Look To do: Change/);
  const agent = section(body, /<section class="panel" id="agent"/);
  expect(agent).toContain("Stopped at a limit: ");
  expect(agent.split("</div>")[0]).not.toContain("#i-done");
});

describe("the tab that a person reads, in Chromium", { tags: "chromium" }, () => {
  const open = browser();

  test.each(["", "/review"])(
    "at /runs/ID%s stays Review while requests are decided, here and elsewhere",
    async (tab) => {
      const { service, runId, view } = await waitingRun("a", "b", "c");
      const pages = await openPages(service);
      const { page } = await open(linkTo(pages, runId, "decide"));
      await page.waitForURL(/\/runs\//);
      if (tab !== "") await page.goto(`${new URL(page.url()).origin}/runs/${runId}${tab}`);
      const current = () => page.locator(".tabs [aria-current=page]").innerText();
      const focused = () => page.evaluate<string | undefined>("document.activeElement?.dataset.approval");
      const [first, second, third] = view.requests.filter(isApproval).map(({ id }) => id);
      await expect.poll(focused).toBe(first);
      await page.keyboard.press("a");
      await expect.poll(focused).toBe(second);
      expect(await current()).toMatch(/^Review/);
      // A key that is pressed now is for the request, and leads nowhere else.
      await page.keyboard.press("x");
      await page.keyboard.type("no news");
      expect(new URL(page.url()).pathname).toBe(`/runs/${runId}/review`);
      await page.keyboard.press("Control+Enter");
      await expect.poll(focused).toBe(third);
      await mine(service).requests.answer(runId, { requestId: third ?? "", answer: APPROVE }, "test");
      await reach(service, runId, "completed");
      await expect.poll(() => page.locator("[data-approval]").count()).toBe(0);
      await page.getByText("Completed", { exact: true }).waitFor();
      expect(await current()).toMatch(/^Review/);
    },
  );

  test("is left alone when the run waits, goes on and ends", async () => {
    const { service, runId, view } = await waitingRun("a");
    const pages = await openPages(service);
    const { page } = await open(linkTo(pages, runId, "decide"));
    await page.waitForURL(/\/runs\//);
    await page.locator(".tabs").waitFor();
    const current = () => page.locator(".tabs [aria-current=page]").innerText();
    expect(await current()).toMatch(/^Review/);
    await mine(service).requests.answer(
      runId,
      { requestId: view.requests.filter(isApproval)[0]?.id ?? "", answer: APPROVE },
      "test",
    );
    await page.getByText("Completed", { exact: true }).waitFor();
    expect(await current()).toMatch(/^Review/);
    await page.getByRole("link", { name: "Answer" }).waitFor();
    await page
      .getByRole("button", { name: "More about this run" })
      .or(page.locator("#run-menu > summary"))
      .first()
      .click();
    await page.getByRole("button", { name: "Rename…" }).click();
    await page.locator("#run-name").fill("Another name");
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    await page.getByRole("heading", { name: "Another name" }).waitFor();
    expect(await current()).toMatch(/^Review/);
  });
});
