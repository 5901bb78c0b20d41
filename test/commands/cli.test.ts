import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { z } from "zod";
import { BIN, INITIALIZE, ROOT, runBin } from "./built-bin.ts";

let folder: string;
beforeEach(() => void (folder = filesIn()));

const Manifest = z.object({ version: z.string() });
const { version } = Manifest.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));

describe("deepagent-mcp", () => {
  it("is an executable file", () => {
    expect(statSync(BIN).mode & 0o777).toBe(0o755);
    expect(readFileSync(BIN, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it.each(["--version", "-v", "version"])("tells its version with %s", async (flag) => {
    expect(await runBin([flag])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  it.each(["--help", "-h", "help"])("explains itself with %s", async (flag) => {
    const { code, stdout, stderr } = await runBin([flag]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const command of ["serve", "work", "run", "runs", "demo", "doctor"])
      expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, "m"));
  });

  it.each([
    ["serve", "--http"],
    ["demo", "--yes"],
    ["run", "--resume"],
    ["runs", "--approve"],
    ["doctor", "--workspace"],
  ])("explains %s", async (command, flag) => {
    const asked = await runBin([command, "--help"]);
    expect(asked).toMatchObject({ code: 0, stderr: "" });
    expect(asked.stdout).toContain(flag);
    expect((await runBin(["help", command])).stdout).toBe(asked.stdout);
  });

  it("explains an action of a command, with its flags and examples alone", async () => {
    const asked = await runBin(["runs", "answer", "--help"]);
    expect(asked).toMatchObject({ code: 0, stderr: "" });
    expect(asked.stdout).toContain("Usage: deepagent-mcp runs answer RUN [REQUEST] [FLAGS]");
    expect(asked.stdout).toMatch(/Examples\n.*runs answer last/);
    expect(asked.stdout).toContain("--approve-same");
    expect(asked.stdout).not.toContain("--limit");
    expect((await runBin(["help", "runs", "answer"])).stdout).toBe(asked.stdout);
  });

  it.each([
    [["surve"], 'Unknown command "surve". Did you mean serve?'],
    [["modles", "list"], 'Unknown command "modles". Did you mean models?'],
    [["install", "curser"], 'Unknown client "curser". Did you mean cursor?'],
    [["--modle", "x"], "Unknown flag --modle. Did you mean --model?"],
    [["serve", "extra"], 'Unexpected argument "extra" for serve.'],
    [["demo", "--model"], "--model needs a value"],
    [["help", "doktor"], 'Unknown command "doktor". Did you mean doctor?'],
    [["toString"], 'Unknown command "toString".'],
  ])("refuses %j with exit code 2 and nothing on standard output", async (args, message) => {
    const { code, stdout, stderr } = await runBin(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it.each(["serve", "demo", "doctor"])("reports every problem of the settings for %s", async (command) => {
    const config = join(folder, "config.json");
    writeFileSync(config, JSON.stringify({ modle: "x", limits: { concurrentRuns: 0 } }));
    const { code, stdout, stderr } = await runBin([command, "--config", config, "--workspace", "missing"], {
      cwd: folder,
    });
    expect(code).not.toBe(0);
    const told = command === "doctor" ? stdout : stderr;
    expect(told).toContain("modle: unknown setting; did you mean model?");
    expect(told).toContain("limits.concurrentRuns: ");
    expect(told).toContain(`--workspace: ${join(folder, "missing")} does not exist`);
    if (command !== "doctor") expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });
});

describe("serve", () => {
  it("answers initialize, writes nothing but protocol and ends with its input", async () => {
    const args = ["--workspace", folder, "--data-dir", join(folder, "data"), "--log-level", "debug"];
    const { code, stdout } = await runBin(args, { input: INITIALIZE });
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      id: 1,
      result: { serverInfo: { name: "deepagent-mcp", version } },
    });
  });

  it("refuses an address that other machines reach", async () => {
    const words = ["serve", "--http", "--host", "0.0.0.0", "--workspace", folder];
    const { code, stdout, stderr } = await runBin(words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("Other machines can reach --host 0.0.0.0");
  });
});

it("draws the agent's graph", async () => {
  const args = ["--model", "offline", "--workspace", folder, "--data-dir", join(folder, "data")];
  const { code, stdout } = await runBin(["graph", ...args]);
  expect({ code, drawing: stdout }).toEqual({
    code: 0,
    drawing: expect.stringMatching(/^(%%|---|graph TD)/),
  });
  for (const node of ["model", "approval", "tools"]) expect(stdout).toContain(node);
});

describe("doctor", () => {
  it("finds everything a run needs", async () => {
    const args = ["--model", "offline", "--workspace", folder, "--data-dir", join(folder, "data")];
    const { code, stdout } = await runBin(["doctor", ...args]);
    expect(stdout).toContain("All checks passed. You're ready to start a run.");
    for (const name of ["Node", "Workspace", "Data folder", "Model", "Storage", "Search"])
      expect(stdout).toMatch(new RegExp(`^✔ ${name} `, "m"));
    expect(code).toBe(0);
  });

  it("says what is missing, and never a key", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    const { code, stdout } = await runBin(["doctor", "--data-dir", join(file, "data")], {
      cwd: homedir(),
      env: { ANTHROPIC_API_KEY: "sk-secret-value", DEEPAGENT_MODEL: "openai:gpt-x" },
    });
    expect(code).toBe(1);
    for (const name of ["Workspace", "Data folder", "Model"])
      expect(stdout).toMatch(new RegExp(`^✖ ${name} `, "m"));
    expect(stdout).toContain("--workspace DIR");
    expect(stdout).toContain("OPENAI_API_KEY");
    expect(stdout).not.toContain("sk-secret-value");
  });

  it("leaves the data folder as it was", async () => {
    const data = join(folder, "data");
    mkdirSync(data);
    await runBin(["doctor", "--model", "offline", "--workspace", folder, "--data-dir", data]);
    expect(readdirSync(data)).toEqual([]);
  });
});
