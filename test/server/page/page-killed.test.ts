import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { BIN, ROOT, cleanEnv } from "../../commands/built-bin.ts";
import { browser } from "./chromium.ts";

const TASK = "Find out where an alarm can get lost between highWaters and the pager, and write a report";

/** The program on a folder of its own: a server of the page, killed and started as often as a test wants. */
function program() {
  const folder = filesIn();
  const workspace = join(folder, "workspace");
  cpSync(join(ROOT, "demo/workspace"), workspace, { recursive: true });
  let server: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server?.once("exit", resolve));
    server.kill("SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  const flags = ["--model", "offline", "--workspace", workspace, "--data-dir", join(folder, "data")];
  /** Gives a link that opens its page. */
  const start = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [BIN, "open", "--serve", "--no-browser", ...flags], {
        env: cleanEnv(),
        stdio: ["ignore", "pipe", "inherit"],
      });
      server = child;
      child.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.split("\n", 1)[0] ?? ""));
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
  const reports = (): string[] => readdirSync(workspace).filter((name) => name.includes("report"));
  return { start, kill, reports };
}

describe("when the server is killed, in Chromium", { tags: "chromium" }, () => {
  const open = browser();
  const approve = (page: Page) => page.getByRole("button", { name: /^Approve\b/ }).first();
  /** A call is read to its end before it is approved. */
  const read = (page: Page) => page.locator("[data-end]").first().scrollIntoViewIfNeeded();
  const isLive = (page: Page) => page.getByText("Live", { exact: true }).waitFor();

  test("its page says so, a new link goes on, and no decision is lost or made twice", async () => {
    const { start, kill, reports } = program();
    const { page } = await open(await start());
    await page.getByLabel("New task").fill(TASK);
    await page.getByRole("button", { name: "Start run" }).click();
    await page.waitForURL(/\/runs\//);
    const run = new URL(page.url()).pathname;
    const goOn = async (path: string): Promise<void> => {
      await page.goto(await start());
      await page.getByLabel("New task").waitFor();
      await page.goto(new URL(path, page.url()).href);
      await isLive(page);
    };
    await page.goto(`${page.url()}/review`);
    await approve(page).waitFor();

    // While a person writes.
    await page.locator("[data-fold=reject] summary").click();
    await page.getByLabel("Message to the agent").fill("half a thought");
    await kill();
    await page.getByText("Not connected").waitFor();
    expect(await approve(page).isDisabled()).toBe(true);
    await page.getByRole("alert").getByText("deepagent-mcp open").waitFor();
    expect(await page.getByLabel("Message to the agent").inputValue()).toBe("half a thought");
    await goOn(`${run}/review`);
    expect(reports()).toEqual([]);

    // While the decision is on its way.
    await read(page);
    const sent = page.waitForRequest(/\/reply$/);
    await approve(page).click({ noWaitAfter: true });
    await sent;
    await kill();
    await goOn(`${run}/review`);
    // It was stored, or the person is asked again: here and now, and not both.
    if (await approve(page).isVisible()) {
      await read(page);
      await approve(page).click();
    }

    // Right after it was stored.
    await page.getByText("approved", { exact: false }).first().waitFor();
    await kill();
    await page.getByText("Not connected").waitFor();
    await goOn(run);
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(reports()).toHaveLength(1);
    await page.goto(new URL(`${run}/work?events=all`, page.url()).href);
    await page.locator(".feed").getByText("You approved").waitFor();
    expect(await page.locator(".feed").getByText("You approved").count()).toBe(1);
  });
});
