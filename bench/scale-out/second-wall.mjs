// What the second wall costs: each operation with it and without, in turns, as medians.
// Usage: node bench/scale-out/second-wall.mjs
import { loadSources } from "../../scripts/sources.mjs";

const sources = await loadSources(`
  export { silentLogger } from "./src/core/logger.ts";
  export { openPostgres } from "./src/storage/postgres/storage.ts";
  export { startPostgres } from "./test/support/postgres-server.ts";
`);
const ROUNDS = 400;
const WARM_UP = 20;
const server = await sources.startPostgres({ flushes: true });
await server.query("CREATE ROLE requests NOLOGIN");

const open = async (schema, role) => {
  const options = { url: server.url, schema, connections: 10, role, logger: sources.silentLogger };
  const storage = await sources.openPostgres(options);
  const { checkpointer, store } = (await storage.forAgents()).of("me", ["memories", "me"]);
  return { storage, runs: storage.runs, checkpointer, store };
};
const servers = [await open("open"), await open("walled", "requests")];

const median = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
const row = async (name, work) => {
  const times = [[], []];
  for (let n = 0; n < ROUNDS; n += 1) {
    for (const index of n % 2 === 0 ? [0, 1] : [1, 0]) {
      const begun = performance.now();
      await work(servers[index], n);
      times[index].push(performance.now() - begun);
    }
  }
  const [without, confined] = times.map((all) => median(all.slice(WARM_UP)));
  console.log(
    `| ${name} | ${without.toFixed(2)} | ${confined.toFixed(2)} | ${(confined / without).toFixed(2)} |`,
  );
};

const at = ({ lease }) => ({
  configurable: { thread_id: lease.runId.replace("run", "thr"), checkpoint_ns: "" },
});
const start = ({ runs }, n) => {
  const fresh = { runId: `run_${n}`, newThreadId: `thr_${n}`, environment: "e", now: Date.now() };
  return runs.create("me", { task: "work" }, fresh);
};
const record = ({ log, lease }, n) => {
  const data = { callId: `call_${n}`, tool: "ls", summary: "lists the folder" };
  const entry = { kind: "tool_started", agent: [], data, identity: `tool_started/call_${n}` };
  return log.record(lease, [entry], Date.now());
};
const put = (one, n) => {
  const checkpoint = { v: 4, id: `1f0-${String(n).padStart(8, "0")}`, ts: new Date().toISOString() };
  const values = { channel_values: { text: "x".repeat(500) }, channel_versions: {}, versions_seen: {} };
  return one.checkpointer.put(
    at(one),
    { ...checkpoint, ...values },
    { source: "loop", step: n, parents: {} },
  );
};

console.log("| ms, median | without | with the second wall | ratio |\n|---|---|---|---|");
await row("a start", start);
for (const one of servers) {
  const now = Date.now();
  const request = { owner: "a", environment: "e", now, expiresAt: now + 1_000_000 };
  one.lease = (await one.runs.claimNext(request, 10)).lease;
  one.log = one.runs.work({});
}
await row("an event", record);
await row("one run", ({ runs, lease }) => runs.read.run("me", lease.runId));
await row(`a page of ${ROUNDS} events`, ({ runs, lease }) => runs.read.journal("me", lease.runId, 0, 1000));
await row("a look at a run", ({ runs, lease }) => runs.read.picture("me", lease.runId, 0, 1000));
await row("a list of 50 runs", ({ runs }) => runs.read.list("me", { limit: 50 }));
await row("a checkpoint stored", put);
await row("a checkpoint read", (one) => one.checkpointer.getTuple(at(one)));
await row("a memory stored", ({ store }, n) =>
  store.put(["memories", "me"], `/${n}`, { content: "short answers" }),
);
await row(`${ROUNDS} memories searched`, ({ store }) => store.searchText(["memories", "me"], "answers", 10));
for (const { storage } of servers) await storage.close();
await server.stop();
