// How long storage keeps the event loop from turning.
// Usage: node bench/event-loop/bench.mjs [part of the sizes, default 1]
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { loadSources } from "../../scripts/sources.mjs";
import { printTurns } from "./turns.mjs";

const MB = 1_000_000;
const part = Number(process.argv[2] ?? 1);
const scaled = (count) => Math.round(count * part);

const { createDeepAgent, sqliteRuns, RUN_MIGRATIONS, ...storage } = await loadSources(`
  export { createDeepAgent } from "./src/agent/build/create-deep-agent.ts";
  export { RUN_MIGRATIONS } from "./src/runs/sql/schema.ts";
  export { sqliteRuns } from "./src/storage/sqlite/runs/repository.ts";
  export { createCheckpointer } from "./src/storage/sqlite/checkpoints/checkpointer.ts";
  export { openDatabase } from "./src/storage/sqlite/database.ts";
  export { writeLogInThread } from "./src/storage/sqlite/commit.ts";
  export { migrate } from "./src/storage/sqlite/migrations.ts";
  export { createStore } from "./src/storage/sqlite/memories/store.ts";
`);
const { createCheckpointer, createStore } = storage;
const { migrate, openDatabase, writeLogInThread } = storage;

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

const folder = mkdtempSync(join(tmpdir(), "deepagent-loop-"));
const text = (bytes) => randomBytes(bytes / 2).toString("hex");
const checkpoints = openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" });
const checkpointer = createCheckpointer(checkpoints);

const agentOf = (steps, call) =>
  createDeepAgent({ model: new CallingModel(steps, call), checkpointer, summarization: false });
const configOf = (thread) => ({ configurable: { thread_id: thread }, recursionLimit: 100_000 });
const runAgent = (thread, steps, call) =>
  agentOf(steps, call).invoke({ messages: [{ role: "user", content: "go" }] }, configOf(thread));
const stateOf = (thread) => agentOf(0).getState(configOf(thread));
const ls = () => ({ name: "ls", args: { path: "/" } });
const writing = (size) => (step) => ({
  name: "write_file",
  args: { file_path: `/file-${step}.txt`, content: text(size) },
});

/** A thread of `steps` checkpoints with a value of `size` each, without an agent. */
async function fillThread(thread, steps, size) {
  let config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
  for (let step = 0; step < steps; step += 1) {
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(step) };
    config = await checkpointer.put(config, checkpoint, { source: "loop", step, parents: {} });
    await checkpointer.putWrites(config, [["messages", [new HumanMessage(text(size))]]], "task");
  }
}

async function storeFile(thread, content) {
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(0) };
  const metadata = { source: "loop", step: 0, parents: {} };
  const config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
  const at = await checkpointer.put(config, checkpoint, metadata);
  await checkpointer.putWrites(at, [["files", { "/large.txt": { content } }]], "task");
}

const runs = openDatabase(join(folder, "deepagent.db"));
migrate(runs, "runs", RUN_MIGRATIONS);
const { read } = sqliteRuns(runs);
const store = createStore(runs);
const SERIES = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <";

function fillRuns(count, events) {
  runs.exec(`
INSERT INTO threads (id, principal, created_at) ${SERIES} ${count}) SELECT 'thr_' || i, 'me', i FROM n;
INSERT INTO runs (id, thread_id, principal, environment, task, status, created_at, updated_at, ended_at,
  runnable_since, runnable, answer)
${SERIES} ${count}) SELECT 'run_' || i, 'thr_' || i, 'me', 'here', 'task', 'completed', i, i, i, i, 0,
  hex(randomblob(500)) FROM n;
INSERT INTO run_events (run_id, seq, time, agent, kind, data)
${SERIES} ${events}) SELECT 'run_1', i, i, '[]', 'warning', '{"message":"' || hex(randomblob(500)) || '"}' FROM n;
UPDATE runs SET last_seq = ${events} WHERE id = 'run_1';`);
}

const memories = (from, count) =>
  Array.from({ length: count }, (_, i) => ({
    namespace: ["memories"],
    key: `/${from + i}.md`,
    value: { content: `memory ${from + i} about ${from + i === 777 ? "needle" : "hay"} ${text(900)}` },
  }));

async function fillStore(count) {
  for (let from = 0; from < count; from += 100) {
    await nextTurn();
    await store.batch(memories(from, 100));
  }
}

const logs = [runs, checkpoints].map((database) => writeLogInThread(database, console.error));
fillRuns(scaled(100_000), scaled(10_000));
// No server leaves a log like the one of these few statements; whoever commits next would cut it.
runs.pragma("wal_checkpoint(TRUNCATE)");

const each = async (times, work) => {
  for (let i = 0; i < times; i += 1) {
    await nextTurn();
    await work(i);
  }
};
const memory = (content) => store.put(["memories"], "/large.md", { content });
const large = [text(10 * MB), "some words of a memory ".repeat(44_000)];
const signal = new AbortController().signal;
const context = { orphans: "keep", now: Date.now(), signal };
await printTurns([
  ["nothing", () => each(1000, () => undefined)],
  [`an agent's thread: ${scaled(400)} steps`, () => runAgent("small", scaled(400), ls)],
  [
    `${scaled(1100)} files of 50 KB written, a snapshot among it`,
    () => runAgent("files", scaled(1100), writing(50_000)),
  ],
  ["that thread loaded", () => stateOf("files")],
  ["a copy of it", () => checkpointer.copyThread("files", "copy")],
  ["a file of 10 MB stored", () => storeFile("large", large[0])],
  ["that loaded", () => checkpointer.getTuple(configOf("large"))],
  [`${scaled(5000)} checkpoints stored`, () => fillThread("long", scaled(5000), 1000)],
  ["listed as points", () => checkpointer.steps("long")],
  ["a copy of that thread", () => checkpointer.copyThread("long", "long copy")],
  [`${scaled(500)} MB in one thread`, () => fillThread("huge", scaled(500), MB)],
  ["that deleted", () => checkpointer.deleteThread("huge")],
  ["its space given back", () => checkpointer.returnSpace(signal)],
  [`a page of ${scaled(100_000)} runs`, () => each(50, () => read.list("me", { limit: 50 }))],
  ["counts of them", () => each(5, () => sqliteRuns(runs).statistics())],
  [
    `a journal of ${scaled(10_000)} events read`,
    () => each(scaled(50), (i) => read.journal("me", "run_1", i * 200, 200)),
  ],
  [
    `${scaled(5000)} of the runs forgotten, with that journal`,
    () =>
      sqliteRuns(runs).prune(
        { maxAgeMs: context.now - scaled(5000) },
        { ...context, checkpoints: checkpointer },
      ),
  ],
  [`${scaled(20_000)} memories written, 100 at a time`, () => fillStore(scaled(20_000))],
  ["1000 in one call", () => store.batch(memories(1e6, 1000))],
  ["1000 of them listed", () => store.search(["memories"], { limit: 1000 })],
  [
    "searched for a word",
    () => each(50, (i) => store.search(["memories"], { query: i % 2 ? "needle" : "memory hay" })),
  ],
  ["a memory of 1 MB written", () => memory(text(MB))],
  ["of words", () => memory(large[1])],
  ["that found", () => store.search(["memories"], { query: "words" })],
  ["that deleted", () => store.delete(["memories"], "/large.md")],
]);
for (const end of logs) await end();
checkpoints.close();
runs.close();
rmSync(folder, { recursive: true, force: true });
