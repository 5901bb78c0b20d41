// Updates of an open page: 24 agents at work, 5,000 events stored. What a browser is sent for each, and how long it
// works on it. Needs Chromium (CHROMIUM_PATH, or on PATH).
// Usage: node bench/page/updates.mjs [updates]
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { PAGE_ASSET, pageAsset } from "../../scripts/page-assets.mjs";
import { loadSources } from "../../scripts/sources.mjs";

const UPDATES = Number(process.argv[2] ?? 40);
const [AGENTS, EVENTS, ME] = [24, 5000, "local"];

const texts = {
  name: "texts",
  setup({ onLoad }) {
    onLoad({ filter: PAGE_ASSET }, async ({ path }) => ({ contents: await pageAsset(path), loader: "text" }));
  },
};
const sources = await loadSources(
  `
  export { sqliteRuns } from "./src/storage/sqlite/runs/repository.ts";
  export { RUN_MIGRATIONS } from "./src/runs/sql/schema.ts";
  export { createRunService } from "./src/runs/supervisor.ts";
  export { openDatabase } from "./src/storage/sqlite/database.ts";
  export { migrate } from "./src/storage/sqlite/migrations.ts";
  export { StateBackend } from "./src/backends/stores/state.ts";
  export { silentLogger } from "./src/core/logger.ts";
  export { entryOf } from "./src/runs/events.ts";
  export { openPageServer } from "./src/server/page/page-server.ts";
`,
  [texts],
);
const folder = mkdtempSync(join(tmpdir(), "deepagent-page-"));
const database = sources.openDatabase(join(folder, "runs.db"), { synchronous: "OFF" });
sources.migrate(database, "runs", sources.RUN_MIGRATIONS);
const repository = sources.sqliteRuns(database);
const work = repository.work({});
const usage = { inputTokens: 1000, outputTokens: 50, cachedInputTokens: 800 };
const ids = { runId: "run_bench", newThreadId: "thr_bench" };
// The run began twenty minutes ago.
let time = Date.now() - 1_200_000;
await repository.create(ME, { task: "Review all services" }, { ...ids, environment: "seed", now: time });
const request = { owner: "seed", environment: "seed", now: Date.now(), expiresAt: Date.now() + 3_600_000 };
const { lease } = await repository.claimNext(request, 10);
const record = (event) => work.record(lease, [sources.entryOf(event)], time);
const paths = Array.from({ length: AGENTS }, (_, index) => [
  { callId: `c${index}`, name: "general-purpose", task: `Review service ${index} and its configuration` },
]);
for (const [index, agent] of paths.entries()) {
  const about = { agent, callId: `c${index}`, name: "general-purpose" };
  await record({ kind: "subagent_started", ...about, description: agent[0].task });
}
let made = 0;
async function step() {
  const agent = paths[made % AGENTS];
  const call = { agent, callId: `t${(made += 1)}`, tool: "grep" };
  const text = `I look at part ${made} of the configuration.`;
  await record({ kind: "model_called", agent, model: "m", usage, text, costUsd: 0.01 });
  await record({ kind: "tool_started", ...call, summary: `grep send${made}( in /workspace/` });
  await record({ kind: "tool_finished", ...call, status: "success", summary: `${made % 9} matches` });
}
for (let event = 0; event < EVENTS; event += 3) {
  time += (1_190_000 * 3) / EVENTS;
  await step();
}

const runs = sources.createRunService({
  runs: repository,
  agentFor: async () => Promise.reject(new Error("nothing is worked on")),
  tree: async () => new sources.StateBackend({ files: {} }),
  checkpoints: async () => undefined,
  treeWithThread: async () => sources.StateBackend,
  searchMemories: async () => ({ hits: [] }),
  drawing: async () => "",
  preflight: async () => undefined,
  environment: "bench",
  concurrentRuns: 0,
  log: sources.silentLogger,
});
const pages = await sources.openPageServer({
  runs: async () => runs,
  clock: Date.now,
  key: Buffer.alloc(32, 7),
  openCommand: () => undefined,
  settings: {},
  logger: sources.silentLogger,
});
const executablePath =
  process.env.CHROMIUM_PATH ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable");
await devtools.send("Network.enable");
let bytes = 0;
let total = 0;
devtools.on("Network.dataReceived", ({ dataLength }) => (bytes += dataLength));
devtools.on("Network.loadingFinished", ({ encodedDataLength }) => (total += encodedDataLength));
await page.addInitScript(() => {
  globalThis.seen = { shift: 0, longest: 0 };
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) seen.shift += value;
  }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.longest = Math.max(seen.longest, duration);
  }).observe({ type: "longtask", buffered: true });
});
const shown = () => page.locator(".tl-body [id^=agent-]").first().waitFor();

/** Opens the run, and tells when its content was painted first. */
async function look(how) {
  const start = performance.now();
  total = 0;
  await how();
  await shown();
  const ms = performance.now() - start;
  await page.waitForTimeout(1000);
  const { shift, longest } = await page.evaluate(() => seen);
  return {
    ms: Math.round(ms),
    kB: Math.round(total / 1000),
    shift: shift.toFixed(3),
    longestTaskMs: longest,
  };
}
const link = pages.link({ principal: ME, purpose: "decide", run: "run_bench" });
const looks = { cold: await look(() => page.goto(link)), warm: await look(() => page.reload()) };

const taskMs = async () => {
  const { metrics } = await devtools.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration").value * 1000;
};
const until = async (done) => {
  while (!(await done())) await page.waitForTimeout(50);
};
await page.waitForTimeout(2000);
const [sizes, times] = [[], []];
for (let update = 0; update < UPDATES; update += 1) {
  // What the browser does without updates counts for none of them.
  const idleFrom = await taskMs();
  await page.waitForTimeout(700);
  const idle = (await taskMs()) - idleFrom;
  const from = await taskMs();
  bytes = 0;
  time = Date.now();
  await step();
  await until(() => bytes > 100);
  await page.waitForTimeout(700);
  sizes.push(bytes);
  times.push((await taskMs()) - from - idle);
}
const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
console.log(looks);
console.log(
  `${UPDATES} updates, median: ${median(sizes)} bytes, ${median(times).toFixed(1)} ms of browser CPU`,
);
await browser.close();
await pages.close();
await runs.close();
database.close();
rmSync(folder, { recursive: true });
process.exit();
