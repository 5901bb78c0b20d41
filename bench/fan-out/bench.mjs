// Parallel subagents: total time and how long the event loop is held up.
// Usage: npm run build && node bench/fan-out/bench.mjs [most subagents] [rounds, default 3]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { DEEPAGENTS, FLOOR, OURS, inTurns } from "../support/peers.mjs";

const STEPS = 20;
const LATENCY_MS = 5;
const counts = [1, 10, Number(process.argv[2] ?? 100)];
const rounds = Number(process.argv[3] ?? 3);
const PEERS = [OURS, FLOOR, DEEPAGENTS];

/** The agent starts `count` subagents in one reply; each makes 20 tool calls, one per reply. */
class FanOutModel extends BaseChatModel {
  constructor(count) {
    super({});
    this.count = count;
  }
  _llmType() {
    return "fan-out";
  }
  bindTools(tools) {
    const isMain = tools.some(({ name }) => name === "task");
    return { invoke: (messages) => this.answer(messages, isMain) };
  }
  async answer(messages, isMain) {
    await delay(LATENCY_MS);
    const turn = messages.filter((message) => message.type === "ai").length;
    const calls = (names) =>
      new AIMessage({
        content: "",
        tool_calls: names.map(([name, args], index) => ({ id: `c${turn}_${index}`, name, args })),
      });
    if (turn >= (isMain ? 1 : STEPS)) return new AIMessage("done");
    if (!isMain) return calls([["ls", { path: "/" }]]);
    const task = { description: "List.", subagent_type: "general-purpose" };
    return calls(Array.from({ length: this.count }, () => ["task", task]));
  }
  async _generate() {
    throw new Error("called without tools");
  }
}

async function measure(peer, count, isStored) {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-fan-out-"));
  const database = isStored ? peer.open(join(folder, "checkpoints.db")) : undefined;
  const checkpointer = database && peer.checkpointer(database);
  const agent = peer.create({ model: new FanOutModel(count), checkpointer, parallel: count });
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const before = process.cpuUsage();
  const begin = performance.now();
  const state = await agent.invoke(
    { messages: [{ role: "user", content: "go" }] },
    { configurable: { thread_id: "t" }, recursionLimit: 1000 },
  );
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(before);
  loop.disable();
  const reports = state.messages.filter(
    (message) => message.type === "tool" && message.text === "done",
  ).length;
  if (reports !== count) throw new Error(`${peer.name}: ${reports} of ${count} subagents reported`);
  database?.close();
  rmSync(folder, { recursive: true, force: true });
  return { seconds, cpu: (user + system) / 1e6, p99: loop.percentile(99) / 1e6 };
}

const ideal = ((STEPS + 1 + 2) * LATENCY_MS) / 1000;
for (const peer of PEERS) await measure(peer, 5, true);
console.log(
  `| agent | subagents | checkpoints | total (s) | x ideal (${ideal} s) | CPU (s) | CPU ours / its | loop delay p99 (ms) |`,
);
console.log("|---|---|---|---|---|---|---|---|");
for (const isStored of [false, true]) {
  for (const count of counts) {
    const results = await inTurns(PEERS, rounds, (peer) => measure(peer, count, isStored));
    for (const [index, { seconds, cpu, p99 }] of results.entries()) {
      const times = [seconds.toFixed(2), (seconds / ideal).toFixed(1), cpu.toFixed(2)];
      const cells = [...times, (results[0].cpu / cpu).toFixed(2), p99.toFixed(0)];
      console.log(`| ${[PEERS[index].name, count, isStored ? "SQLite" : "none", ...cells].join(" | ")} |`);
    }
  }
}
