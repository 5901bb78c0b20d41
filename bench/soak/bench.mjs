/**
 * Soak: whether a server that works for many clients holds ever more memory, and what an open run holds.
 *
 * Starts the built program over HTTP on loopback. 50 clients of both eras start runs with the offline model, one
 * after the other, and follow each to its end. Prints the resident memory of each minute.
 * With `open N`: starts N runs, each of which waits for a person's approval, and prints what one of them adds.
 *
 * Usage: npm run build && node bench/soak/bench.mjs [minutes | open N]
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, platform, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [mode = "10", count = "1000"] = process.argv.slice(2);
const OPEN_RUNS = mode === "open" ? Number(count) : 0;
const MINUTES = mode === "open" ? 0 : Number(mode);
const CLIENTS = 50;
const SAMPLE_MS = 1000;
const CALL_MS = 300_000;

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const scratch = mkdtempSync(join(tmpdir(), "deepagent-soak-"));
const server = await serve(OPEN_RUNS > 0 ? "workspace" : "none");
try {
  if (OPEN_RUNS > 0) await weigh();
  else await soak();
} finally {
  server.child.kill();
  await server.exited;
  rmSync(scratch, { recursive: true, force: true });
}

/** Starts the program in folders of its own; `write` says which changes wait for a person. */
async function serve(write) {
  const workspace = join(scratch, "workspace");
  mkdirSync(workspace);
  writeFileSync(
    join(workspace, "billing.md"),
    `# Billing\n\n${"An invoice is sent on the first.\n".repeat(40)}`,
  );
  const config = join(scratch, "config.json");
  const limits = { concurrentRuns: 8, openRuns: 1_000_000 };
  writeFileSync(
    config,
    JSON.stringify({ approvals: { write }, limits, http: { requestsPerMinute: 1_000_000 } }),
  );
  const options = ["--config", config, "--model", "offline", "--workspace", workspace];
  const child = spawn(
    process.execPath,
    [
      ...(process.env["SOAK_NODE_ARGS"] ?? "").split(" ").filter(Boolean),
      join(root, "dist/bin/deepagent-mcp.js"),
      "serve",
      "--http",
      "--port",
      "0",
      "--data-dir",
      join(scratch, "data"),
      ...options,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const exited = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /Serving MCP at (\S+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return { child, exited, url };
  }
  throw new Error("the server ended before it listened");
}

async function connect(number) {
  const mode = number % 2 === 0 ? "legacy" : "auto";
  const client = new Client({ name: `soak-${number}`, version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
  return client;
}

/** Starts a run and follows it with progress; gives its status at the end of the call. */
async function run(client, task, status, until) {
  const options = { timeout: CALL_MS, onprogress: () => undefined };
  const call = async (name, args) =>
    (await client.callTool({ name, arguments: args }, options)).structuredContent;
  let report = await call("run_deep_agent", { task });
  while (report.status === "working" && until()) {
    report = await call("check_deep_agent", { run_id: report.run_id });
  }
  if (report.status !== status && until()) throw new Error(`${report.run_id} is ${report.status}`);
}

async function soak() {
  const end = performance.now() + MINUTES * 60_000;
  const isTime = () => performance.now() < end;
  const samples = [];
  let ended = 0;
  const endedBy = [];
  const work = async (number) => {
    const client = await connect(number);
    while (isTime()) {
      await run(client, "Report what is said about billing.", "completed", () => true);
      ended += 1;
    }
    await client.close();
  };
  const clients = Array.from({ length: CLIENTS }, (_, number) => work(number));
  const sampling = (async () => {
    for (let second = 0; isTime(); second += 1) {
      samples.push(resident());
      endedBy[Math.floor(second / 60)] = ended;
      await delay(SAMPLE_MS);
    }
  })();
  await Promise.all([...clients, sampling]);
  console.log(`| minute | resident, mean (MB) | most (MB) | runs ended |\n|---|---|---|---|`);
  const minutes = endedBy.map((total, minute) => {
    const own = samples.slice(minute * 60, minute * 60 + 60);
    return { mean: own.reduce((sum, value) => sum + value, 0) / own.length, most: Math.max(...own), total };
  });
  for (const [minute, { mean, most, total }] of minutes.entries()) {
    console.log(`| ${minute + 1} | ${mean.toFixed(0)} | ${most.toFixed(0)} | ${total} |`);
  }
  const [second, last] = [minutes[1], minutes.at(-1)];
  if (second) console.log(`\nLast minute / second minute: ${(last.mean / second.mean).toFixed(2)}.`);
  console.log(`${ended} runs, ${CLIENTS} clients. ${machine()}`);
}

/** Leaves every run with an open approval, its clients gone; a warm-up has loaded all that one run needs. */
async function weigh() {
  const open = async (total) => {
    let started = 0;
    const work = async (number) => {
      const client = await connect(number);
      while (started < total) {
        started += 1;
        await run(client, "Report what is said about billing.", "input_required", () => true);
      }
      await client.close();
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, number) => work(number)));
    await delay(10_000);
  };
  await open(200);
  let before = resident();
  console.log(
    `| open runs | resident (MB) | added by each (KB) |\n|---|---|---|\n| 200 | ${before.toFixed(0)} | |`,
  );
  for (let part = 1; part <= 4; part += 1) {
    await open(OPEN_RUNS / 4);
    const now = resident();
    const each = ((now - before) * 1000) / (OPEN_RUNS / 4);
    console.log(`| ${200 + (OPEN_RUNS / 4) * part} | ${now.toFixed(0)} | ${each.toFixed(1)} |`);
    before = now;
  }
  console.log(`\n${machine()}`);
}

function resident() {
  const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1000;
}

function machine() {
  return `Node ${process.version}, ${platform()}, ${cpus().length} cores.`;
}
