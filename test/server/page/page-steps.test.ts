import { isApproval } from "../../../src/runs/run.ts";
import { tool } from "@langchain/core/tools";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { RunService } from "../../../src/runs/service.ts";
import { createCheckpointer } from "../../../src/storage/sqlite/checkpoints/checkpointer.ts";
import {
  mine,
  approve,
  cleanUpWith,
  connect,
  databaseFile,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { type ScriptedToolCall, scriptedModel } from "../../support/scripted-model.ts";
import { browser, problemsOf } from "./chromium.ts";
import { linkTo, openPages, visit } from "./support.ts";

const EVIL = `<img src=x onerror="document.title='owned'"></pre><script>document.title='owned'</script> \u202E`;

/** What the next call of `say` waits for. */
const gates: Promise<void>[] = [];

/** Its agent makes these calls one after the other; subagents say and note something each. */
function stepRuns(...calls: ScriptedToolCall[]): RunService {
  const file = databaseFile();
  const checkpointer = createCheckpointer(connect(file));
  const model = scriptedModel(({ messages }) => {
    const done = messages.filter(({ type }) => type === "tool").length;
    if (messages.some(({ text }) => text.startsWith("subtask")))
      return (
        [
          { toolCalls: [{ name: "say", args: { text: "inside ", times: 3 } }] },
          { toolCalls: [note("inside")] },
          { text: "# Report\n\nIt is **noted**." },
        ][done] ?? {}
      );
    const call = calls[done];
    return call === undefined ? { text: "done" } : { toolCalls: [call] };
  });
  const say = tool(
    async ({ text, times }) => {
      await gates.pop();
      return text.repeat(times);
    },
    {
      name: "say",
      description: "Says a text.",
      schema: z.object({ text: z.string(), times: z.number() }),
    },
  );
  const agent = { model, tools: [noteTool([]), say], interruptOn: { note: true }, checkpointer };
  return openServer(file, agent, { checkpoints: async () => checkpointer }).service;
}

async function ended(...calls: ScriptedToolCall[]): Promise<{ service: RunService; id: string }> {
  const service = stepRuns(...calls);
  const { id } = await startRun(service, "go");
  await reach(service, id, "completed");
  return { service, id };
}

/** Numbers of the events with which calls of a tool began, oldest first. */
async function startsOf(service: RunService, run: string, name: string): Promise<number[]> {
  const events = (await mine(service).read.events(run)) ?? [];
  return events.flatMap((event) =>
    event.kind === "tool_started" && event.data.tool === name ? [event.seq] : [],
  );
}

describe("the whole of a step", () => {
  test("has the arguments and the result as they were, also when the thread was packed", async () => {
    const text = `${"long ".repeat(400)}\n${EVIL}`;
    const { service, id } = await ended(
      { name: "write_file", args: { file_path: "/a.ts", content: text } },
      { name: "say", args: { text: "x", times: 1 } },
    );
    const [seq = 0] = await startsOf(service, id, "write_file");
    expect(await mine(service).read.callTexts(id, seq)).toMatchObject({
      tool: "write_file",
      args: { file_path: "/a.ts", content: text },
      result: { isError: false },
    });
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const { status, body } = await visitor.get(`${visitor.path}/steps/${seq}`);
    expect(status).toBe(200);
    expect(body).toContain("long ".repeat(400));
    expect(body).not.toMatch(/<img|<script>/);
    expect(body).not.toContain("\u202E");
    for (const path of [`/steps/${seq + 1}`, "/steps/999", "/steps/x", "/steps/"]) {
      expect((await visitor.get(visitor.path + path)).status).toBe(404);
    }
    expect(await service.as({ principal: "somebody" }).read.callTexts(id, seq)).toBeUndefined();
  });

  test("belongs to the calls of one run alone", async () => {
    const { service, id } = await ended({ name: "say", args: { text: "secret", times: 1 } });
    const other = await startRun(service, "go");
    await reach(service, other.id, "completed");
    const visitor = await visit(linkTo(await openPages(service), other.id, "decide"));
    const [seq = 0] = await startsOf(service, id, "say");
    expect((await visitor.get(`/runs/${id}/steps/${seq}`)).status).toBe(404);
  });

  test("tells calls with the same id apart", async () => {
    const twice = (text: string): ScriptedToolCall => ({ id: "same", name: "say", args: { text, times: 1 } });
    const { service, id } = await ended(twice("one"), twice("two"));
    const texts = await Promise.all(
      (await startsOf(service, id, "say")).map(async (seq) => mine(service).read.callTexts(id, seq)),
    );
    expect(texts.map((found) => [found?.args?.["text"], found?.result?.text])).toEqual([
      ["one", "one"],
      ["two", "two"],
    ]);
  });

  test("has a result that was moved into a file, up to a million characters, with other requests in between", async () => {
    const { service, id } = await ended({ name: "say", args: { text: "0123456789", times: 120_000 } });
    const [seq = 0] = await startsOf(service, id, "say");
    const found = await mine(service).read.callTexts(id, seq);
    expect(found?.result?.text).toHaveLength(1_200_000);
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const answer = visitor.get(`${visitor.path}/steps/${seq}`);
    let turns = 0;
    const counter = setInterval(() => (turns += 1), 0);
    cleanUpWith(() => clearInterval(counter));
    expect((await answer).body).toContain("200,000 more characters are not shown");
    expect(turns).toBeGreaterThan(5);
  });

  test("of a subagent is there while the run goes on, and when it is over", async () => {
    const service = stepRuns({
      name: "task",
      args: { description: "subtask: note it", subagent_type: "general-purpose" },
    });
    const { id } = await startRun(service, "go");
    await reach(service, id, "input_required");
    const [seq = 0] = await startsOf(service, id, "say");
    const whole = {
      agent: [{ name: "general-purpose" }],
      args: { text: "inside ", times: 3 },
      result: { text: "inside inside inside ", isError: false },
    };
    expect(await mine(service).read.callTexts(id, seq)).toMatchObject(whole);
    await approve(service, id, "inside");
    await reach(service, id, "completed");
    expect(await mine(service).read.callTexts(id, seq)).toMatchObject(whole);
    const [task = 0] = await startsOf(service, id, "task");
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    expect((await visitor.get(`${visitor.path}/steps/${task}`)).body).toContain(
      '<md-text class="prose"># Report\n\nIt is **noted**.</md-text>',
    );
    expect((await visitor.get(`${visitor.path}/steps/${seq}`)).body).toContain("inside inside inside");
  });

  test("tells what a person changed from what the agent wrote", async () => {
    const service = stepRuns(note("a"));
    const { id } = await startRun(service, "go");
    const approvals = (await reach(service, id, "input_required")).requests.filter(isApproval);
    const edit = { type: "edit" as const, editedAction: { name: "note", args: { text: "b" } } };
    await mine(service).requests.answer(id, { requestId: approvals[0]?.id ?? "", answer: edit }, "test");
    await reach(service, id, "completed");
    const [seq = 0] = await startsOf(service, id, "note");
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const { body } = await visitor.get(`${visitor.path}/steps/${seq}`);
    const [wrote = "", ran = ""] = body.split("changed by a person");
    expect(wrote).toContain("as the agent wrote them");
    expect(wrote).toContain("&#34;a&#34;");
    expect(ran).toContain("&#34;b&#34;");
  });

  test("shows diffs as such, and those of very many lines as text", async () => {
    const lines = "-const a = 1;\n+const a = 2;\n";
    const diff = (times: number) =>
      `--- /a.ts\n+++ /a.ts\n@@ -1,${times} +1,${times} @@\n${lines.repeat(times)}`;
    const say = (text: string) => ({ name: "say", args: { text, times: 1 } });
    const { service, id } = await ended(say(diff(2)), say(diff(1500)));
    const visitor = await visit(linkTo(await openPages(service), id, "watch"));
    const [short = 0, long = 0] = await startsOf(service, id, "say");
    expect((await visitor.get(`${visitor.path}/steps/${short}`)).body).toContain('<tr class="d">');
    const { body } = await visitor.get(`${visitor.path}/steps/${long}`);
    expect(body).not.toContain('<tr class="d">');
    expect(body).toContain("+const a = 2;");
  });

  test("has no result as long as it is at work", async () => {
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    const service = stepRuns({ name: "say", args: { text: "at last", times: 1 } });
    gates.push(gate);
    const { id } = await startRun(service, "go");
    await expect.poll(() => startsOf(service, id, "say")).toHaveLength(1);
    const [seq = 0] = await startsOf(service, id, "say");
    expect(await mine(service).read.callTexts(id, seq)).toMatchObject({
      args: { text: "at last" },
      missing: "There is no result so far.",
    });
    go();
    await reach(service, id, "completed");
    expect(await mine(service).read.callTexts(id, seq)).toMatchObject({ result: { text: "at last" } });
  });
});

describe("steps in Chromium", { tags: "chromium" }, () => {
  const open = browser();

  test("are shown whole in their place, stay so while the page goes on, and serve everybody", async () => {
    const service = stepRuns({ name: "say", args: { text: EVIL, times: 3 } }, note("a"));
    const { id } = await startRun(service, "go");
    await reach(service, id, "input_required");
    const { page, messages } = await open(linkTo(await openPages(service), id, "decide"));
    await page.waitForURL(/\/runs\//);
    await page.goto(`${page.url().replace(/\/review.*/, "")}/work`);
    const more = page.getByRole("link", { name: /^Show all of/ }).first();
    await more.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Result" }).waitFor();
    const less = page.getByRole("link", { name: /^Hide/ });
    expect(await less.getAttribute("aria-expanded")).toBe("true");
    expect(await page.getByRole("region", { name: "Result" }).textContent()).toContain("<img src=x");
    expect(await problemsOf(page)).toEqual([]);
    await approve(service, id, "a");
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: "Result" }).count()).toBe(1);
    await less.click();
    expect(await page.getByRole("region", { name: "Result" }).count()).toBe(0);
    expect(await page.title()).not.toBe("owned");
    expect(messages.filter((message) => !message.includes("axe"))).toEqual([]);
  });

  test("that are open get their result when the call ends", async () => {
    let go = (): void => undefined;
    const say = (text: string) => ({ name: "say", args: { text, times: 1 } });
    const service = stepRuns(say("first"), say("at last"));
    gates.push(new Promise<void>((resolve) => (go = resolve)), Promise.resolve());
    const { id } = await startRun(service, "go");
    await expect.poll(() => startsOf(service, id, "say")).toHaveLength(2);
    const { page, messages } = await open(linkTo(await openPages(service), id, "watch"));
    await page.waitForURL(/\/runs\//);
    await page.goto(`${page.url()}/work`);
    const links = page.getByRole("link", { name: /^Show all of/ });
    await links.first().click();
    await page.getByText("There is no result so far.").waitFor();
    await page.getByRole("region", { name: "Arguments as JSON" }).focus();
    await page.evaluate("document.activeElement.wasThere = true");
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    go();
    await page.getByRole("region", { name: "Result" }).waitFor();
    expect(await page.getByRole("region", { name: "Result" }).textContent()).toBe("at last");
    expect(await page.getByText("There is no result so far.").count()).toBe(0);
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(await page.evaluate("document.activeElement.wasThere")).toBe(true);
    expect(requests.filter((url) => url.includes("/steps/"))).toHaveLength(1);
    expect(messages).toEqual([]);
  });

  test("turned to the source of a text stay so while the page goes on, and get a new text", async () => {
    const service = stepRuns(
      { name: "task", args: { description: "subtask", subagent_type: "general-purpose" } },
      note("a"),
    );
    const { id } = await startRun(service, "go");
    await reach(service, id, "input_required");
    await approve(service, id, "inside");
    await expect
      .poll(async () => (await mine(service).read.view(id))?.requests.filter(isApproval).length)
      .toBe(2);
    const { page, messages } = await open(linkTo(await openPages(service), id, "watch"));
    await page.waitForURL(/\/runs\//);
    await page.goto(`${page.url().replace(/\/review.*/, "")}/work`);
    await page
      .getByRole("link", { name: /^Show all of/ })
      .first()
      .click();
    const text = page.locator("md-text");
    await text.locator("strong").getByText("noted").waitFor();
    await text.getByRole("button", { name: "Source" }).click();
    expect(await text.locator("pre").textContent()).toBe("# Report\n\nIt is **noted**.");
    await approve(service, id, "a");
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(await text.locator("pre").textContent()).toBe("# Report\n\nIt is **noted**.");
    await text.getByRole("button", { name: "Source" }).click();
    await text.getByRole("heading", { name: "Report" }).waitFor();
    expect(messages).toEqual([]);
  });

  test("that a run left behind do not look as if they were at work", async () => {
    const service = stepRuns({ name: "say", args: { text: "never", times: 1 } });
    gates.push(new Promise<void>(() => undefined));
    const { id } = await startRun(service, "go");
    await expect.poll(() => startsOf(service, id, "say")).toHaveLength(1);
    const { page } = await open(linkTo(await openPages(service), id, "watch"));
    await page.waitForURL(/\/runs\//);
    await page.goto(`${page.url()}/work`);
    await page.getByRole("link", { name: /^Show all of/ }).click();
    await page.getByText("There is no result so far.").waitFor();
    await mine(service).control.cancel(id, "test");
    await page.getByText("The run ended before there was a result.").waitFor();
    expect(await page.locator(".steps .result").allTextContents()).toEqual(["did not finish"]);
  });

  test("are a screen of their own", async () => {
    const { service, id } = await ended({ name: "say", args: { text: "a word", times: 1 } });
    const { page } = await open(linkTo(await openPages(service), id, "watch"));
    await page.getByRole("link", { name: "Work" }).click();
    await page.getByRole("link", { name: /^Show all/ }).waitFor();
    await page.goto(`${page.url().replace(/\/work$/, "")}/steps/${(await startsOf(service, id, "say"))[0]}`);
    await page.getByRole("heading", { name: "Result" }).waitFor();
    expect(await page.getByRole("region", { name: "Result" }).textContent()).toContain("a word");
  });
});
