import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { SETTINGS, flagNameOf } from "../../src/config/settings.ts";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = join(ROOT, "docs/man/deepagent-mcp.1");
const text = readFileSync(PAGE, "utf8").replaceAll("\\-", "-");

it("is what the table of commands says", () => {
  const check = spawnSync(process.execPath, [join(ROOT, "scripts/man-page.mjs"), "--check"], {
    encoding: "utf8",
  });
  expect(check).toMatchObject({ status: 0, stderr: "" });
});

it("has every command, action, flag and setting", () => {
  for (const { usage, actions = [], flags } of COMMANDS) {
    expect(text).toContain(`.SS ${usage}\n`);
    for (const { name, words } of actions) expect(text).toContain(`\\fB${`${name} ${words}`.trim()}\\fR`);
    for (const { name } of flags) expect(text).toContain(`--${name}`);
  }
  for (const setting of SETTINGS) expect(text).toContain(`--${flagNameOf(setting)}`);
});

it("is found by npm, which installs it", () => {
  const manifest: { man: string } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(join(ROOT, manifest.man)).toBe(PAGE);
});

it("can be read by man", { tags: ["mandoc"] }, () => {
  // It warns that there is no date, which would go stale.
  const { status, stdout } = spawnSync("mandoc", ["-T", "lint", "-W", "error", PAGE], { encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});
