// Servers on one Postgres: what transitions, steps, following and claims cost, with SQLite as the peer.
// Usage: node bench/scale-out/bench.mjs [most parked runs, default 1000000]
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadSources } from "../../scripts/sources.mjs";
import { SteppingModel } from "../support/stepping-model.mjs";

/** Of what a step writes into a file, where that is much. */
const LARGE_BYTES = 150_000;
const LARGE_STEPS = 40;

if (process.argv[2] === "s3") {
  const { startS3rver } = await loadSources('export { startS3rver } from "./test/support/s3-servers.ts";');
  const s3 = await startS3rver();
  process.send(s3);
  process.once("disconnect", () => s3.stop().then(() => process.exit(0)));
  await new Promise(() => {});
}

const MOST_PARKED = Number(process.argv[2] ?? 1_000_000);
const STARTS = 300;
const AT_ONCE = 32;
const EVENTS = 200;
const STEPS = 100;
const PRINCIPALS = 1000;

const sources = await loadSources(`
  export { buildAgent } from "./src/agent/agent.ts";
  export { createRunService } from "./src/runs/supervisor.ts";
  export { StateBackend } from "./src/backends/stores/state.ts";
  export { snapshotFiles } from "./src/backends/runtime.ts";
  export { createDeepAgent } from "./src/agent/build/create-deep-agent.ts";
  export { silentLogger } from "./src/core/logger.ts";
  export { openSqlite } from "./src/storage/sqlite/storage.ts";
  export { openPool } from "./src/storage/postgres/pool.ts";
  export { openPostgres } from "./src/storage/postgres/storage.ts";
  export { PostgresCheckpointer } from "./src/storage/postgres/checkpoints/checkpointer.ts";
  export { LargeObjects } from "./src/storage/postgres/checkpoints/objects.ts";
  export { startPostgres } from "./test/support/postgres-server.ts";
`);
const logger = sources.silentLogger;
const folder = mkdtempSync(join(tmpdir(), "deepagent-scale-"));
const server = await sources.startPostgres({ flushes: true });
const openPostgres = (schema) => sources.openPostgres({ url: server.url, schema, connections: 10, logger });

const at = (times, share) => {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
};
const timed = async (work) => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

let number = 0;
const start = async (runs, principal = "me") => {
  number += 1;
  const fresh = { runId: `run_${number}`, newThreadId: `thr_${number}`, environment: "e", now: Date.now() };
  const created = await runs.create(principal, { task: "work" }, fresh);
  return created.run;
};
const claim = async (runs, owner = "a") => {
  const now = Date.now();
  return runs.claimNext({ owner, environment: "e", now, expiresAt: now + 10_000 }, 10);
};

/** Starts one by one, starts at once, events of many runs at once. */
async function transitions(storage) {
  const { runs } = storage;
  const one = [];
  for (let n = 0; n < 100; n += 1) one.push(await timed(() => start(runs)));
  const many = await timed(() => Promise.all(Array.from({ length: STARTS }, () => start(runs))));
  const claims = [];
  for (let n = 0; n < AT_ONCE; n += 1) claims.push(await claim(runs));
  const log = runs.work({});
  const events = await timed(() =>
    Promise.all(
      claims.map(async ({ lease }) => {
        for (let n = 0; n < EVENTS; n += 1) {
          const data = { callId: `call_${n}`, tool: "ls", summary: "lists the folder" };
          const identity = `tool_started/call_${n}`;
          await log.record(lease, [{ kind: "tool_started", agent: [], data, identity }], Date.now());
        }
      }),
    ),
  );
  return {
    start: at(one, 0.5),
    starts: (STARTS * 1000) / many,
    events: (AT_ONCE * EVENTS * 1000) / events,
  };
}

const LOOK = () => ({ name: "ls", args: { path: "/" } });
const WRITE = (step) => {
  const content = randomBytes(LARGE_BYTES / 2).toString("hex");
  return { name: "write_file", args: { file_path: `/${step}.txt`, content } };
};

/** Milliseconds of a step of an agent that is alone, and of taking up its thread again. */
async function step(checkpointer, call = LOOK, steps = STEPS) {
  const model = new SteppingModel(steps, call);
  const agent = sources.createDeepAgent({ model, checkpointer });
  const config = { configurable: { thread_id: "t" }, recursionLimit: 10_000 };
  await agent.invoke({ messages: [{ role: "user", content: "go" }] }, config);
  const laps = model.times.slice(1).map((time, index) => time - model.times[index]);
  const again = await timed(() => agent.getState({ configurable: { thread_id: "t" } }));
  return { step: at(laps, 0.5), again };
}

/** The same for steps that write much: everything in Postgres, and large values in S3. */
async function largeSteps() {
  const child = fork(fileURLToPath(import.meta.url), ["s3"]);
  const [{ endpoint, credentials }] = await once(child, "message");
  const rows = [];
  for (const isInS3 of [false, true]) {
    const { access } = await sources.openPool({ url: server.url, schema: `large_${isInS3}` });
    const { pool } = access;
    const objects = new sources.LargeObjects(access, { bucket: "files", endpoint, credentials });
    const saver = new sources.PostgresCheckpointer(access, isInS3 ? objects : undefined);
    const { step: lap, again } = await step(saver, WRITE, LARGE_STEPS);
    const { rows: sizes } = await pool.query(
      "SELECT pg_total_relation_size('checkpoint_blobs') AS blobs, (SELECT count(*) FROM checkpoint_objects) AS objects",
    );
    rows.push({ lap, again, ...sizes[0] });
    await objects.close();
    await pool.end();
  }
  child.disconnect();
  return rows;
}

/** From the moment a change is stored by one server until whoever follows the run at another has it. */
async function follow() {
  const [one, other] = [await openPostgres("follow"), await openPostgres("follow")];
  const run = await start(one.runs);
  const { lease } = await claim(one.runs);
  const seen = new Map();
  const listener = {
    changed: async () => {
      const page = await other.runs.read.journal("me", run.id, seen.size + 1, 100);
      for (const { seq } of page.events) if (!seen.has(seq)) seen.set(seq, performance.now());
    },
    changedElsewhere: () => {},
    failed: () => {},
  };
  const watching = other.runs.watch(listener, 100);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const stored = [];
  const log = one.runs.work({});
  for (let n = 0; n < 200; n += 1) {
    const data = { callId: `call_${n}`, tool: "ls", summary: "lists the folder" };
    await log.record(lease, [{ kind: "tool_started", agent: [], data }], Date.now());
    stored.push(performance.now());
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await new Promise((resolve) => setTimeout(resolve, 500));
  watching.close();
  const lags = stored.flatMap((time, index) => (seen.has(index + 2) ? [seen.get(index + 2) - time] : []));
  await Promise.all([one.close(), other.close()]);
  return { lags, heard: lags.length / stored.length };
}

/** One process with many runs at work: how many at most, and what a look at one takes meanwhile. */
async function atWork() {
  const storage = await openPostgres("at_work");
  const { access } = await sources.openPool({ url: server.url, schema: "at_work" });
  const saver = new sources.PostgresCheckpointer(access);
  const service = sources.createRunService({
    runs: storage.runs,
    checkpoints: async () => saver,
    agentFor: async () =>
      sources.buildAgent({
        model: new SteppingModel(WORK_STEPS, LOOK, THINKS_MS),
        checkpointer: saver,
        recursionLimit: 10_000,
      }),
    tree: async () => new sources.StateBackend({ files: sources.snapshotFiles() }),
    treeWithThread: async () => sources.StateBackend,
    searchMemories: async () => ({ hits: [] }),
    drawing: async () => "",
    preflight: async () => undefined,
    environment: "bench",
    concurrentRuns: AT_WORK,
    log: logger,
  });
  const ids = [];
  for (let n = 0; n < AT_WORK; n += 1) {
    const { run } = await service.as({ principal: `x${n}` }).control.start({ task: "work" });
    ids.push(run.id);
  }
  const looks = [];
  let most = 0;
  const seconds = await timed(async () => {
    for (let n = 0; ; n = (n + 1) % AT_WORK) {
      looks.push(await timed(() => service.as({ principal: `x${n}` }).read.view(ids[n])));
      if (n > 0) continue;
      const statistics = await service.statistics();
      most = Math.max(most, statistics.atWork);
      if (statistics.runs.working === 0) break;
    }
  });
  await service.close();
  await access.pool.end();
  await storage.close();
  return { most, looks, steps: (AT_WORK * WORK_STEPS * 1000) / seconds };
}

const AT_WORK = 60;
const WORK_STEPS = 20;
const THINKS_MS = 1000;
const SLICE = 50_000;

/** What is asked most, where 1,000 principals have a run that waits and so many are parked. */
async function growth(parked) {
  const schema = `claims_${parked}`;
  const storage = await openPostgres(schema);
  const {
    access: { pool },
  } = await sources.openPool({ url: server.url, schema });
  // In slices, as the pool gives up a statement that takes too long.
  for (let from = 1; from <= parked; from += SLICE) {
    const slice = `generate_series(${from}, ${Math.min(parked, from + SLICE - 1)}) AS n`;
    await pool.query(`INSERT INTO threads SELECT 'p' || n, 'x' || n % ${PRINCIPALS}, 0 FROM ${slice}`);
    await pool.query(
      `INSERT INTO runs (id, thread_id, principal, environment, task, status, created_at, updated_at, runnable,
         runnable_since)
       SELECT 'parked' || n, 'p' || n, 'x' || n % ${PRINCIPALS}, 'e', 'work', 'input_required', 0, 0, 0, 0
       FROM ${slice}`,
    );
  }
  await pool.query("ANALYZE");
  const of = async (count, work) => {
    const times = [];
    for (let n = 0; n < count; n += 1) times.push(await timed(() => work(`x${n}`)));
    return times;
  };
  const { read } = storage.runs;
  const starts = await of(PRINCIPALS, (principal) => start(storage.runs, principal));
  const lists = await of(100, (principal) => read.summaries(principal, {}, { limit: 50 }));
  const counts = await of(100, (principal) => read.counts(principal));
  const claims = await of(300, () => claim(storage.runs));
  await pool.end();
  await storage.close();
  return [at(claims, 0.5), at(claims, 0.99), ...[starts, lists, counts].map((times) => at(times, 0.5))];
}

const number2 = (value) => value.toFixed(value < 10 ? 2 : 0);
try {
  console.log(
    `Node ${process.version}, ${process.platform}, Postgres on the same machine, commits flushed\n`,
  );
  const sqlite = await sources.openSqlite(join(folder, "data"), logger);
  const postgres = await openPostgres("transitions");
  const [ours, theirs] = [await transitions(postgres), await transitions(sqlite)];
  const stepping = await sources.openPool({ url: server.url, schema: "stepping" });
  let statements = 0;
  const query = stepping.access.pool.query.bind(stepping.access.pool);
  stepping.access.pool.query = (...args) => {
    statements += 1;
    return query(...args);
  };
  const onPostgres = await step(new sources.PostgresCheckpointer(stepping.access));
  const onSqlite = await step((await sqlite.forAgents()).checkpointer);
  const row = (name, a, b) =>
    console.log(`| ${name} | ${number2(b)} | ${number2(a)} | ${(a / b).toFixed(2)} |`);
  console.log("| one process | SQLite | Postgres | ratio |\n|---|---|---|---|");
  row("a start alone (ms)", ours.start, theirs.start);
  row(`starts a second, ${STARTS} at once`, ours.starts, theirs.starts);
  row(`stored events a second, ${AT_ONCE} runs at once`, ours.events, theirs.events);
  row(`a step of an agent (ms), median of ${STEPS}`, onPostgres.step, onSqlite.step);
  row(`taking up that thread again (ms)`, onPostgres.again, onSqlite.again);
  console.log(`\nA step takes ${(statements / STEPS).toFixed(1)} statements of checkpoints.`);
  const [inPostgres, inS3] = await largeSteps();
  console.log(
    `\n| steps that write ${LARGE_BYTES / 1000} KB | Postgres | with S3 | ratio |\n|---|---|---|---|`,
  );
  row(`a step (ms), median of ${LARGE_STEPS}`, inS3.lap, inPostgres.lap);
  row("taking up that thread again (ms)", inS3.again, inPostgres.again);
  row("large values in Postgres (MB)", inS3.blobs / 1e6, inPostgres.blobs / 1e6);
  console.log(`\n${inS3.objects} objects.`);
  const { lags, heard } = await follow();
  console.log(
    `\nFollowed on another server: p50 ${at(lags, 0.5).toFixed(1)} ms, p99 ${at(lags, 0.99).toFixed(1)} ms, ${(heard * 100).toFixed(0)} % heard.\n`,
  );
  const { most, looks, steps } = await atWork();
  console.log(
    `${most} runs at work at once in one process, ${steps.toFixed(0)} steps a second with a model that thinks for ${THINKS_MS} ms; a look at a run: p50 ${at(looks, 0.5).toFixed(1)} ms, p99 ${at(looks, 0.99).toFixed(1)} ms.\n`,
  );
  console.log("| parked runs | claim p50 (ms) | p99 (ms) | start (ms) | list of 50 (ms) | counts (ms) |");
  console.log("|---|---|---|---|---|---|");
  for (let parked = 1000; parked <= MOST_PARKED; parked *= 10) {
    const cells = (await growth(parked)).map((value) => value.toFixed(1));
    console.log(`| ${[parked, ...cells].join(" | ")} |`);
  }
  await Promise.all([postgres.close(), sqlite.close(), stepping.access.pool.end()]);
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
