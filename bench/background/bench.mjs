// Subagents in the background against subagents of `task`, which are inline: time and bytes for each.
// Usage: node bench/background/bench.mjs [subagents] [rounds]
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { loadSources } from "../../scripts/sources.mjs";

const SUBAGENTS = Number(process.argv[2] ?? 8);
const ROUNDS = Number(process.argv[3] ?? 9);
const STEPS = 5;

/** Starts the subagents in one reply, by the tool that the task names; each makes a few calls. */
class Delegating extends BaseChatModel {
  _llmType() {
    return "delegating";
  }
  bindTools() {
    return this;
  }
  async _generate(messages) {
    const [task] = messages.find((message) => message.type === "human").text.split(/\s/);
    const turn = messages.filter((message) => message.type === "ai").length;
    const calls =
      task === "list"
        ? turn < STEPS
          ? [{ id: `c${turn}`, name: "ls", args: { path: "/" } }]
          : []
        : turn === 0
          ? Array.from({ length: SUBAGENTS }, (_, index) => ({
              id: `s${index}`,
              name: task,
              args: { description: "list", subagent_type: "general-purpose" },
            }))
          : [];
    return {
      generations: [
        { text: "", message: new AIMessage({ content: calls.length > 0 ? "" : "done", tool_calls: calls }) },
      ],
    };
  }
}

const sources = await loadSources(`
  export { buildAgent, backgroundTasksMiddleware } from "./src/agent/agent.ts";
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

/** One run with all its subagents: milliseconds, and bytes of its files. */
async function measure(tool) {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-background-"));
  const database = sources.openDatabase(join(folder, "runs.db"));
  sources.migrate(database, "runs", sources.RUN_MIGRATIONS);
  const kept = sources.openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" });
  const checkpointer = sources.createCheckpointer(kept);
  const service = sources.createRunService({
    runs: sources.sqliteRuns(database),
    checkpoints: async () => checkpointer,
    agentFor: async () =>
      sources.buildAgent({
        model: new Delegating({}),
        checkpointer,
        middleware: [sources.backgroundTasksMiddleware()],
      }),
    tree: async () => new sources.StateBackend({ files: sources.snapshotFiles() }),
    treeWithThread: async () => sources.StateBackend,
    searchMemories: async () => [],
    preflight: async () => undefined,
    environment: "bench",
    concurrentRuns: SUBAGENTS + 1,
    log: sources.silentLogger,
  });
  const before = process.cpuUsage();
  const begun = performance.now();
  const runs = service.as({ principal: "local" });
  const { run } = await runs.control.start({ task: tool });
  for await (const _event of runs.watch.events(run.id, { signal: new AbortController().signal }));
  const milliseconds = performance.now() - begun;
  const { user, system } = process.cpuUsage(before);
  const { subagents } = await runs.read.view(run.id);
  const done = subagents.filter(({ status }) => status === "completed").length;
  if (done !== SUBAGENTS) throw new Error(`${tool}: ${done} of ${SUBAGENTS} subagents completed`);
  await service.close();
  for (const one of [database, kept]) {
    one.pragma("wal_checkpoint(TRUNCATE)");
    one.close();
  }
  const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  rmSync(folder, { recursive: true, force: true });
  return { milliseconds, cpu: (user + system) / 1000, bytes };
}

const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
const found = { task: [], start_async_task: [] };
for (const tool of Object.keys(found)) await measure(tool);
for (let round = 0; round < ROUNDS; round += 1) {
  for (const tool of Object.keys(found)) found[tool].push(await measure(tool));
}
console.log(
  `${SUBAGENTS} subagents of ${STEPS} calls, Node ${process.version}, ${process.platform}, median of ${ROUNDS}\n`,
);
console.log(
  "| subagents | ms for each | ratio | CPU ms for each | ratio | kB for each | ratio |\n|---|---|---|---|---|---|---|",
);
const rows = Object.entries(found).map(([tool, runs]) => {
  const each = (value) => median(runs.map(value)) / SUBAGENTS;
  return {
    tool,
    ms: each((run) => run.milliseconds),
    cpu: each((run) => run.cpu),
    kB: each((run) => run.bytes) / 1000,
  };
});
const [inline, background] = rows;
for (const row of rows) {
  const cells = ["ms", "cpu", "kB"].flatMap((key) => [
    row[key].toFixed(1),
    (row[key] / inline[key]).toFixed(2),
  ]);
  console.log(`| \`${row.tool}\` | ${cells.join(" | ")} |`);
}
const more = (key) => (background[key] - inline[key]).toFixed(1);
console.log(
  `\nA subagent in the background takes ${more("ms")} ms (CPU ${more("cpu")} ms) and ${more("kB")} kB more than one of \`task\`.`,
);
