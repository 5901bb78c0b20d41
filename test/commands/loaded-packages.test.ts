import { readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { z } from "zod";
import { BIN, INITIALIZE, ROOT, runBin } from "./built-bin.ts";
import { terminalHome, waitingRun, type TerminalHome } from "./terminal-home.ts";

/** The packages in each file of the program, as the build wrote them down. */
const BUNDLED = z
  .record(z.string(), z.array(z.string()))
  .parse(JSON.parse(readFileSync(join(ROOT, "node_modules/.cache/deepagent-program.json"), "utf8")));

const AGENT = /^(@langchain\/|langchain$)/;

test("the handshake loads one small file", async () => {
  const files = await filesLoadedBy(terminalHome(), [], INITIALIZE);
  expect(files.map((file) => basename(file))).toEqual(["deepagent-mcp.js"]);
  expect(statSync(BIN).size).toBeLessThan(19_500);
  expect(statSync(join(dirname(BIN), "handshake.json")).size).toBeLessThan(58_000);
});

test("a server loads neither agent nor storage before it is used, and all that it loads is small", async () => {
  // The level of its log is the program's affair, so that it is loaded.
  const files = await filesLoadedBy(terminalHome(), ["--log-level", "error"], INITIALIZE);
  const loaded = packagesIn(files);
  expect(loaded).toContain("@modelcontextprotocol/server");
  expect(loaded.filter((name) => /^@(agentclientprotocol|ag-ui)\//.test(name))).toEqual([]);
  expect(loaded.filter((name) => AGENT.test(name) || /sqlite|^openai$|^langsmith$/.test(name))).toEqual([]);
  const sizes = files.map((file) => statSync(file).size);
  // Each file and each byte of it takes time before the first answer.
  expect(sizes.length).toBeLessThan(9);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(965_000);
});

test("looking at a run and deciding for it load nothing of the agent", { tags: ["long"] }, async () => {
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

test(
  "doctor loads nothing of the agent where no other MCP server is configured",
  { tags: ["long"] },
  async () => {
    const loaded = await packagesLoadedBy(terminalHome(), ["doctor"]);
    expect(loaded.filter((name) => AGENT.test(name))).toEqual([]);
  },
);

/** The installed packages that the program as it is shipped imports for these words. */
const packagesLoadedBy = async (home: TerminalHome, words: readonly string[]): Promise<string[]> =>
  packagesIn(await filesLoadedBy(home, words));

function packagesIn(files: readonly string[]): string[] {
  const names = files.flatMap(
    (file) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? BUNDLED[basename(file)] ?? [],
  );
  return [...new Set(names)];
}

async function filesLoadedBy(
  { workspace, env }: TerminalHome,
  words: readonly string[],
  input = "",
): Promise<string[]> {
  const folder = filesIn();
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
  const urls = readFileSync(file, "utf8").split("\n");
  return urls.filter((url) => url.startsWith("file:")).map((url) => fileURLToPath(url));
}

const moduleOf = (source: string): string => `data:text/javascript,${encodeURIComponent(source)}`;
