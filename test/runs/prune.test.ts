import { once } from "node:events";
import { statSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/core/logger.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import type { Run } from "../../src/runs/run.ts";
import { type Database, integrityProblems } from "../../src/storage/sqlite/database.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  checkpointsOf,
  calling,
  databaseFile,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

const DAY = 86_400_000;

/** A server with a clock, whose runs fill some space. */
function open(extra: object = {}) {
  const file = databaseFile();
  const { checkpoints, checkpointer } = checkpointsOf(file);
  const time = { now: 1_000_000 };
  const agent = { model: calling(note("a")), tools: [noteTool([])], checkpointer, ...extra };
  const server = openServer(file, agent, { clock: () => time.now, checkpoints: async () => checkpointer });
  const threads = () => checkpoints.prepare("SELECT DISTINCT thread_id FROM checkpoints").pluck().all();
  const ended = async (task: string, request: object = {}) => {
    const run = await startRun(server.service, task, request);
    return (await reach(server.service, run.id, "completed")).run;
  };
  const rows = (table: string) => server.database.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
  return { server, service: server.service, time, checkpoints, checkpointer, threads, ended, rows };
}

test("runs that ended long ago are forgotten, with the threads nobody went on with", async () => {
  const { service, time, threads, ended, rows } = open();
  const [old, continued] = [await ended("old"), await ended("continued")];
  time.now += 10 * DAY;
  const later = await ended("later", { threadId: continued.threadId });
  expect(await service.prune({})).toMatchObject({ runs: 0, threads: 0 });
  expect(await service.prune({ maxAgeMs: 7 * DAY })).toMatchObject({ runs: 2, threads: 1 });
  expect(await mine(service).read.view(old.id)).toBeUndefined();
  expect(await mine(service).read.view(continued.id)).toBeUndefined();
  expect((await mine(service).read.view(later.id))?.run.status).toBe("completed");
  expect(threads()).toEqual([continued.threadId]);
  expect(await mine(service).control.start({ task: "again", threadId: old.threadId })).toMatchObject({
    code: "thread_not_found",
  });
  expect(rows("run_events")).toBe(later.lastSeq);
  expect(await service.prune({ maxAgeMs: 7 * DAY })).toMatchObject({ runs: 0, threads: 0 });
});

test("as long as too much is stored the oldest go, but none that is not over", async () => {
  const { service, time, ended, threads } = open({ model: asking, interruptOn: { note: true } });
  const waiting = await startRun(service, "ask");
  await reach(service, waiting.id, "input_required");
  for (let run = 0; run < 15; run += 1) {
    time.now += 1;
    await ended("free");
  }
  expect(await service.prune({ maxBytes: 1 })).toMatchObject({ runs: 0, threads: 0 });
  time.now += 2 * DAY;
  const size = (await service.prune({ maxBytes: 1e9 })).runs;
  expect(size).toBe(0);
  expect(await service.prune({ maxBytes: 1 })).toMatchObject({ runs: 15, threads: 15 });
  expect((await mine(service).read.list({ limit: 10 })).map(({ id }) => id)).toEqual([waiting.id]);
  expect(threads()).toEqual([waiting.threadId]);
});

test("no more runs go for the room they take than it takes", async () => {
  const { service, time, ended } = open();
  const runs: Run[] = [];
  for (let run = 0; run < 8; run += 1) {
    time.now += 1;
    runs.push(await ended(`task ${run} ${"of many words ".repeat(3000)}`));
  }
  time.now += 2 * DAY;
  const { storedBytes } = await service.planPrune({ maxBytes: 1 });
  const { runs: forgotten } = await service.prune({ maxBytes: storedBytes - 1 });
  expect(forgotten).toBeGreaterThan(0);
  expect(forgotten).toBeLessThan(4);
  const kept = (await mine(service).read.list({ limit: 10 })).map(({ id }) => id);
  expect(kept).toEqual(
    runs
      .slice(forgotten)
      .map(({ id }) => id)
      .toReversed(),
  );
  expect((await service.planPrune({ maxBytes: 1 })).storedBytes).toBeLessThan(storedBytes);
});

const asking = scriptedModel(({ messages }) =>
  messages.at(-1)?.text === "ask" ? { toolCalls: [note("a")] } : { text: "done" },
);

test("checkpoints that were noted for deletion when a server died are deleted by the next", async () => {
  const { service, server, threads, ended } = open();
  const run = await ended("old");
  // As it is after the runs are forgotten and before the checkpoints are.
  server.database.pragma("foreign_keys = OFF");
  for (const table of ["run_events", "runs", "threads"]) server.database.exec(`DELETE FROM ${table}`);
  server.database.prepare("INSERT INTO pruned_threads VALUES (?)").run(run.threadId);
  await service.prune({});
  expect(threads()).toEqual([]);
});

test("the files get smaller by what was forgotten, and the report says by how much", async () => {
  // The same text twice would be stored once.
  const model = scriptedModel(({ call }) =>
    call % 2 === 1 ? { toolCalls: [note(`${call} `.repeat(20_000))] } : { text: "done" },
  );
  const { service, server, checkpoints, time, ended } = open({ model });
  for (let run = 0; run < 12; run += 1) await ended("fill");
  const files = [server.database.name, checkpoints.name];
  const sizes = () => files.map((file) => statSync(file).size).reduce((sum, size) => sum + size, 0);
  for (const one of [server.database, checkpoints]) one.pragma("wal_checkpoint(TRUNCATE)");
  const before = sizes();
  time.now += 10 * DAY;
  const plan = await service.planPrune({ maxAgeMs: DAY });
  expect(plan).toMatchObject({ runs: 12, runsForSize: 0, unfinished: 0, orphans: 0 });
  expect(await service.planPrune({ maxBytes: 1 })).toMatchObject({ runs: 0, runsForSize: 12 });
  expect((await mine(service).read.list({ limit: 20 })).length).toBe(12);
  const { runs, freedBytes } = await service.prune({ maxAgeMs: DAY });
  expect(runs).toBe(12);
  expect(before - sizes()).toBe(freedBytes);
  expect(freedBytes).toBeGreaterThan(before / 2);
  expect(integrityProblems(server.database)).toEqual([]);
});

test("two servers prune at once, and each run is forgotten by one of them", async () => {
  const { service, server, time, ended, threads, checkpointer } = open();
  for (let run = 0; run < 30; run += 1) await ended("old");
  time.now += 10 * DAY;
  const kept = await ended("new");
  const other = openServer(
    server.database.name,
    { model: calling(note("a")) },
    { clock: () => time.now, concurrentRuns: 0, checkpoints: async () => checkpointer },
  );
  const reports = await Promise.all([service, other.service].map((one) => one.prune({ maxAgeMs: DAY })));
  expect(reports.map(({ runs }) => runs).reduce((sum, runs) => sum + runs)).toBe(30);
  await service.prune({});
  expect((await mine(service).read.list({ limit: 50 })).map(({ id }) => id)).toEqual([kept.id]);
  expect(threads()).toEqual([kept.threadId]);
});

test("who reads a run that is forgotten comes to an end", async () => {
  const { service, time, ended } = open();
  const run = await ended("old");
  time.now += 10 * DAY;
  const signal = new AbortController().signal;
  const reader = mine(service).watch.events(run.id, { signal })[Symbol.asyncIterator]();
  expect((await reader.next()).value).toMatchObject({ seq: 1 });
  await service.prune({ maxAgeMs: DAY });
  const rest: RunEvent[] = [];
  for (let next = await reader.next(); next.done !== true; next = await reader.next()) rest.push(next.value);
  expect(rest.map(({ seq }) => seq)).toEqual(rest.map((_event, index) => index + 2));
  expect(await mine(service).read.view(run.id)).toBeUndefined();
  expect(await mine(service).read.events(run.id)).toBeUndefined();
});

test("of a long journal nobody reads what is left while it is forgotten, or when that was broken off", async () => {
  const { service, server, time, ended } = open();
  const run = await ended("old", { idempotencyKey: "once" });
  lengthen(server.database, run, 1200);
  time.now += 10 * DAY;
  const events = mine(service).watch.events(run.id, { signal: new AbortController().signal });
  const reader = events[Symbol.asyncIterator]();
  const seen = [(await reader.next()).value?.seq];
  // Ends in the middle of the journal, like a process that is killed there.
  server.database.exec(
    `CREATE TRIGGER dies BEFORE DELETE ON run_events WHEN OLD.seq > 800 BEGIN SELECT RAISE(ABORT, 'died'); END`,
  );
  await expect(service.prune({ maxAgeMs: DAY })).rejects.toThrow("died");
  for (let next = await reader.next(); next.done !== true; next = await reader.next()) {
    seen.push(next.value.seq);
  }
  expect(seen).toEqual(seen.map((_seq, index) => index + 1));
  expect(await mine(service).read.view(run.id)).toBeUndefined();
  expect(await mine(service).read.events(run.id, { after: 900 })).toBeUndefined();
  expect(await mine(service).read.list({ limit: 10 })).toEqual([]);
  expect(await mine(service).control.start({ task: "another", idempotencyKey: "once" })).toMatchObject({
    how: "started",
  });
  server.database.exec("DROP TRIGGER dies");
  expect(await service.prune({})).toMatchObject({ runs: 1, threads: 1 });
  expect(server.database.prepare("SELECT 1 FROM run_events WHERE run_id = ?").get(run.id)).toBeUndefined();
});

function lengthen(database: Database, { id, lastSeq }: Run, length: number): void {
  const add = database.prepare(
    `INSERT INTO run_events (run_id, seq, time, agent, kind, data) VALUES (?, ?, 0, '[]', 'warning', '{"message":"m"}')`,
  );
  for (let seq = lastSeq + 1; seq <= length; seq += 1) add.run(id, seq);
  database.prepare("UPDATE runs SET last_seq = ? WHERE id = ?").run(length, id);
}

test("housekeeping forgets runs and memories whose time is over, and is left to servers that are told to", async () => {
  const { server, time, ended, rows } = open();
  await ended("old");
  const store = createStore(server.database, { clock: () => time.now });
  await store.put(["a"], "short", {}, undefined, { ttl: 1 });
  await store.put(["a"], "long", {});
  time.now += 10 * DAY;
  const sweepMemories = (signal: AbortSignal) => store.sweepExpiredItems(signal);
  const options = { clock: () => time.now, concurrentRuns: 0, sweepMemories };
  const agent = { model: calling(note("a")) };
  await openServer(server.database.name, agent, options).service.close();
  expect([rows("runs"), rows("store_items")]).toEqual([1, 2]);
  const told = openServer(server.database.name, agent, { ...options, retention: { maxAgeMs: DAY } });
  await expect.poll(() => [rows("runs"), rows("store_items")]).toEqual([0, 1]);
  await told.service.close();
});

test("closing breaks housekeeping off, and waits until it has stopped", async () => {
  const { server } = open();
  const told: string[] = [];
  const warn = (event: string) => void told.push(event);
  const log = { ...silentLogger, warn, error: warn };
  const sweepMemories = async (signal: AbortSignal): Promise<number> => {
    if (!signal.aborted) await once(signal, "abort");
    await nextTurn();
    told.push("stopped");
    return 0;
  };
  const options = { concurrentRuns: 0, retention: { maxAgeMs: DAY }, sweepMemories, log };
  const keeping = openServer(server.database.name, { model: calling(note("a")) }, options);
  await keeping.service.close();
  keeping.database.close();
  expect(told).toEqual(["stopped"]);
});

test("a completed run keeps its conversation, and of its subagents the messages alone", async () => {
  const model = scriptedModel(({ messages, tools }) => {
    if (!tools.includes("task") || messages.at(-1)?.type === "tool") return { text: "done" };
    return { toolCalls: [{ name: "task", args: { description: "go", subagent_type: "general-purpose" } }] };
  });
  const { server, ended, checkpoints } = open({ model });
  const run = await ended("delegate");
  await server.service.close();
  const spaces = checkpoints.prepare("SELECT DISTINCT checkpoint_ns FROM checkpoints").pluck().all();
  expect(spaces).toEqual([""]);
  const nested = "SELECT DISTINCT channel FROM writes WHERE checkpoint_ns > ''";
  expect(checkpoints.prepare(nested).pluck().all()).toEqual(["messages"]);
  expect(run.answer).toBe("done");
});

test("threads that belong to no run are counted, and deleted only when that is asked", async () => {
  const { service, server, threads, ended, checkpoints } = open();
  const [kept, lost] = [await ended("kept"), await ended("lost")];
  // As with a database of runs that was restored from an older copy.
  server.database.pragma("foreign_keys = OFF");
  server.database.prepare("DELETE FROM run_events WHERE run_id = ?").run(lost.id);
  server.database.prepare("DELETE FROM runs WHERE id = ?").run(lost.id);
  server.database.prepare("DELETE FROM threads WHERE id = ?").run(lost.threadId);
  expect(await service.prune({})).toMatchObject({ runs: 0, threads: 0 });
  expect(await service.prune({}, "count")).toMatchObject({ runs: 0, threads: 0, orphans: 1 });
  expect(threads().toSorted()).toEqual([kept.threadId, lost.threadId].toSorted());
  expect(await service.prune({}, "delete")).toMatchObject({ orphans: 1 });
  expect(threads()).toEqual([kept.threadId]);
  const writes = checkpoints.prepare("SELECT count(*) FROM writes WHERE thread_id = ?").pluck();
  expect(writes.get(lost.threadId)).toBe(0);
  expect(await service.prune({}, "count")).toMatchObject({ orphans: 0 });
  expect((await mine(service).read.view(kept.id))?.run.status).toBe("completed");
});
