/**
 * Cold start: time from spawn to the answer of the first request, and resident memory at that moment.
 *
 * Every round starts each server once, in turn, so that a busy machine is busy for all of them. Prints
 * medians and their ratio to a bare server of the same SDK. Run `npm run build` first.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, platform, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROUNDS = Number(process.argv[2] ?? 9);
const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const scratch = mkdtempSync(join(tmpdir(), "cold-start-"));

const clientInfo = { name: "bench", version: "1.0.0" };
const REQUESTS = {
  initialize: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
  "server/discover": {
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": clientInfo,
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
};

/** No server, but the least that any program in Node takes. */
const NODE = `process.stdout.write('{"id":1,"result":{}}\\n'); process.stdin.resume()`;

const SERVERS = [
  { name: "bare SDK v2 server", args: [join(here, "bare-server.mjs")], methods: Object.keys(REQUESTS) },
  { name: "plain Node", args: ["-e", NODE], methods: ["initialize"] },
  {
    name: "deepagent-mcp",
    args: [
      join(root, "dist/bin/deepagent-mcp.js"),
      "--data-dir",
      join(scratch, "data"),
      "--workspace",
      scratch,
    ],
    methods: Object.keys(REQUESTS),
  },
  {
    name: "server-filesystem (SDK v1)",
    args: [join(root, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), scratch],
    methods: ["initialize"],
  },
];

try {
  const samples = await measure();
  console.log(report(samples));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function measure() {
  const samples = new Map();
  for (let round = -1; round < ROUNDS; round++) {
    for (const method of Object.keys(REQUESTS)) {
      for (const server of SERVERS.filter(({ methods }) => methods.includes(method))) {
        const sample = await start(server, method);
        // The first round only warms the file cache.
        if (round >= 0) push(samples, `${server.name} ${method}`, sample);
      }
    }
  }
  return samples;
}

function push(samples, key, sample) {
  samples.set(key, [...(samples.get(key) ?? []), sample]);
}

/** Starts the server, sends one request, waits for its result and ends the server. */
async function start(server, method) {
  const request = { jsonrpc: "2.0", id: 1, method, params: REQUESTS[method] };
  const begin = performance.now();
  const child = spawn(process.execPath, server.args, { stdio: ["pipe", "pipe", "ignore"] });
  const exited = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  child.stdin.write(`${JSON.stringify(request)}\n`);
  for await (const line of createInterface({ input: child.stdout })) {
    const milliseconds = performance.now() - begin;
    const megabytes = residentMegabytes(child.pid);
    const answer = JSON.parse(line);
    if (answer.id !== 1 || answer.result === undefined) throw new Error(`${server.name} answered ${line}`);
    child.stdin.end();
    child.kill();
    await exited;
    return { milliseconds, megabytes };
  }
  throw new Error(`${server.name} ended without an answer to ${method}`);
}

function residentMegabytes(pid) {
  const kilobytes =
    platform() === "linux"
      ? Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])
      : Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" }));
  return kilobytes / 1024;
}

function report(samples) {
  const [floor] = SERVERS;
  const rows = SERVERS.flatMap((server) =>
    server.methods.map((method) => {
      const of = (name, field) => median(samples.get(`${name} ${method}`).map((sample) => sample[field]));
      const time = of(server.name, "milliseconds");
      const ratio = time / of(floor.name, "milliseconds");
      const memory = of(server.name, "megabytes");
      return `| ${server.name} | \`${method}\` | ${time.toFixed(0)} ms | ${ratio.toFixed(2)} | ${memory.toFixed(0)} MB |`;
    }),
  );
  return [
    `Node ${process.version}, ${platform()}, ${cpus().length} cores, median of ${ROUNDS}, interleaved`,
    "",
    "| server | first request | answer after | ratio | resident |",
    "|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

function median(values) {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)];
}
