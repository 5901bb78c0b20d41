// Parallel subagents: total time and how long the event loop is held up.
// Usage: npm run build && node bench/fan-out/bench.mjs
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { createCheckpointer, createDeepAgent, openDatabase } from "../../dist/index.js";

const STEPS = 20;
const LATENCY_MS = 5;

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

async function measure(count, isStored) {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-fan-out-"));
  const database = isStored
    ? openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" })
    : undefined;
  const agent = createDeepAgent({
    model: new FanOutModel(count),
    limits: { parallelSubagents: count, parallelTools: count },
    ...(database ? { checkpointer: createCheckpointer(database) } : {}),
  });
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const begin = performance.now();
  const state = await agent.invoke(
    { messages: [{ role: "user", content: "go" }] },
    { configurable: { thread_id: "t" } },
  );
  const seconds = (performance.now() - begin) / 1000;
  loop.disable();
  const reports = state.messages.filter(
    (message) => message.type === "tool" && message.text === "done",
  ).length;
  if (reports !== count) throw new Error(`${reports} of ${count} subagents reported`);
  database?.close();
  rmSync(folder, { recursive: true, force: true });
  return { seconds, p99: loop.percentile(99) / 1e6 };
}

const ideal = ((STEPS + 1 + 2) * LATENCY_MS) / 1000;
await measure(10, true);
console.log(`subagents  checkpoints  total s  x ideal (${ideal.toFixed(3)} s)  event loop delay p99 ms`);
for (const isStored of [false, true]) {
  for (const count of [1, 10, 100]) {
    const { seconds, p99 } = await measure(count, isStored);
    const cells = [
      String(count).padStart(9),
      (isStored ? "SQLite" : "none").padStart(11),
      seconds.toFixed(2).padStart(7),
      (seconds / ideal).toFixed(1).padStart(17),
      p99.toFixed(0).padStart(24),
    ];
    console.log(cells.join("  "));
  }
}
