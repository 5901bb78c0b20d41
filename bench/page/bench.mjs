// The page with 1,000 runs and a run of 10,000 events by 100 agents: what each screen costs the server, how long it
// holds the event loop, and what a browser has to fetch.
// Usage: node bench/page/bench.mjs [runs] [events]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { pageAsset } from "../../scripts/page-assets.mjs";
import { loadSources } from "../../scripts/sources.mjs";

const RUNS = Number(process.argv[2] ?? 1000);
const EVENTS = Number(process.argv[3] ?? 10_000);
const AGENTS = 100;
const ROUNDS = 15;
const ME = "local";

const sources = await loadSources(`
  export { sqliteRuns } from "./src/storage/sqlite/runs/repository.ts";
  export { RUN_MIGRATIONS } from "./src/runs/sql/schema.ts";
  export { createRunService } from "./src/runs/supervisor.ts";
  export { createCheckpointer } from "./src/storage/sqlite/checkpoints/checkpointer.ts";
  export { stepScreen } from "./src/server/page/steps.ts";
  export { openDatabase } from "./src/storage/sqlite/database.ts";
  export { migrate } from "./src/storage/sqlite/migrations.ts";
  export { StateBackend } from "./src/backends/stores/state.ts";
  export { silentLogger } from "./src/core/logger.ts";
  export { entryOf } from "./src/runs/events.ts";
  export { homeScreen, reviewScreen, runScreen } from "./src/server/page/screens.ts";
  export { renderContent } from "./src/server/views/room/shell.ts";
`);
const folder = mkdtempSync(join(tmpdir(), "deepagent-page-"));
const database = sources.openDatabase(join(folder, "runs.db"), { synchronous: "OFF" });
sources.migrate(database, "runs", sources.RUN_MIGRATIONS);
const repository = sources.sqliteRuns(database);
const work = repository.work({});
const usage = { inputTokens: 1000, outputTokens: 50, cachedInputTokens: 800 };
const now = Date.now();

async function begin(task) {
  const ids = { runId: `run_${crypto.randomUUID()}`, newThreadId: `thr_${crypto.randomUUID()}` };
  await repository.create(ME, { task }, { ...ids, environment: "seed", now });
  const request = { owner: "seed", environment: "seed", now, expiresAt: now + 3_600_000 };
  return (await repository.claimNext(request, 10)).lease;
}

const record = (lease, event, time = now) => work.record(lease, [sources.entryOf(event)], time);
const called = (agent) => ({
  kind: "model_called",
  agent,
  model: "m",
  usage,
  text: "I look at it.",
  costUsd: 0.01,
});

for (let index = 0; index < RUNS; index += 1) {
  const lease = await begin(
    `Task ${index}: find out how an alarm gets to the pager and where it can get lost`,
  );
  await record(lease, called([]));
  await work.complete(
    lease,
    { answer: `Answer ${index}. ${"It is told at length. ".repeat(100)}` },
    work.inbox(lease),
    now,
  );
}
const lease = await begin("The long one");
const names = Array.from({ length: AGENTS }, (_, index) => [
  { callId: `c${index}`, name: "general-purpose", task: `Part ${index}` },
]);
for (const [index, agent] of names.entries()) {
  const about = { agent, callId: `c${index}`, name: "general-purpose" };
  await record(lease, {
    kind: "subagent_started",
    ...about,
    description: `Look at part ${index}. Then report.`,
  });
}
for (let event = AGENTS; event < EVENTS; event += 3) {
  const agent = names[event % AGENTS];
  const call = { agent, callId: `t${event}`, tool: "grep" };
  await record(lease, called(agent), now + event);
  await record(lease, { kind: "tool_started", ...call, summary: "grep send( in /workspace/" }, now + event);
  await record(
    lease,
    { kind: "tool_finished", ...call, status: "success", summary: "4 matches" },
    now + event + 2,
  );
}

const changing = await begin("The one that changes many files");
for (let index = 0; index < 300; index += 1) {
  const lines = Array.from(
    { length: 100 },
    (_, line) => `+const value${line} = compute("${index}", ${line});`,
  );
  const diff = `@@ -0,0 +1,100 @@\n${lines.join("\n")}`.slice(0, 4000);
  const call = { callId: `w${index}`, tool: "write_file", path: `/workspace/src/part-${index}.ts` };
  await record(
    changing,
    { kind: "file_changed", agent: [], ...call, added: 100, removed: 0, diff },
    now + index,
  );
}

// One call of a long conversation, with arguments and a result of a million characters each.
const lines = Array.from(
  { length: 17_000 },
  (_, line) => `const value${line} = compute("a thing", ${line}); // é`,
);
const long = lines.join("\n").slice(0, 1_000_000);
const writing = await begin("The one that writes a long file");
const step = { callId: "long", tool: "write_file" };
await record(writing, { kind: "tool_started", agent: [], ...step, summary: "write" });
const { events } = await repository.read.journal(ME, writing.runId, 0, 100);
const { seq: longStep } = events.find(({ kind }) => kind === "tool_started");
const checkpointer = sources.createCheckpointer(database);
const { threadId } = await repository.read.run(ME, writing.runId);
const call = { id: "long", name: "write_file", args: { file_path: "/workspace/long.ts", content: long } };
const messages = [
  ...Array.from({ length: 200 }, (_, index) => new AIMessage(`I look at part ${index}.`)),
  new AIMessage({ content: "", tool_calls: [call] }),
  new ToolMessage({ content: long, tool_call_id: "long", name: "write_file" }),
];
let config = { configurable: { thread_id: threadId, checkpoint_ns: "" } };
for (const [index, message] of messages.entries()) {
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(index) };
  config = await checkpointer.put(config, checkpoint, { source: "loop", step: index, parents: {} });
  await checkpointer.putWrites(config, [["messages", [message]]], `task${index}`);
}

/** Made anew for each look at "the first time", so that nothing is remembered. */
const service = () =>
  sources.createRunService({
    runs: repository,
    agentFor: async () => Promise.reject(new Error("nothing is worked on")),
    tree: async () => new sources.StateBackend({ files: {} }),
    checkpoints: async () => checkpointer,
    treeWithThread: async () => sources.StateBackend,
    searchMemories: async () => ({ hits: [] }),
    drawing: async () => "",
    preflight: async () => undefined,
    environment: "bench",
    concurrentRuns: 0,
    log: sources.silentLogger,
  });
const session = { principal: ME, scopes: ["run", "approve", "read"] };
const context = (runs) => ({ runs, session, openCommand: () => undefined, settings: [] });
const none = new URLSearchParams();
const SCREENS = {
  home: (given) => sources.homeScreen(given, none),
  "home, searched": (given) => sources.homeScreen(given, new URLSearchParams({ q: "nothing has this" })),
  review: (given) => sources.reviewScreen(given),
  "work of the long run": async (given) =>
    (await sources.runScreen(given, lease.runId, "work", none)).picture,
  "the same, all events": async (given) =>
    (await sources.runScreen(given, lease.runId, "work", new URLSearchParams({ events: "all" }))).picture,
  "answer of 300 changed files": async (given) =>
    (await sources.runScreen(given, changing.runId, "answer", none)).picture,
  "step of two million characters": async (given) => {
    const screen = await sources.stepScreen(given, writing.runId, longStep);
    return () => screen;
  },
};

const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
console.log(`${RUNS} runs, and one of ${EVENTS} events by ${AGENTS} agents; Node ${process.version}.\n`);
console.log("| screen | first ms | then, median ms | longest hold of the loop ms | JSON kB | gzip kB |");
console.log("|---|---|---|---|---|---|");
for (const [name, screen] of Object.entries(SCREENS)) {
  const runs = service();
  const times = [];
  let html = "";
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  for (let round = 0; round <= ROUNDS; round += 1) {
    const start = performance.now();
    const shown = (await screen(context(runs.as(session))))(now);
    html = JSON.stringify(sources.renderContent(shown));
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  delay.disable();
  const [first, ...others] = times;
  const cells = [first, median(others), delay.max / 1e6].map((value) => value.toFixed(1));
  const sizes = [Buffer.byteLength(html), gzipSync(html).byteLength].map((size) => (size / 1000).toFixed(1));
  console.log(`| ${[name, ...cells, ...sizes].join(" | ")} |`);
  await runs.close();
}
const assets = "src/server/page/assets";
const weights = {
  style: "page.css",
  script: "page.browser.js",
  "font 1": "fonts/inter-latin.woff2",
  "font 2": "fonts/jetbrains-mono-latin.woff2",
};
let sum = 0;
for (const [name, file] of Object.entries(weights)) {
  const text = await pageAsset(join(assets, file));
  const bytes = file.endsWith("woff2")
    ? Buffer.from(text, "base64").byteLength
    : brotliCompressSync(text).byteLength;
  sum += bytes;
  console.log(`${name}: ${(bytes / 1000).toFixed(1)} kB`);
}
console.log(
  `A first visit fetches ${(sum / 1000).toFixed(1)} kB besides the screen, compressed; later ones nothing.`,
);
database.close();
rmSync(folder, { recursive: true, force: true });
