// Cost of a step as a thread grows: time of the first and last ten steps, bytes on disk per byte of payload.
// Usage: npm run build && node bench/steps/bench.mjs
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { createCheckpointer, createDeepAgent, openDatabase } from "../../dist/index.js";

/** Makes `steps` tool calls, one per reply, and notes when each request arrives. */
class SteppingModel extends BaseChatModel {
  times = [];
  constructor(steps, call) {
    super({});
    this.steps = steps;
    this.call = call;
  }
  _llmType() {
    return "stepping";
  }
  bindTools() {
    return this;
  }
  async _generate() {
    this.times.push(performance.now());
    const step = this.times.length;
    const message =
      step > this.steps
        ? new AIMessage("done")
        : new AIMessage({ content: "", tool_calls: [{ id: `call_${step}`, ...this.call(step) }] });
    return { generations: [{ text: "", message }] };
  }
}

async function measure(name, steps, call, payloadOf) {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-steps-"));
  const database = openDatabase(join(folder, "checkpoints.db"));
  const model = new SteppingModel(steps, call);
  const agent = createDeepAgent({ model, checkpointer: createCheckpointer(database), summarization: false });
  await agent.invoke(
    { messages: [{ role: "user", content: "go" }] },
    { configurable: { thread_id: "t" }, recursionLimit: 10_000 },
  );
  const state = await agent.getState({ configurable: { thread_id: "t" } });
  database.pragma("wal_checkpoint(TRUNCATE)");
  database.close();
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  rmSync(folder, { recursive: true, force: true });
  const laps = model.times.slice(1).map((time, i) => time - model.times[i]);
  const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  const first = median(laps.slice(1, 11));
  const last = median(laps.slice(-10));
  const payload = payloadOf(state.values);
  return { name, first, last, ratio: last / first, megabytes: bytes / 1e6, perPayload: bytes / payload };
}

const messageBytes = ({ messages }) => JSON.stringify(messages.map((message) => message.toDict())).length;
const fileBytes = ({ files }) => Object.values(files).reduce((sum, { content }) => sum + content.length, 0);
const body = "x".repeat(50_000);
const rows = [
  await measure("400 steps of ls", 400, () => ({ name: "ls", args: { path: "/" } }), messageBytes),
  await measure(
    "200 steps, 20 files of 50 KB",
    200,
    (step) =>
      step <= 20
        ? { name: "write_file", args: { file_path: `/file-${step}.txt`, content: body } }
        : { name: "ls", args: { path: "/nothing-here" } },
    (values) => messageBytes(values) + fileBytes(values),
  ),
];
console.log(
  "| run | first ten steps (ms each) | last ten | last / first | on disk (MB) | on disk / payload |",
);
console.log("|---|---|---|---|---|---|");
for (const row of rows) {
  const cells = [row.first, row.last, row.ratio, row.megabytes, row.perPayload].map((value) =>
    value.toFixed(2),
  );
  console.log(`| ${row.name} | ${cells.join(" | ")} |`);
}
