import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { INITIALIZE, runBin } from "./built-bin.ts";
import { terminalHome, waitingRun, type TerminalHome } from "./terminal-home.ts";

const AGENT = /^(@langchain\/|langchain$)/;

test("the handshake loads neither agent nor storage", async () => {
  expect(await packagesLoadedBy(terminalHome(), [], INITIALIZE)).toEqual([]);
});

test("looking at a run and deciding for it load nothing of the agent", async () => {
  const home = terminalHome();
  const run = await waitingRun(home);
  for (const words of [
    ["list"],
    ["show", run],
    ["tell", run, "Keep it short."],
    ["answer", run, "--approve"],
    ["cancel", run],
  ]) {
    const loaded = await packagesLoadedBy(home, ["runs", ...words]);
    expect(loaded.filter((name) => AGENT.test(name))).toEqual([]);
  }
  // What a thread holds is read by the agent's libraries.
  expect(await packagesLoadedBy(home, ["runs", "points", run])).toContain("@langchain/langgraph");
});

test("doctor loads nothing of the agent where no other MCP server is configured", async () => {
  const loaded = await packagesLoadedBy(terminalHome(), ["doctor"]);
  expect(loaded.filter((name) => AGENT.test(name))).toEqual([]);
});

/** The installed packages that the program as it is shipped imports for these words. */
async function packagesLoadedBy(
  { workspace, env }: TerminalHome,
  words: readonly string[],
  input = "",
): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "loaded-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "modules");
  const hooks = `
import { appendFileSync } from "node:fs";
export function load(url, context, next) {
  appendFileSync(${JSON.stringify(file)}, url + "\\n");
  return next(url, context);
}`;
  const registered = `import { register } from "node:module"; register(${JSON.stringify(moduleOf(hooks))});`;
  const { code, stdout, stderr } = await runBin(words, {
    cwd: workspace,
    env: { ...env, NODE_OPTIONS: `--import ${moduleOf(registered)}` },
    input,
  });
  expect({ words, code }, stdout + stderr).toEqual({ words, code: 0 });
  const names = readFileSync(file, "utf8").matchAll(/\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//g);
  return [...new Set([...names].map(([, name = ""]) => name))];
}

const moduleOf = (source: string): string => `data:text/javascript,${encodeURIComponent(source)}`;
