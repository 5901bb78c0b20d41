import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import { ME, mine, calling, databaseFile, note, openServer, reach, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { approvalRuns } from "../support.ts";
import { LOOKS, browser, problemsOf } from "./chromium.ts";
import { wayTo } from "./other-listeners.ts";
import { openPages } from "./support.ts";

const LONG = `Find out how ${"a-word-without-an-end".repeat(20)} gets to the pager 🛰️ <b>and</b> \u202Ewhere`;

/** A run with many agents, all done, a long name and a file changed. */
async function manyAgents(agents: number): Promise<RunService> {
  const model = scriptedModel(({ messages }) => {
    if (messages.some(({ type }) => type === "tool"))
      return { text: `# Done\n\n| a | b |\n|---|---|\n| ${LONG} | c |\n` };
    if (messages.at(-1)?.text !== LONG) return { text: "seen" };
    const task = (index: number) => ({
      name: "task",
      args: { description: `${index}: ${LONG}`, subagent_type: "general-purpose" },
    });
    const write = {
      name: "write_file",
      args: { file_path: `/${"long".repeat(50)}.md`, content: `${LONG}\n` },
    };
    return { toolCalls: [...Array.from({ length: agents }, (_, index) => task(index)), write] };
  });
  const { service } = openServer(databaseFile(), { model });
  await reach(service, (await startRun(service, LONG)).id, "completed");
  return service;
}

describe("screens in Chromium", { tags: "chromium" }, () => {
  const open = browser({ bypassCSP: true });

  async function openAll(service: RunService): Promise<{ page: Page; origin: string; messages: string[] }> {
    const pages = await openPages(service);
    const { page, messages } = await open(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(`${new URL(pages.address).origin}/`);
    return { page, origin: new URL(pages.address).origin, messages };
  }

  /** What is wrong with a screen, in narrower windows too; each is loaded anew. */
  async function problemsAt(page: Page, address: string): Promise<string[]> {
    const found: string[] = [];
    for (const look of [...LOOKS, [320, "light"] as const]) {
      await page.setViewportSize({ width: look[0], height: 800 });
      await page.goto(address);
      await page.locator("main").waitFor();
      found.push(...(await problemsOf(page, [look])).map((problem) => `${address} ${problem}`));
    }
    return found;
  }

  async function problemsWith(agents: number): Promise<string[]> {
    const service = await manyAgents(agents);
    const { page, origin, messages } = await openAll(service);
    const [run] = await mine(service).read.list({ limit: 1 });
    const found: string[] = [];
    for (const path of ["/", `/runs/${run?.id}/work`, `/runs/${run?.id}/answer`, "/files"]) {
      found.push(...(await problemsAt(page, origin + path)));
    }
    return [...found, ...messages];
  }

  test("of a run with twelve agents and the longest names fit and can be used by anybody", async () => {
    expect(await problemsWith(12)).toEqual([]);
  });

  test("so do those of none and of a hundred agents", { tags: "long" }, async () => {
    expect(await problemsWith(0)).toEqual([]);
    expect(await problemsWith(100)).toEqual([]);
  });

  test("with decisions fit and can be used by anybody", async () => {
    const { service } = approvalRuns(note("a"), note("b"));
    const { id } = await startRun(service, LONG);
    await reach(service, id, "input_required");
    const { page, origin } = await openAll(service);
    for (const path of ["/", "/review", `/runs/${id}`, `/runs/${id}/work`]) {
      expect(await problemsAt(page, origin + path)).toEqual([]);
    }
    expect(await page.title()).toMatch(/^\(2\) /);
  });

  test("a page says that it is not connected, keeps what is typed, and goes on when it is", async () => {
    const { service } = openServer(databaseFile(), { model: calling(note("a")) });
    const pages = await openPages(service);
    const way = await wayTo(pages.address);
    const { page } = await open(way.link(pages.link({ principal: ME, purpose: "decide" })));
    await page.getByLabel("New task").fill("half a thought");
    await way.cut();
    await page.locator(".dot.off").waitFor();
    await page.getByText("Not connected").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Start run" }).isDisabled()).toBe(true);
    await page.locator(".compose").getByText("The server does not answer").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    const notice = page.getByRole("alert");
    await notice.getByText("deepagent-mcp open").waitFor();
    expect(await notice.textContent()).toMatch(
      /^Not connected since \d\d:\d\d.* Trying(?: again in \d s\.| …) Try now $/,
    );
    await way.mend();
    await notice.getByRole("button", { name: "Try now" }).click();
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await page.locator("[role=alert]:visible, .off-why, .dot.off").count()).toBe(0);
    expect(await page.getByLabel("New task").inputValue()).toBe("half a thought");
    await page.getByRole("button", { name: "Start run" }).click();
    await page.waitForURL(/\/runs\//);
    expect(await mine(service).read.list({ limit: 9 })).toMatchObject([{ task: "half a thought" }]);
  });
});
