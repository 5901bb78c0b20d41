import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { WIRE_KEY, startWireServer } from "../../support/wire-server.ts";
import { program } from "../../support/harness-stdio.ts";
import { runBin } from "../built-bin.ts";
import type { Outcome } from "../built-bin.ts";

let folder: string;
let temporary: string;
beforeEach(() => {
  folder = filesIn();
  temporary = join(folder, "tmp");
  mkdirSync(temporary);
});

async function demo(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return runBin(["demo", ...args], {
    program: await program(),
    cwd: folder,
    env: { TMPDIR: temporary, XDG_DATA_HOME: join(folder, "data"), ...env },
  });
}

const project = () =>
  filesIn({
    "src/main.py": "# TODO: read the port from the environment\nprint('hello')\n",
    "docs/guide.md": "# Guide\n\nStart it with python.\n",
    "node_modules/big/index.js": "",
  });

it("runs on a copy of the sample without a terminal, and leaves the report", async () => {
  const { code, stdout, stderr } = await demo([]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("offline: fixed rules, no language model");
  expect(stdout).toMatch(/✔ approved \(it works on a copy\): .*deepagent-report\.md/);
  const report = /^── Report {2}(.+)$/m.exec(stdout)?.[1] ?? "";
  expect(report).toMatch(/deepagent-report\.md$/);
  const text = readFileSync(report, "utf8");
  expect(text).toMatch(/src\/[a-z]+\.js:\d+/);
  expect(stdout).toContain(text.trim().split("\n")[0]);
  expect(stdout).toMatch(/── Memory {2}\/memories\//);
  expect(stdout).toMatch(/✔ completed in [\d.]+ s · [2-9] subagents · \d+ tool calls/);
  // Its run and its memories are not among the person's own.
  const base = dirname(dirname(report));
  expect(readdirSync(base).sort()).toEqual(["data", "tidewatch"]);
  expect(stdout).toMatch(new RegExp(`runs list --data-dir ${base}/data$`, "m"));
  expect(existsSync(join(folder, "data"))).toBe(false);
});

it("refuses one's own folder when nobody can be asked, and tells how to allow it", async () => {
  const root = project();
  const { code, stdout, stderr } = await demo(["--workspace", root, "What is unfinished here?"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain("There is no terminal to ask in");
  expect(stderr).toContain("--yes");
  expect(readdirSync(root).sort()).toEqual(["docs", "node_modules", "src"]);
});

it("works on the folder itself with --yes", async () => {
  const root = project();
  const { code, stdout } = await demo(["--workspace", root, "--yes"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/✔ approved \(--yes\): .*deepagent-report\.md/);
  expect(existsSync(join(root, "deepagent-report.md"))).toBe(true);
  expect(readdirSync(temporary).filter((name) => name.startsWith("deepagent-demo"))).toEqual([]);
});

it("fails with exit code 1 and the reason when the run fails", async () => {
  const provider = await startWireServer(() => ({ status: 401, message: "invalid x-api-key" }));
  onTestFinished(() => provider.close());
  const flags = ["--model", "anthropic:claude-test"];
  const { code, stdout, stderr } = await demo(flags, provider.env("anthropic"));
  expect(code).toBe(1);
  expect(stdout).toContain("model_auth");
  expect(stdout).toContain("✖ failed in");
  expect(stdout + stderr).not.toContain(WIRE_KEY);
});

it("says which model is missing a key before it starts a run", async () => {
  const { code, stderr } = await demo(["--model", "openai:gpt-test"]);
  expect(code).toBe(1);
  expect(stderr).toContain("OPENAI_API_KEY");
});
