/**
 * Makes the pictures of docs/page.md from a real run: the built program serves its page, a browser starts a run of the
 * offline model on a copy of the sample workspace, and looks at it when it waits for a decision.
 * Usage: npm run build && node scripts/pictures.mjs. Needs Chromium at CHROMIUM or /usr/bin/chromium.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const target = join(root, "docs/pictures");
const folder = mkdtempSync(join(tmpdir(), "deepagent-pictures-"));
const workspace = join(folder, "tide-alarms");
const TASK = "Find out where an alarm can get lost between highWaters and the pager, and write a report";

cpSync(join(root, "demo/workspace"), workspace, { recursive: true });
mkdirSync(target, { recursive: true });
const program = join(root, "dist/bin/deepagent-mcp.js");
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
  const shoot = async (screen, colorScheme) => {
    await page.goto(`${run}/${screen}`);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(target, `${screen}-${colorScheme}.png`) });
  };
  await page.goto(link);
  await page.getByLabel("New task").fill(TASK);
  await page.getByRole("button", { name: "Start run" }).click();
  await page.waitForURL(/\/runs\//);
  const run = page.url();
  await page.locator("[data-approval]").first().waitFor({ timeout: 60_000 });
  await shoot("work", "light");
  await shoot("review", "dark");
} finally {
  await browser.close();
  server.kill();
  rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}
