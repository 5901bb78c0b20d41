// A step of a run, whose events are stored before its results are: in SQLite, in Postgres, and in one 2 ms away.
// The peer is the same agent on the same checkpoints without a run, which stores no events.
// Usage: node bench/journal/bench.mjs [steps, default 100]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSources } from "../../scripts/sources.mjs";
import { SteppingModel } from "../support/stepping-model.mjs";

const STEPS = Number(process.argv[2] ?? 100);
const sources = await loadSources(`
  export { buildAgent } from "./src/agent/agent.ts";
  export { createRunService } from "./src/runs/supervisor.ts";
  export { StateBackend } from "./src/backends/stores/state.ts";
  export { snapshotFiles } from "./src/backends/runtime.ts";
  export { silentLogger } from "./src/core/logger.ts";
  export { openSqlite } from "./src/storage/sqlite/storage.ts";
  export { openPostgres } from "./src/storage/postgres/storage.ts";
  export { startPostgres } from "./test/support/postgres-server.ts";
  export { TcpLink } from "./test/support/tcp-link.ts";
`);
const logger = sources.silentLogger;

const newModel = () => new SteppingModel(STEPS, () => ({ name: "ls", args: { path: "/" } }));
const medianLap = ({ times }) => {
  const laps = times.slice(1).map((time, index) => time - times[index]);
  return laps.toSorted((a, b) => a - b)[Math.floor(laps.length / 2)];
};

/** Milliseconds of a step without a run. */
async function alone(checkpointer, thread) {
  const model = newModel();
  const agent = sources.buildAgent({ model, checkpointer, recursionLimit: 10_000 });
  const { signal } = new AbortController();
  await agent.work(thread, { kind: "task", task: "work" }, { runId: thread, signal });
  return medianLap(model);
}

/** Milliseconds of a step of a run. */
async function inRun(storage, checkpointer) {
  const model = newModel();
  const service = sources.createRunService({
    runs: storage.runs,
    clock: storage.clock,
    checkpoints: async () => checkpointer,
    agentFor: async () => sources.buildAgent({ model, checkpointer, recursionLimit: 10_000 }),
    tree: async () => new sources.StateBackend({ files: sources.snapshotFiles() }),
    treeWithThread: async () => sources.StateBackend,
    searchMemories: async () => ({ hits: [] }),
    drawing: async () => "",
    preflight: async () => undefined,
    environment: "bench",
    concurrentRuns: 1,
    log: logger,
  });
  const runs = service.as({ principal: "me" });
  const { run } = await runs.control.start({ task: "work" });
  for await (const _event of runs.watch.events(run.id, { signal: new AbortController().signal }));
  await service.close();
  return medianLap(model);
}

const folder = mkdtempSync(join(tmpdir(), "deepagent-journal-"));
const server = await sources.startPostgres({ flushes: true });
const link = await sources.TcpLink.open(Number(new URL(server.url).port));
link.lateMs = 2;
const places = [
  { name: "SQLite", open: () => sources.openSqlite(folder, logger) },
  { name: "Postgres", open: () => sources.openPostgres({ url: server.url, schema: "near", logger }) },
  {
    name: "Postgres 2 ms away",
    open: () => sources.openPostgres({ url: link.to(server.url), schema: "far", logger }),
  },
];
try {
  console.log(`Node ${process.version}, ${process.platform}, median of ${STEPS}, twice in turns\n`);
  console.log("| storage | agent alone (ms) | in a run (ms) | ratio |\n|---|---|---|---|");
  for (const { name, open } of places) {
    const storage = await open();
    const { checkpointer } = await storage.forAgents();
    const pairs = [];
    for (const thread of ["one", "two"])
      pairs.push([await alone(checkpointer, thread), await inRun(storage, checkpointer)]);
    const [a, b] = [0, 1].map((at) => Math.min(...pairs.map((pair) => pair[at])));
    console.log(`| ${name} | ${a.toFixed(2)} | ${b.toFixed(2)} | ${(b / a).toFixed(2)} |`);
    await storage.close();
  }
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
