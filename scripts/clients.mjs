/**
 * Lets clients of other projects drive a run of the built program to its end, over stdio and HTTP, with the
 * offline model and an approval on the way: AI SDK, which shows forms, LangChain MCP adapters, which do not,
 * and the command line of the MCP Inspector in both protocol eras. The Inspector also checks the tools, the
 * app and the skills. They need Node 22 and are installed into test/conformance/clients (about 400 MB) when
 * they are not there.
 */
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const kit = join(root, "test/conformance/clients");
const node = join(kit, "node_modules/node/bin/node");
const inspector = join(kit, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
const bin = join(root, "dist/bin/deepagent-mcp.js");
const scratch = mkdtempSync(join(tmpdir(), "deepagent-clients-"));
const workspace = join(scratch, "workspace");
const report = join(workspace, "deepagent-report.md");
const SETTINGS = ["--model", "offline", "--workspace", workspace, "--data-dir", join(scratch, "data")];
const TASK = "List every TODO and write a report.";
/** How often an open run is looked at before it counts as stuck. */
const MAX_CALLS = 20;

/** One tool call by each client, which gives what it printed; `asks`: it shows forms, and approves. */
const CLIENTS = {
  "AI SDK": { call: kitProgram("ai-sdk.mjs"), asks: true },
  "LangChain MCP adapters": { call: kitProgram("langchain.mjs") },
  "MCP Inspector, 2025 era": { call: inspectorCall("legacy") },
  "MCP Inspector, 2026-07-28": { call: inspectorCall("modern") },
};

/** What the Inspector finds out about the server; it exits with an error when something is wrong. */
const CHECKS = {
  "schemas of the tools": ["--method", "tools/list", "--strict"],
  "the app": ["--method", "tools/call", "--tool-name", "run_deep_agent", "--app-info"],
  "the skills": ["--method", "skills/list", "--verify", "--require-digests"],
};

/** Starts a run and looks at it until it has ended, while somebody else approves what it waits for. */
async function drive({ call, asks }, target) {
  rmSync(report, { force: true });
  const done = new AbortController();
  const approving = asks ? undefined : approveAll(done.signal);
  try {
    let printed = await call(target, "run_deep_agent", { task: TASK });
    for (let calls = 0; calls < MAX_CALLS && !/run_[\w-]+ completed\./.test(printed); calls += 1) {
      const [runId] = /run_[\w-]{20,}/.exec(printed) ?? [];
      if (runId === undefined) throw new Error(`There is no run:\n${printed}`);
      printed = await call(target, "check_deep_agent", { run_id: runId, wait_seconds: 30 });
    }
    if (!existsSync(report)) throw new Error(`The run did not end with a report:\n${printed}`);
  } finally {
    done.abort();
    await approving;
  }
}

/** What a person does in a terminal beside a client that shows no forms. */
async function approveAll(signal) {
  while (!signal.aborted) {
    await sleep(500);
    const listed = await output(process.execPath, [
      bin,
      "runs",
      "list",
      "--json",
      "--limit",
      "1",
      ...SETTINGS,
    ]);
    const [newest] = listed.split("\n").filter((line) => line !== "");
    const { run_id: runId, status } = JSON.parse(newest ?? "{}");
    if (status !== "input_required") continue;
    await output(process.execPath, [bin, "runs", "answer", runId, "--approve", ...SETTINGS]);
  }
}

function kitProgram(program) {
  return (...args) => output(node, [join(kit, program), ...args.map((arg) => JSON.stringify(arg))]);
}

function inspectorCall(era) {
  return (target, tool, args) => {
    const call = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(args)];
    return inspect(target, "--protocol-era", era, ...call);
  };
}

function inspect(target, ...args) {
  const server = "url" in target ? [target.url] : [target.command, ...target.args];
  return output(node, [inspector, "--cli", ...server, ...args]);
}

async function check(name, work) {
  try {
    await work();
    console.log(`✓ ${name}`);
  } catch (error) {
    console.log(`✗ ${name}`);
    console.error(error.message);
    process.exitCode = 1;
  }
}

/** The program with a port of its own. */
async function serveHttp() {
  const server = spawn(process.execPath, [bin, "serve", "--http", "--port", "0", ...SETTINGS], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  for await (const line of createInterface({ input: server.stderr })) {
    const [url] = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line) ?? [];
    if (url === undefined) continue;
    server.stderr.resume();
    return { url, stop: () => server.kill() };
  }
  throw new Error("The server over HTTP did not start.");
}

function output(command, args) {
  return new Promise((resolve, reject) => {
    execFile(
      command,
      args,
      { cwd: kit, timeout: 300_000, maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${command} ${args.join(" ")} failed: ${stderr || error.message}\n${stdout}`));
      },
    );
  });
}

let http;
try {
  if (!existsSync(bin)) throw new Error("The program is not built: run npm run build first.");
  if (!existsSync(node)) {
    console.log("Installing the clients and Node 22 …");
    await output("npm", ["ci", "--no-audit", "--no-fund"]);
  }
  mkdirSync(workspace);
  writeFileSync(join(workspace, "a.js"), "// TODO: everything\n");
  http = await serveHttp();
  const targets = {
    stdio: { command: process.execPath, args: [bin, "serve", ...SETTINGS] },
    HTTP: { url: http.url },
  };
  for (const [transport, target] of Object.entries(targets)) {
    for (const [name, client] of Object.entries(CLIENTS)) {
      await check(`${name} over ${transport}`, () => drive(client, target));
    }
  }
  for (const [name, args] of Object.entries(CHECKS)) {
    await check(`MCP Inspector: ${name}`, () => inspect(targets.stdio, ...args));
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  http?.stop();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
}
