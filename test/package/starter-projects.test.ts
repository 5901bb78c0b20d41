// @module-tag long
// Projects that the starter wrote are installed and used: their own tests, and their own start command.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ROOT, cleanEnv } from "../commands/built-bin.ts";
import { freePort } from "../support/free-port.ts";
import { connect } from "../support/harness.ts";
import { httpConnector } from "../support/harness-http-process.ts";

const Manifest = z.object({
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "projects-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true, maxRetries: 20 }));

const env = () => ({ ...cleanEnv(), DEEPAGENT_DATA_DIR: join(root, "data"), NO_COLOR: "1" });

/** A new project, which depends on this checkout, packed. */
async function project(template: string, name: string = template): Promise<string> {
  const starter = join(ROOT, "create/create-deepagent.mjs");
  await promisify(execFile)(process.execPath, [starter, name, "-t", template], { cwd: root, env: env() });
  return join(root, name);
}

/**
 * Installs a project as npm would: the tarball that its package.json names is unpacked, and its other packages are those
 * of this checkout, without the minute that fetching them takes.
 */
function install(folder: string): void {
  const modules = join(folder, "node_modules");
  const manifest = (path: string) => Manifest.parse(JSON.parse(readFileSync(path, "utf8")));
  const { dependencies, devDependencies } = manifest(join(folder, "package.json"));
  const main = join(modules, "deepagent-mcp");
  mkdirSync(main, { recursive: true });
  const tarball = join(folder, dependencies["deepagent-mcp"]?.replace("file:", "") ?? "");
  execFileSync("tar", ["-xzf", tarball, "--strip-components=1", "-C", main]);
  const behind = manifest(join(main, "package.json"));
  const others = { ...behind.dependencies, ...behind.optionalDependencies };
  for (const name of Object.keys({ ...dependencies, ...devDependencies, ...others })) {
    const target = join(modules, name);
    if (existsSync(target) || !existsSync(join(ROOT, "node_modules", name))) continue;
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), target);
  }
}

async function npm(folder: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("npm", args, { cwd: folder, env: env() });
  return stdout;
}

type Use = (said: () => string) => Promise<void>;

/** Starts a project that serves, until `use` is done with what it has said. */
async function withStarted(folder: string, flags: string[], use: Use): Promise<void> {
  // npm starts the program as a process of its own, which has to end with it.
  const child = spawn("npm", ["start", "--", ...flags], { cwd: folder, env: env(), detached: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (said += String(piece)));
  const exited = once(child, "exit");
  try {
    await use(() => said);
  } finally {
    if (child.exitCode === null) process.kill(-(child.pid ?? 0));
    await exited;
  }
}

const PASSED = /^# fail 0$/m;

it.each(["server", "library", "langgraph"])("the tests of a new %s pass", async (template) => {
  const folder = await project(template);
  install(folder);
  expect(await npm(folder, "test", "--", "--test-reporter=tap")).toMatch(PASSED);
});

it("a library gives its agent a task, and changes nothing that nobody approved", async () => {
  const folder = join(root, "library");
  const before = readdirSync(join(folder, "workspace"));
  expect(await npm(folder, "start")).toContain("/workspace/notes.md:5 `TODO: show dates in the list`");
  expect(await npm(folder, "start", "--", "Report what is in the notes")).toContain(
    "The agent wants to call write_file",
  );
  expect(readdirSync(join(folder, "workspace"))).toEqual(before);
});

it("a server serves clients, with the settings of its folder", async () => {
  await withStarted(join(root, "server"), ["--port", "0"], async (said) => {
    const address = (): string => /Serving MCP at (\S+)/.exec(said())?.[1] ?? "";
    await expect.poll(address).not.toBe("");
    const client = await connect(httpConnector(address()), "v2-modern");
    const { text } = await client.call("run_deep_agent", { task: "Which TODO is there? Do not change it." });
    expect(text).toContain("/workspace/notes.md:5");
  });
});

describe("installed by npm", { tags: "registry" }, () => {
  it.each(["server", "library"])("a new %s passes its tests", async (template) => {
    const folder = await project(template, `fetched-${template}`);
    const { stderr } = await promisify(execFile)("npm", ["install", "--no-audit", "--no-fund"], {
      cwd: folder,
      env: env(),
    });
    expect(stderr).not.toMatch(/ERESOLVE|EBADENGINE|deprecated|install-scripts/);
    expect(await npm(folder, "test", "--", "--test-reporter=tap")).toMatch(PASSED);
  });

  it("a langgraph project serves its graph", async () => {
    const folder = await project("langgraph", "fetched-langgraph");
    await npm(folder, "install", "--no-audit", "--no-fund");
    const port = await freePort();
    await withStarted(folder, ["--no-browser", "--port", String(port)], async (said) => {
      await expect.poll(said).toContain("Server running");
      const post = async (path: string, body: object): Promise<unknown> => {
        const headers = { "content-type": "application/json" };
        const address = `http://localhost:${port}${path}`;
        return (await fetch(address, { method: "POST", headers, body: JSON.stringify(body) })).json();
      };
      const content = "Which TODO is in the notes? Do not change anything.";
      const input = { messages: [{ role: "user", content }] };
      const state = await post("/runs/wait", { assistant_id: "agent", input });
      expect(JSON.stringify(state)).toContain("/workspace/notes.md:5");
    });
  });
});
