// A server with few and with many tools: what its list, an agent with it, a turn and a search cost.
// Usage: node --expose-gc bench/many-tools/bench.mjs [rounds]
import { performance } from "node:perf_hooks";
import { loadSources } from "../../scripts/sources.mjs";

const SIZES = [100, 1200, 5000, 20_000];
const ROUNDS = Number(process.argv[2] ?? 5);

const sources = await loadSources(`
  export { openMcpTools } from "./src/agent/mcp-tools/open-mcp-tools.ts";
  export { buildAgent } from "./src/agent/agent.ts";
  export { silentLogger } from "./src/core/logger.ts";
  export { scriptedSteps } from "./test/support/scripted-model.ts";
  export { findTools } from "./src/tools/find-tools.ts";
  export { MemorySaver } from "@langchain/langgraph";
  export { MANY } from "./test/agent/mcp-tools/many-tools-server.ts";
`);
const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
const timed = async (action) => {
  const start = performance.now();
  const value = await action();
  return { value, took: performance.now() - start };
};
const heap = () => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};

async function measure(count) {
  const server = { command: process.execPath, args: ["-e", sources.MANY, String(count), "100"], env: {} };
  const before = heap();
  const options = {
    env: { PATH: process.env.PATH },
    version: "0",
    log: sources.silentLogger,
    patienceMs: 60_000,
  };
  const config = { ...server, approve: "none", timeout: 60 };
  const mcp = sources.openMcpTools({ many: config }, options);
  const first = await timed(() => mcp.forAgent());
  const again = [];
  for (let round = 0; round < ROUNDS; round += 1) again.push((await timed(() => mcp.forAgent())).took);
  const { tools } = first.value;
  const perTool = (heap() - before) / tools.length;
  const turns = [];
  let prompt = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const model = sources.scriptedSteps([{ text: "end" }]);
    const agent = sources.buildAgent({
      model,
      tools,
      toolsOnDemand: { names: tools.map(({ name }) => name), tokens: 10_000 },
      checkpointer: new sources.MemorySaver(),
    });
    const sink = { tell: () => undefined, stored: async () => undefined };
    const work = { runId: "run_1", signal: new AbortController().signal, events: sink };
    turns.push((await timed(() => agent.work("t", { kind: "task", task: "go" }, work))).took);
    prompt = model.requests[0].messages[0].text.length;
  }
  const hidden = tools.map(({ offered: { name, description, schema } }) => {
    return { name, description, parameters: Object.keys(schema.properties) };
  });
  const firstSearch = await timed(() => sources.findTools(hidden, "violin"));
  const searches = [];
  for (const query of [
    "how heavy is the walrus",
    "get parcel by number",
    "get",
    `many__get_ledger_${count - 3}`,
  ])
    for (let round = 0; round < ROUNDS; round += 1)
      searches.push((await timed(() => sources.findTools(hidden, query))).took);
  await mcp.close();
  return {
    count,
    first: first.took,
    again: median(again),
    turn: median(turns),
    firstSearch: firstSearch.took,
    search: Math.max(...searches),
    perTool,
    prompt,
  };
}

await measure(100);
const rows = [];
for (const count of SIZES) rows.push(await measure(count));
const base = rows[0];
console.log(`Node ${process.version}, median of ${ROUNDS}; in brackets the ratio to ${base.count} tools\n`);
console.log(
  "| tools | first list (ms) | list again (ms) | first turn (ms) | first search (ms) | longest later one (ms) | heap per tool (kB) | prompt (characters) |",
);
console.log("|---|---|---|---|---|---|---|---|");
for (const row of rows) {
  const cell = (key, digits = 0) => `${row[key].toFixed(digits)} (${(row[key] / base[key]).toFixed(1)})`;
  const cells = [
    cell("first"),
    cell("again"),
    cell("turn"),
    cell("firstSearch"),
    cell("search", 1),
    (row.perTool / 1024).toFixed(1),
    row.prompt,
  ];
  console.log(`| ${row.count} | ${cells.join(" | ")} |`);
}
process.exit(0);
