/**
 * Hostile length: how long text from outside keeps the server's event loop from turning.
 *
 * Starts the built program over HTTP on loopback. A provider, another MCP server, a workspace and a client, all
 * outside its process, hand it long text of the kinds that test/e2e/hostile-length.test.ts uses, one after the other.
 * Each case is taken twice, and the better one counts: the machine may be at work on something else.
 *
 * Usage: npm run build && node bench/hostile-length/bench.mjs [beginning of the names of entries]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { loadSources } from "../../scripts/sources.mjs";

const SIZE = 5_000_000;
const GOAL_MS = 50;
const wanted = process.argv[2] ?? "";

const {
  ENTRIES,
  connectClient,
  enter,
  hostileModel,
  hostilePerson,
  hostileSettings,
  httpTransport,
  openBrain,
  textsFor,
} = await loadSources(`
  export * from "./test/support/hostile-text.ts";
  export { connectClient } from "./test/support/clients.ts";
  export { openBrain } from "./test/support/harness-brain.ts";
  export { StreamableHTTPClientTransport as httpTransport } from "@modelcontextprotocol/client";
`);
const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const scratch = mkdtempSync(join(tmpdir(), "deepagent-hostile-"));
const workspace = join(scratch, "workspace");
const { think, say } = hostileModel();
const person = hostilePerson();
const brain = await openBrain(think);
const server = await serve();
try {
  await measure();
} finally {
  server.child.kill();
  await brain.close();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 20 });
}

async function serve() {
  const folder = join(scratch, "settings");
  for (const each of [workspace, folder]) mkdirSync(each);
  const env = {
    PATH: process.env.PATH,
    HOME: scratch,
    DEEPAGENT_WORKSPACE: workspace,
    DEEPAGENT_DATA_DIR: join(scratch, "data"),
    ...brain.env,
    ...hostileSettings(folder),
  };
  const watch = fileURLToPath(new URL("watch.mjs", import.meta.url));
  const args = ["--import", watch, join(root, "dist/bin/deepagent-mcp.js"), "serve", "--http", "--port", "0"];
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe", "ipc"] });
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /Serving MCP at (\S+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return { child, folder, url: new URL(url) };
  }
  throw new Error("the server did not start");
}

async function longest() {
  server.child.send("longest");
  const [milliseconds] = await once(server.child, "message");
  return milliseconds;
}

async function held(entry, text) {
  // 2026-07-28: every request stands for itself, so that a refused one ends nothing.
  const open = { modern: () => new httpTransport(server.url) };
  const to = await connectClient(open, { kind: "v2-modern", person: person.answer });
  person.expect(entry, text);
  for (const name of readdirSync(workspace)) rmSync(join(workspace, name), { recursive: true });
  await longest();
  await enter(entry, text, { workspace, folder: server.folder, to, say });
  const time = await longest();
  await to.close();
  return time;
}

async function measure() {
  // The first run loads the agent.
  await held({ name: "nothing" }, "");
  console.log(`| text comes in by | longest hold-up (ms) | with | above ${GOAL_MS} ms |`);
  console.log("|---|---|---|---|");
  for (const entry of ENTRIES.filter(({ name }) => name.startsWith(wanted))) {
    const rows = [];
    for (const { name, text } of textsFor(entry, SIZE, 1)) {
      rows.push({ name, time: Math.min(await held(entry, text), await held(entry, text)) });
    }
    const [worst] = rows.toSorted((a, b) => b.time - a.time);
    const above = rows
      .filter(({ time }) => time > GOAL_MS)
      .map(({ name, time }) => `${name} ${time.toFixed(0)}`);
    console.log(
      `| ${entry.name} | ${worst.time.toFixed(0)} | ${worst.name} | ${above.join(", ") || "none"} |`,
    );
  }
}
