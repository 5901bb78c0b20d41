/**
 * Makes the pictures of the page for README.md and docs: a real run of the offline model on a copy of the sample
 * workspace, which waits for a decision. Questions and proposed changes, which the offline model does not make, are the
 * accepted pictures of the tests. Needs Chromium at CHROMIUM or /usr/bin/chromium.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const target = join(root, "docs/pictures");
const program = join(root, "dist/bin/deepagent-mcp.js");
const TASK = "Find out where an alarm can get lost between highWaters and the pager, and write a report";

const folder = mkdtempSync(join(tmpdir(), "deepagent-pictures-"));
const ACCEPTED = { question: "question-agent", address: "question-address", proposed: "proposed" };
for (const [name, accepted] of Object.entries(ACCEPTED))
  cpSync(join(root, `test/server/page/accepted/${accepted}.png`), join(target, `${name}.png`));
try {
  await takePictures();
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}

async function takePictures() {
  const workspace = join(folder, "tide-alarms");
  cpSync(join(root, "demo/workspace"), workspace, { recursive: true });
  const flags = ["--model", "offline", "--workspace", workspace, "--data-dir", join(folder, "data")];
  const server = spawn(process.execPath, [program, "open", "--serve", "--no-browser", ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-background-networking"],
  });
  try {
    const link = await new Promise((resolve, reject) => {
      server.stdout.setEncoding("utf8").on("data", (text) => resolve(text.split("\n", 1)[0]));
      server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
    await page.goto(link);
    await page.getByLabel("New task").fill(TASK);
    await page.getByRole("button", { name: "Start run" }).click();
    await page.waitForURL(/\/runs\//);
    const run = page.url();
    await page.locator("[data-approval]").first().waitFor({ timeout: 60_000 });
    for (const screen of ["work", "review"]) {
      for (const colorScheme of ["light", "dark"]) {
        await page.goto(`${run}/${screen}`);
        await page.locator("main").waitFor();
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await delay(300);
        await page.screenshot({ path: join(target, `${screen}-${colorScheme}.png`) });
      }
    }
  } finally {
    await browser.close();
    server.kill();
  }
}
