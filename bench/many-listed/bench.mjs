// The list and the search of runs with few and with many runs stored: what each screen costs the server, and how long
// it holds the event loop.
// Usage: node bench/many-listed/bench.mjs [few] [many]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { loadSources } from "../../scripts/sources.mjs";

const FEW = Number(process.argv[2] ?? 400);
const MANY = Number(process.argv[3] ?? 10_000);
const ROUNDS = 30;
/** Runs that are stored to measure what that takes. */
const MEASURED = 100;
const ME = "local";

const sources = await loadSources(`
  export { sqliteRuns } from "./src/storage/sqlite/runs/repository.ts";
  export { RUN_MIGRATIONS } from "./src/runs/sql/schema.ts";
  export { createRunService } from "./src/runs/supervisor.ts";
  export { openDatabase } from "./src/storage/sqlite/database.ts";
  export { migrate } from "./src/storage/sqlite/migrations.ts";
  export { StateBackend } from "./src/backends/stores/state.ts";
  export { silentLogger } from "./src/core/logger.ts";
  export { homeScreen } from "./src/server/page/screens.ts";
  export { searchScreen } from "./src/server/page/search.ts";
  export { renderDocument } from "./src/server/views/room/shell.ts";
`);
const folder = mkdtempSync(join(tmpdir(), "deepagent-listed-"));
const now = Date.now();
const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];

const SEEDED = `
INSERT INTO threads (id, principal, created_at) VALUES ('thr_@', 'local', $);
INSERT INTO runs (id, thread_id, principal, environment, task, status, created_at, updated_at, runnable_since,
  input_tokens, output_tokens, cost_nanos)
VALUES ('run_@', 'thr_@', 'local', 'seed', 'Task @: find out how an alarm gets to the pager and where it can get lost',
  'working', $, $, $, 1000, 50, 10000000);
UPDATE runs SET status = 'completed', ended_at = $, runnable = 0,
  answer = 'Answer @. ${"It is told at length, in the words of others. ".repeat(45)}' WHERE id = 'run_@';`;

/** Stores so many finished runs, ten minutes apart, and measures how long the start and the end of one more take. */
async function seeded(count) {
  const database = sources.openDatabase(join(folder, `${count}.db`), { synchronous: "OFF" });
  sources.migrate(database, "runs", sources.RUN_MIGRATIONS);
  database.transaction(() => {
    for (let index = 0; index < count; index += 1) {
      const time = now - (count - index) * 600_000;
      database.exec(SEEDED.replaceAll("@", String(index)).replaceAll("$", String(time)));
    }
  })();
  const repository = sources.sqliteRuns(database);
  const work = repository.work({});
  const [starts, ends] = [[], []];
  const timed = async (times, action) => {
    const start = performance.now();
    await action();
    times.push(performance.now() - start);
  };
  for (let index = 0; index < MEASURED; index += 1) {
    const ids = { runId: `run_${crypto.randomUUID()}`, newThreadId: `thr_${crypto.randomUUID()}` };
    const task = `One more task, number ${index}: find out how an alarm gets to the pager`;
    await timed(starts, () => repository.create(ME, { task }, { ...ids, environment: "seed", now }));
    const request = { owner: "seed", environment: "seed", now, expiresAt: now + 3_600_000 };
    const { lease } = await repository.claimNext(request, 10);
    const answer = `One more answer, number ${index}. ${"It is told at length. ".repeat(90)}`;
    await timed(ends, () => work.complete(lease, { answer }, work.inbox(lease), now));
  }
  const service = sources.createRunService({
    runs: repository,
    agentFor: async () => Promise.reject(new Error("nothing is worked on")),
    tree: async () => new sources.StateBackend({ files: new Map() }),
    checkpoints: async () => undefined,
    treeWithThread: async () => sources.StateBackend,
    searchMemories: async () => ({ hits: [] }),
    drawing: async () => "",
    preflight: async () => undefined,
    environment: "bench",
    concurrentRuns: 0,
    log: sources.silentLogger,
  });
  return { database, service, start: median(starts), end: median(ends) };
}

const session = { principal: ME, scopes: ["run", "approve", "read"] };
const context = (runs) => ({ runs, session, openCommand: () => undefined, settings: [] });
const query = (values) => new URLSearchParams(values);
const home = (values) => async (runs) => (await sources.homeScreen(context(runs), query(values)))(now);
const search = (values) => (runs) => {
  const { signal } = new AbortController();
  return sources.searchScreen({ context: context(runs), query: query(values), now, signal });
};
const VAIN = "nothing has this";
const SCREENS = {
  home: home({}),
  "home, searched in vain": home({ q: VAIN }),
  "home, searched for one run": home({ q: "answer 7." }),
  "home, searched for two letters in vain": home({ q: "zq" }),
  "⌘K, names": search({ q: VAIN, part: "names" }),
  "⌘K, everything": search({ q: VAIN }),
  "⌘K, everything, in every run": search({ q: "in the words of others" }),
};

const [few, many] = [await seeded(FEW), await seeded(MANY)];
const times = new Map(Object.keys(SCREENS).map((name) => [name, { few: [], many: [], hold: 0 }]));
let longest = 0;
let last = performance.now();
const watch = setInterval(() => {
  const at = performance.now();
  longest = Math.max(longest, at - last);
  last = at;
});
for (let round = -3; round < ROUNDS; round += 1) {
  for (const [name, screen] of Object.entries(SCREENS)) {
    const measured = times.get(name);
    for (const [store, kept] of [
      [few, measured.few],
      [many, measured.many],
    ]) {
      await new Promise((resolve) => setTimeout(resolve, 3));
      longest = 0;
      const start = performance.now();
      sources.renderDocument(await screen(store.service.as(session)));
      const took = performance.now() - start;
      await new Promise((resolve) => setTimeout(resolve, 3));
      if (round < 0) continue;
      kept.push(took);
      if (store === many) measured.hold = Math.max(measured.hold, longest);
    }
  }
}
clearInterval(watch);
console.log(`Node ${process.version}, median of ${ROUNDS}.\n`);
console.log(`| screen | ${FEW} runs (ms) | ${MANY} runs (ms) | ratio | longest hold of the loop (ms) |`);
console.log("|---|---|---|---|---|");
for (const [name, measured] of times) {
  const [one, other] = [median(measured.few), median(measured.many)];
  const cells = [one, other, other / one].map((value) => value.toFixed(2));
  console.log(`| ${name} | ${cells.join(" | ")} | ${measured.hold.toFixed(1)} |`);
}
for (const name of ["start", "end"]) {
  const [one, other] = [few[name], many[name]];
  const cells = [one, other, other / one].map((value) => value.toFixed(3));
  console.log(`| ${name} of a run, stored | ${cells.join(" | ")} | |`);
}
for (const { database, service } of [few, many]) {
  await service.close();
  database.close();
}
rmSync(folder, { recursive: true, force: true });
