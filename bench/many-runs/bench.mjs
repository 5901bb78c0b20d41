// 200 runs at once in one process: how long a look at a run takes meanwhile, and what an idle run weighs.
// Usage: node bench/many-runs/bench.mjs [runs]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { loadSources } from "../../scripts/sources.mjs";

const RUNS = Number(process.argv[2] ?? 200);
const LATENCY_MS = 50;
const STEPS = 10;
/** Time between two looks, like 200 clients that check every second. */
const LOOK_EVERY_MS = 5;

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

/** Waits as a provider would; writes a file in each step, then asks a person if the task says so. */
class SlowModel extends BaseChatModel {
  _llmType() {
    return "slow";
  }
  bindTools() {
    return this;
  }
  async _generate(messages) {
    await delay(LATENCY_MS);
    const step = messages.filter((message) => message.type === "ai").length;
    const asks = messages.find((message) => message.type === "human").text === "ask";
    const end = asks ? step > 0 : step >= STEPS;
    const args = { file_path: asks ? "/asked.md" : `/step-${step}.md`, content: "x".repeat(500) };
    const message = end
      ? new AIMessage("done")
      : new AIMessage({ content: "", tool_calls: [{ id: `call_${step}`, name: "write_file", args }] });
    return { generations: [{ text: "", message }] };
  }
}

const sources = await loadSources(`
  export { buildAgent } from "./src/agent/agent.ts";
  export { StateBackend } from "./src/backends/stores/state.ts";
  export { snapshotFiles } from "./src/backends/runtime.ts";
  export { silentLogger } from "./src/core/logger.ts";
  export { sqliteRuns } from "./src/storage/sqlite/runs/repository.ts";
  export { RUN_MIGRATIONS } from "./src/runs/sql/schema.ts";
  export { createRunService } from "./src/runs/supervisor.ts";
  export { createCheckpointer } from "./src/storage/sqlite/checkpoints/checkpointer.ts";
  export { openDatabase } from "./src/storage/sqlite/database.ts";
  export { migrate } from "./src/storage/sqlite/migrations.ts";
`);
const folder = mkdtempSync(join(tmpdir(), "deepagent-many-runs-"));

function open(name) {
  const database = sources.openDatabase(join(folder, `${name}.db`));
  sources.migrate(database, "runs", sources.RUN_MIGRATIONS);
  const checkpoints = sources.openDatabase(join(folder, `${name}-checkpoints.db`), { synchronous: "NORMAL" });
  const checkpointer = sources.createCheckpointer(checkpoints);
  const asks = ({ args }) => args.file_path === "/asked.md";
  const service = sources.createRunService({
    runs: sources.sqliteRuns(database),
    checkpoints: async () => checkpointer,
    agentFor: async () =>
      sources.buildAgent({
        model: new SlowModel({}),
        checkpointer,
        interruptOn: { write_file: { when: asks } },
      }),
    tree: async () => new sources.StateBackend({ files: sources.snapshotFiles() }),
    treeWithThread: async () => sources.StateBackend,
    searchMemories: async () => [],
    preflight: async () => undefined,
    environment: "bench",
    concurrentRuns: RUNS,
    log: sources.silentLogger,
  });
  const own = service.as({ principal: "local" });
  const start = async (task) => {
    const started = await own.control.start({ task });
    if (!started.ok) throw new Error(started.message);
    return started.run.id;
  };
  const reach = async (runId, status) => {
    const signal = new AbortController().signal;
    for await (const event of own.watch.events(runId, { signal })) {
      if (event.kind === "run_failed") throw new Error(String(event.data.message));
      if ((await own.read.view(runId)).run.status === status) return;
    }
  };
  const close = async () => {
    await service.close();
    database.close();
    checkpoints.close();
  };
  return { own, start, reach, close };
}

/** Looks at one run after the other while they work; each wait counts from when the look was due. */
async function looks() {
  const { own, start, reach, close } = open("busy");
  const end = new Int32Array(new SharedArrayBuffer(4));
  const idleThread = new Worker(IDLE_THREAD, { eval: true, workerData: { end, every: LOOK_EVERY_MS } });
  const begun = performance.now();
  const runs = [];
  for (let run = 0; run < RUNS; run += 1) {
    runs.push(await start("work"));
    // Each would come with a message of its own.
    await nextTurn();
  }
  const ended = Promise.all(runs.map((run) => reach(run, "completed")));
  const all = { working: true };
  void ended.finally(() => (all.working = false));
  const waits = [];
  for (let due = performance.now(), look = 0; all.working; due += LOOK_EVERY_MS, look += 1) {
    const early = due - performance.now();
    if (early > 0) await delay(early);
    const asked = Math.min(due, performance.now());
    void own.read.view(runs[look % RUNS]).then(() => waits.push(performance.now() - asked));
  }
  await ended;
  const seconds = (performance.now() - begun) / 1000;
  Atomics.store(end, 0, 1);
  const [floor] = await once(idleThread, "message");
  await close();
  return { waits, floor, seconds };
}

/** The same looks in a thread that has nothing else to do: what the machine itself makes them wait. */
const IDLE_THREAD = `
const { parentPort, workerData } = require("node:worker_threads");
const waits = [];
let due = performance.now();
const { end, every } = workerData;
(async () => {
  for (; Atomics.load(end, 0) === 0; due += every) {
    const early = due - performance.now();
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
    waits.push(Math.max(0, performance.now() - due));
  }
  parentPort.postMessage(waits);
})();`;

/** What runs that wait for a person keep in memory. */
async function idle() {
  const { start, reach, close } = open("idle");
  await reach(await start("ask"), "input_required");
  const before = used();
  const runs = await Promise.all(Array.from({ length: RUNS }, () => start("ask")));
  await Promise.all(runs.map((run) => reach(run, "input_required")));
  await delay(500);
  const bytes = (used() - before) / RUNS;
  await close();
  return bytes;
}

function used() {
  gc();
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const bytes = await idle();
const { waits, floor, seconds } = await looks();
rmSync(folder, { recursive: true, force: true });
const at = (times, share) => {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1);
};
const row = (name, times) =>
  `| ${name} | ${times.length} | ${at(times, 0.5)} | ${at(times, 0.99)} | ${at(times, 1)} |`;
console.log(`| ${RUNS} runs at once | looks | p50 (ms) | p99 (ms) | longest (ms) |`);
console.log("|---|---|---|---|---|");
console.log(row("a run that works", waits));
console.log(row("floor: an idle thread", floor));
console.log(
  `\nAll runs ended after ${seconds.toFixed(1)} s; an idle run takes ${(bytes / 1000).toFixed(0)} KB.`,
);
