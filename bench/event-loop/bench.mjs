// How long storage keeps the event loop from turning. Usage: npm run build && node bench/event-loop/bench.mjs
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { createCheckpointer, createDeepAgent, createStore, openDatabase } from "../../dist/index.js";

class CallingModel extends BaseChatModel {
  calls = 0;
  constructor(steps, call) {
    super({});
    this.steps = steps;
    this.call = call;
  }
  _llmType() {
    return "calling";
  }
  bindTools() {
    return this;
  }
  async _generate() {
    this.calls += 1;
    const tool_calls =
      this.calls > this.steps ? [] : [{ id: `call_${this.calls}`, ...this.call(this.calls) }];
    const message = new AIMessage({ content: tool_calls.length > 0 ? "" : "done", tool_calls });
    return { generations: [{ text: "", message }] };
  }
}

/** Lengths of all turns of the event loop while `work` is at work, in milliseconds. */
async function turnsDuring(work) {
  const turns = [];
  const over = new AbortController();
  const watching = (async () => {
    for (let last = performance.now(); !over.signal.aborted;) {
      await nextTurn();
      const now = performance.now();
      turns.push(now - last);
      last = now;
    }
  })();
  const cpu = process.cpuUsage();
  try {
    await work();
  } finally {
    over.abort();
  }
  await watching;
  const { user, system } = process.cpuUsage(cpu);
  return { turns: turns.toSorted((a, b) => a - b), cpu: (user + system) / 1000 };
}

const folder = mkdtempSync(join(tmpdir(), "deepagent-loop-"));
const text = (bytes) => randomBytes(bytes / 2).toString("hex");
const database = openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" });
const checkpointer = createCheckpointer(database);

async function runAgent(thread, steps, call, extra = {}) {
  const agent = createDeepAgent({
    model: new CallingModel(steps, call),
    checkpointer,
    summarization: false,
    ...extra,
  });
  await agent.invoke(
    { messages: [{ role: "user", content: "go" }] },
    { configurable: { thread_id: thread }, recursionLimit: 10_000 },
  );
}

async function fillStore() {
  const store = createStore(openDatabase(join(folder, "store.db")));
  for (let from = 0; from < 20_000; from += 500) {
    await store.batch(
      Array.from({ length: 500 }, (_, i) => ({
        namespace: ["filesystem"],
        key: `/memories/${from + i}.md`,
        value: { content: `memory ${from + i} about ${from + i === 777 ? "needle" : "hay"} ${text(900)}` },
      })),
    );
  }
  return store;
}

const big = text(1_000_000);
const look = {
  name: "look",
  description: "Answers with a lot.",
  schema: { type: "object", properties: {} },
};
const { tool } = await import("@langchain/core/tools");
const looking = tool(() => big, look);
const store = await fillStore();
const writing = (size) => (step) => ({
  name: "write_file",
  args: { file_path: `/file-${step}.txt`, content: text(size) },
});
const cases = [
  ["400 small steps", () => runAgent("small", 400, () => ({ name: "ls", args: { path: "/" } }))],
  ["20 files of 50 KB", () => runAgent("files", 20, writing(50_000))],
  [
    "20 results of 1 MB, kept in files",
    () => runAgent("large", 20, () => ({ name: "look", args: {} }), { tools: [looking] }),
  ],
  [
    "reading that thread (20 MB)",
    () =>
      checkpointer.getDeltaChannelHistory({
        config: { configurable: { thread_id: "large" } },
        channels: ["messages", "files"],
      }),
  ],
  ["deleting it", () => checkpointer.deleteThread("large")],
  ["filling a thread of 100 MB", () => runAgent("huge", 1000, writing(50_000))],
  ["deleting it", () => checkpointer.deleteThread("huge")],
  [
    "full-text search, 20,000 memories",
    async () => {
      for (let i = 0; i < 50; i += 1) {
        await nextTurn();
        await store.search(["filesystem"], { query: i % 2 ? "needle" : "memory hay", limit: 10 });
      }
    },
  ],
];
console.log("| work | turns of the loop | p50 (ms) | p99 (ms) | longest (ms) | CPU (ms) |");
console.log("|---|---|---|---|---|---|");
for (const [name, work] of cases) {
  const { turns, cpu } = await turnsDuring(work);
  const at = (share) => turns[Math.min(turns.length - 1, Math.floor(turns.length * share))].toFixed(1);
  console.log(`| ${[name, turns.length, at(0.5), at(0.99), at(1), cpu.toFixed(0)].join(" | ")} |`);
}
database.close();
rmSync(folder, { recursive: true, force: true });
