/**
 * Makes the pictures of README.md and docs from real runs of the offline model on copies of the sample workspace: one
 * that a person at a terminal decides on, filmed, and one that waits for a decision on the page.
 * Usage: npm run build && node scripts/pictures.mjs [terminal | page]. Needs python3, and Chromium at CHROMIUM or
 * /usr/bin/chromium.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { film, filmSvg, textOf } from "./terminal-film.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const target = join(root, "docs/pictures");
const program = join(root, "dist/bin/deepagent-mcp.js");
const TERMINAL_TASK = "Find out where an alarm can get lost, and write a report";
const PAGE_TASK = "Find out where an alarm can get lost between highWaters and the pager, and write a report";

/** Milliseconds that a frame is seen: what moves too fast is slowed down, and pauses are shortened. */
const LASTS_MS = { least: 220, atWork: 400, most: 2200, last: 6000 };
const clamped = (value, least, most) => Math.min(Math.max(value, least), most);

const folder = mkdtempSync(join(tmpdir(), "deepagent-pictures-"));
const [only] = process.argv.slice(2);
mkdirSync(target, { recursive: true });
try {
  if (only !== "page") await terminalPicture(join(folder, "terminal"));
  if (only !== "terminal") await pagePictures(join(folder, "page"));
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}

/** A copy of the sample to work on, and where its runs are kept. */
function sample(base) {
  const workspace = join(base, "tide-alarms");
  cpSync(join(root, "demo/workspace"), workspace, { recursive: true });
  return { workspace, data: join(base, "data") };
}

async function terminalPicture(base) {
  const { workspace, data } = sample(base);
  const bin = join(base, "deepagent-mcp");
  writeFileSync(bin, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 });
  const rc = join(base, "bashrc");
  writeFileSync(rc, "PS1='$ '\n");
  const [columns, rows] = [96, 30];
  const frames = await film({
    command: ["bash", "--rcfile", rc, "-i"],
    columns,
    rows,
    cwd: workspace,
    env: {
      ...process.env,
      TERM: "xterm-256color",
      PATH: `${base}:${process.env.PATH}`,
      DEEPAGENT_MODEL: "offline",
      DEEPAGENT_DATA_DIR: data,
      DEEPAGENT_NOTIFY: "off",
      BASH_SILENCE_DEPRECATION_WARNING: "1",
    },
    act: async ({ until, type }) => {
      await until(/^\$/);
      type(`deepagent-mcp run "${TERMINAL_TASK}"\r`);
      let text = await until(/d details/);
      await delay(LASTS_MS.most);
      while (text.includes("more lines")) {
        type(" ");
        await delay(400);
        text = await until(/d details/);
      }
      await delay(LASTS_MS.most);
      type("a");
      await until(/Next task/);
      await delay(LASTS_MS.least);
    },
  });
  const begin = frames.findIndex(({ screen }) => textOf(screen).includes("○ Write the report"));
  const timed = frames.slice(begin).map(({ screen, time }, index, all) => {
    const pause = (all[index + 1]?.time ?? Infinity) - time;
    const least = textOf(screen).includes("at work") ? LASTS_MS.atWork : LASTS_MS.least;
    const lasts = pause === Infinity ? LASTS_MS.last : clamped(pause, least, LASTS_MS.most);
    return { screen, lasts: Math.round(lasts) };
  });
  const still = timed.findLast(({ screen }) => textOf(screen).includes("agents at work"));
  const svg = filmSvg({ frames: timed, columns, still, title: "deepagent-mcp run" });
  writeFileSync(join(target, "terminal.svg"), svg);
}

async function pagePictures(base) {
  const { workspace, data } = sample(base);
  const flags = ["--model", "offline", "--workspace", workspace, "--data-dir", data];
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
    await page.getByLabel("New task").fill(PAGE_TASK);
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
