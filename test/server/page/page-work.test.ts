import { describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import { databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { type ScriptedToolCall, scriptedModel } from "../../support/scripted-model.ts";
import { browser, problemsOf } from "./chromium.ts";
import { linkTo, openPages, visit } from "./support.ts";

const NAME = `检查站点 🛰️ ${"a-name-without-an-end-".repeat(6)}`;
const ANSWER = "# Done\n\nAll **24** stations answer.\n";

/** An agent that reads and writes, then starts so many others, and says something between that. */
async function busyRun(agents: number): Promise<{ service: RunService; id: string }> {
  const write = (index: number): ScriptedToolCall => ({
    name: "write_file",
    args: { file_path: `/notes/${index}.md`, content: `# Note ${index}\n\nThe **${index}**th.\n` },
  });
  const read = (path: string): ScriptedToolCall => ({ name: "read_file", args: { file_path: path } });
  const replies = [
    { text: "## Plan\n\nI **look** at `notes`.", toolCalls: [write(1), write(2)] },
    { toolCalls: [read("/notes/1.md"), read("/notes/2.md"), read("/notes/none.md")] },
    agents > 0 && {
      toolCalls: Array.from({ length: agents }, (_, index) => ({
        name: "task",
        args: { description: `${index}: ${NAME}`, subagent_type: "general-purpose" },
      })),
    },
  ];
  const model = scriptedModel(({ messages }) => {
    if (messages.some(({ text }) => text.includes(NAME))) return { text: "# Report\n\nIt answers." };
    const asked = messages.filter(({ type }) => type === "ai").length;
    return replies[asked] || { text: ANSWER };
  });
  const { service } = openServer(databaseFile(), { model });
  const { id } = await startRun(service, "Check all stations");
  await reach(service, id, "completed");
  return { service, id };
}

const textOf = (html: string): string =>
  html
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();

test("calls of the same kind in a row are one row, in words", async () => {
  const { service, id } = await busyRun(4);
  const visitor = await visit(linkTo(await openPages(service), id, "watch"));
  const { body } = await visitor.get(`/runs/${id}/work`);
  const steps = /<ol class="steps"[^]*?<\/section>/.exec(body)?.[0] ?? "";
  const folds = [...steps.matchAll(/<summary[^>]*>([^]*?)<\/summary>/g)].map(([, text = ""]) =>
    textOf(text)
      .replace(/\d\d:\d\d/, "")
      .replace(/\s+/g, " ")
      .trim(),
  );
  expect(folds).toEqual(["4 subagents started", "Read 3 files 1 failed"]);
  const shown = textOf(steps);
  expect(shown).toContain("Plan I look at notes.");
  expect(shown).toMatch(/Wrote \/notes\/2\.md \d\d:\d\d \d\.\ds/);
  expect(shown).toContain("It answers.");
  expect(shown).not.toMatch(/write_file|read_file|\*\*|##/);
  const feed = textOf(/<ol class="feed"[^]*?<\/ol>/.exec(body)?.[0] ?? "");
  expect(feed).toContain("4 subagents started");
});

test("the list has the same agents as the times, each with what it did", async () => {
  const { service, id } = await busyRun(24);
  const visitor = await visit(linkTo(await openPages(service), id, "watch"));
  const keysIn = (body: string): string[] =>
    [...body.matchAll(/<(?:tr|li)[^>]* id="agent-([^"]*)"|id="agent-([^"]*)"/g)].map(
      ([, a, b]) => a ?? b ?? "",
    );
  const times = (await visitor.get(`/runs/${id}/work`)).body;
  const list = (await visitor.get(`/runs/${id}/work?view=list`)).body;
  expect(keysIn(list)).toHaveLength(25);
  expect(keysIn(list).toSorted()).toEqual(keysIn(times).toSorted());
  const main = textOf(/<tr id="agent-"[^]*?<\/tr>/.exec(list)?.[0] ?? "");
  expect(main).toMatch(/^Main agent Completed \d\d:\d\d \S+ 29 \d+ –$/);
  // Whoever is chosen in the list stays there.
  expect(list).toMatch(
    /href="\/runs\/[^"]*\/work\?agent=[^"&]+&amp;view=list"|href="[^"]*agent=[^"]+view=list"/,
  );
});

describe("work in Chromium", { tags: "chromium" }, () => {
  const open = browser({ permissions: ["clipboard-read", "clipboard-write"] });

  test("agents below the visible part are counted, as a list they are a table, and steps unfold", async () => {
    const { service, id } = await busyRun(24);
    const { page, messages } = await open(linkTo(await openPages(service), id, "watch"));
    await page.waitForURL(/\/runs\//);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.getByRole("link", { name: "Work" }).click();
    const more = page.getByRole("button", { name: / more agents?$/ });
    const count = async (): Promise<number> => Number.parseInt((await more.textContent()) ?? "", 10);
    await expect.poll(count).toBeGreaterThan(8);
    await more.click();
    await expect.poll(() => more.isVisible()).toBe(false);
    await page.getByText("24 subagents started").first().click();
    expect(await page.locator(".many .result").first().isVisible()).toBe(true);
    expect(await problemsOf(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.getByRole("link", { name: "List" }).click();
    await page
      .getByRole("region", { name: /^Agents/ })
      .getByRole("link", { name: /^7: 检查站点/ })
      .click();
    await page.getByRole("heading", { name: /^7: 检查站点/ }).waitFor();
    expect(page.url()).toContain("view=list");
    expect(await problemsOf(page)).toEqual([]);
    expect(messages.filter((message) => !message.includes("axe"))).toEqual([]);
  });

  test("the answer and every diff are copied as they were written", async () => {
    const { service, id } = await busyRun(0);
    const { page } = await open(linkTo(await openPages(service), id, "watch"));
    await page.waitForURL(/\/runs\//);
    const copied = async (): Promise<string> => {
      await page.locator("#spoken").getByText("Copied", { exact: true }).waitFor({ state: "attached" });
      return page.evaluate<string>("navigator.clipboard.readText()");
    };
    await page.getByRole("button", { name: "Copy answer" }).click();
    expect(await copied()).toBe(ANSWER);
    await page.locator(".file summary", { hasText: "/notes/2.md" }).click();
    const file = page.locator(".file[open]");
    expect(await file.locator(".diff-bar .num").textContent()).toMatch(/\+3\s+−0/);
    await file.getByRole("button", { name: "Copy diff" }).click();
    await expect.poll(copied).toContain("+++ /notes/2.md\n@@ -0,0 +1,3 @@\n+# Note 2\n+\n+The **2**th.");
  });

  test("a wide window shows the steps of a lone agent where there is most room", async () => {
    const { service, id } = await busyRun(0);
    const { page } = await open(linkTo(await openPages(service), id, "watch"));
    await page.waitForURL(/\/runs\//);
    await page.setViewportSize({ width: 1920, height: 1000 });
    await page.getByRole("link", { name: "Work" }).click();
    const boxOf = async (name: string) => page.getByRole("region", { name }).boundingBox();
    await page.getByRole("region", { name: "Main agent" }).waitFor();
    const [agent, activity] = [await boxOf("Main agent"), await boxOf("Activity")];
    expect(agent?.x).toBeLessThan(activity?.x ?? 0);
    expect(agent?.width).toBeGreaterThan(activity?.width ?? Infinity);
    expect(agent?.y).toBe(activity?.y);
  });
});
