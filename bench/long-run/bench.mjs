// One run of 10,000 events: what a step with its events, and each way to look at the run, cost at its start and its end.
// Usage: node bench/long-run/bench.mjs [events]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { loadSources } from "../../scripts/sources.mjs";

const EVENTS = Number(process.argv[2] ?? 10_000);
/** Of the run, at its start and at its end, that are compared. */
const PART = 0.1;
const APPROVAL_EVERY = 50;
const LOOK_EVERY = 25;

/** One call a reply, without waiting: mostly it lists files, now and then it writes one of ten. */
class SteppingModel extends BaseChatModel {
  arrived = [];
  ends = false;
  _llmType() {
    return "stepping";
  }
  bindTools() {
    return this;
  }
  async _generate() {
    this.arrived.push(performance.now());
    const step = this.arrived.length;
    const name = step % APPROVAL_EVERY === 0 ? "write_file" : "ls";
    const file = { file_path: `/notes-${(step / APPROVAL_EVERY) % 10}.md`, content: `step ${step}` };
    const args = name === "write_file" ? file : { path: "/" };
    const message = this.ends
      ? new AIMessage("done")
      : new AIMessage({ content: "", tool_calls: [{ id: `call_${step}`, name, args }] });
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
  export { runResult } from "./src/server/calls/results.ts";
  export { runDocument } from "./src/server/views/run-document.ts";
  export { transcriptOf } from "./src/server/views/run-document.ts";
  export { runScreen } from "./src/server/page/screens.ts";
`);
const folder = mkdtempSync(join(tmpdir(), "deepagent-long-run-"));
const database = sources.openDatabase(join(folder, "runs.db"));
sources.migrate(database, "runs", sources.RUN_MIGRATIONS);
const checkpoints = sources.openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" });
const checkpointer = sources.createCheckpointer(checkpoints);
const model = new SteppingModel({});
const service = sources.createRunService({
  runs: sources.sqliteRuns(database),
  checkpoints: async () => checkpointer,
  agentFor: async () =>
    sources.buildAgent({ model, checkpointer, interruptOn: { write_file: true }, recursionLimit: 100_000 }),
  tree: async () => new sources.StateBackend({ files: sources.snapshotFiles() }),
  treeWithThread: async () => sources.StateBackend,
  searchMemories: async () => [],
  preflight: async () => undefined,
  environment: "bench",
  concurrentRuns: 1,
  log: sources.silentLogger,
});

const ME = "local";
const session = { principal: ME, scopes: ["read"] };
const PAGE = { runs: service, session, openCommand: () => undefined, settings: [] };
const WAYS = { forms: true, model: false, links: true };
const runs = service.as({ principal: ME });
const view = (runId) => runs.read.view(runId);
/** The ways to look at a run, each as a server does it. */
const LOOKS = {
  check_deep_agent: async (runId) => JSON.stringify(sources.runResult(await view(runId), WAYS)),
  "resource of the run": async (runId) => JSON.stringify(sources.runDocument(await view(runId)), null, 2),
  "its newest 1000 events": async (runId, seq) =>
    JSON.stringify(await runs.read.events(runId, { after: Math.max(0, seq - 1000), limit: 1000 })),
  "its transcript": async (runId, seq) => {
    const events = await runs.read.events(runId, { after: Math.max(0, seq - 1000), limit: 1000 });
    return sources.transcriptOf(await view(runId), events ?? []);
  },
  "the page": async (runId) => {
    const found = await sources.runScreen(PAGE, runId, "work", new URLSearchParams());
    return found.picture(Date.now()).main.text;
  },
};

const started = await runs.control.start({ task: "go" });
if (!started.ok) throw new Error(started.message);
const runId = started.run.id;
/** Milliseconds of CPU: others on the machine do not count. */
function cpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
/** By what was measured: when in the run, and how long it took, in milliseconds. */
const laps = new Map();
const note = (what, seq, ms) => laps.set(what, [...(laps.get(what) ?? []), { seq, ms }]);
let written = { seq: 0, at: performance.now(), cpu: cpu() };
for await (const event of runs.watch.events(runId, { signal: new AbortController().signal })) {
  const { seq, kind, data } = event;
  if (kind === "run_failed") throw new Error(String(data.message));
  if (seq >= EVENTS) model.ends = true;
  if (kind === "approval_requested") {
    await runs.requests.answer(runId, { requestId: data.approvalId, answer: { type: "approve" } }, "bench");
  }
  if (seq - written.seq < LOOK_EVERY) continue;
  const steps = model.arrived.filter((at) => at > written.at);
  if (steps.length > 1)
    note("a step of the agent, all its events stored", seq, (cpu() - written.cpu) / steps.length);
  for (const [name, look] of Object.entries(LOOKS)) {
    const begun = cpu();
    await look(runId, seq);
    note(name, seq, cpu() - begun);
  }
  written = { seq, at: performance.now(), cpu: cpu() };
}
const { run, approvals } = await view(runId);
await service.close();
database.close();
checkpoints.close();
rmSync(folder, { recursive: true, force: true });

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
console.log(
  `${run.lastSeq} events, ${model.arrived.length} steps, ${approvals.length} approvals: the median of the first and the last tenth\n`,
);
console.log("| | start (ms of CPU) | end (ms of CPU) | ratio |");
console.log("|---|---|---|---|");
for (const [what, all] of laps) {
  const first = median(
    all.filter(({ seq }) => seq >= 1000 && seq < 1000 + EVENTS * PART).map(({ ms }) => ms),
  );
  const last = median(all.filter(({ seq }) => seq > EVENTS * (1 - PART)).map(({ ms }) => ms));
  console.log(`| ${what} | ${first.toFixed(2)} | ${last.toFixed(2)} | ${(last / first).toFixed(2)} |`);
}
