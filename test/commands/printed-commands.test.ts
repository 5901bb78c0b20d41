// @module-tag long
// Each printed line is run in a shell of its own.
import { execFile, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { program } from "../support/harness-stdio.ts";
import { BIN, cleanEnv, type Outcome, ROOT, runBin } from "./built-bin.ts";

let folder: string;
let workspace: string;
let dataDir: string;
beforeEach(() => {
  folder = filesIn();
  workspace = join(folder, "it's my work");
  dataDir = join(folder, "data of runs");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "a.md"), "# A\nTODO: b\n");
});

/** A shell of the same person, in another folder and with nothing of the environment of the first command. */
function paste(line: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const env = { PATH: process.env["PATH"], HOME: folder };
    execFile("sh", ["-c", line], { cwd: "/", env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** The line below or inside a text that has `words`. */
function printed(text: string, words: string): string {
  const line = text.split("\n").find((candidate) => candidate.includes(words));
  if (line === undefined) throw new Error(`no line has ${words}: ${text}`);
  return line.trim();
}

/** The page that a pasted command serves is named on its first line. */
function opened(line: string): Promise<string> {
  const env = { PATH: process.env["PATH"], HOME: folder };
  const child = spawn("sh", ["-c", `exec ${line} --no-browser`], { cwd: "/", env });
  onTestFinished(() => void child.kill());
  return new Promise((resolve, reject) => {
    child.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString()));
    child.once("exit", (code) => reject(new Error(`${line} ended with ${code}`)));
  });
}

it("what a run in the terminal says goes on from anywhere", async () => {
  const args = ["--model", "offline", "--workspace", workspace, "--data-dir", dataDir];
  const options = { program: await program() };
  const first = await runBin(["run", "List every TODO and write a report", ...args], options);
  expect(first.stderr).toContain("is waiting for approval");
  expect(await opened(printed(first.stderr, " runs open "))).toContain("http://127.0.0.1");
  const answered = await paste(`${printed(first.stderr, " runs answer ")} --approve`);
  expect(answered).toMatchObject({ code: 0, stderr: "" });
  const ended = await paste(printed(answered.stdout, " run --resume "));
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining("completed") });
  const again = await paste(printed(answered.stdout, " run --resume "));
  const next = await paste(`${printed(again.stderr, " run --thread ")} --yes`);
  expect(next).toMatchObject({ code: 0, stderr: expect.stringContaining("completed") });
  const unknown = await runBin(["runs", "show", "run_none", "--data-dir", dataDir], options);
  const [, list = ""] = /run_none"\. (.*) shows them/.exec(unknown.stderr) ?? [];
  expect((await paste(list)).stdout).toContain("completed");
});

it("a client over stdio without forms is told a line that opens the run", async () => {
  const client = new Client({ name: "plain", version: "1.0.0" });
  const flags = ["--workspace", workspace, "--data-dir", dataDir, "--log-level", "silent"];
  const args = [await program(), "--model", "offline", ...flags];
  await client.connect(new StdioClientTransport({ command: process.execPath, args }));
  onTestFinished(() => client.close());
  let call = { name: "run_deep_agent", arguments: { task: "Write a report" } as Record<string, unknown> };
  for (let text = ""; ;) {
    const { content, structuredContent } = await client.callTool(call);
    text = JSON.stringify(content);
    const [, line] = /which this command opens: (.*?), or in a client/.exec(text) ?? [];
    if (line !== undefined) {
      expect(await opened(String(JSON.parse(`"${line}"`)))).toContain("http://127.0.0.1");
      return;
    }
    call = { name: "check_deep_agent", arguments: { run_id: Object(structuredContent)["run_id"] } };
  }
});

it("is short where the shell knows the program, and by npx where npx started a published one", async () => {
  const shell = join(folder, "bin");
  mkdirSync(shell);
  symlinkSync(BIN, join(shell, "deepagent-mcp"));
  const PATH = `${shell}:${process.env["PATH"]}`;
  expect((await runBin(["bogus"], { env: { PATH } })).stderr).toContain("Run deepagent-mcp --help");
  expect((await runBin(["bogus"])).stderr).toContain(`Run node ${BIN} --help`);

  const installed = join(folder, "_npx/0a1b/node_modules/deepagent-mcp");
  cpSync(join(ROOT, "dist/bin"), join(installed, "dist/bin"), { recursive: true });
  const { private: _, ...manifest } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  writeFileSync(join(installed, "package.json"), JSON.stringify(manifest));
  const told = await new Promise((resolve) => {
    const bin = join(installed, "dist/bin/deepagent-mcp.js");
    execFile(process.execPath, [bin, "bogus"], { env: cleanEnv() }, (_error, _stdout, stderr) =>
      resolve(stderr),
    );
  });
  expect(told).toContain("Run npx -y deepagent-mcp --help");
});
