import { isApproval } from "../../src/runs/run.ts";
import { expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  APPROVE,
  mine,
  approve,
  calling,
  databaseFile,
  follow,
  kinds,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
  askedAbout,
  reachAsked,
} from "./support.ts";

const GATED = { interruptOn: { note: true } };
const idle = { model: scriptedModel(() => ({ text: "" })) };
/** Looks on: never works on a run itself. */
const LOOKS_ON = { concurrentRuns: 0 };

test("a run is seen and followed from another process while it works", async () => {
  const file = databaseFile();
  const gate = deferred();
  const tools = [noteTool([], () => gate.promise)];
  const worker = openServer(file, { model: calling(note("a")), tools });
  const watcher = openServer(file, idle, LOOKS_ON);
  const run = await startRun(worker.service, "note a");
  const seen = await follow(watcher.service, run.id, ({ kind }) => kind === "tool_started");
  expect(seen.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  expect((await mine(watcher.service).read.view(run.id))?.run.status).toBe("working");
  gate.resolve();
  const rest = await follow(watcher.service, run.id, undefined, 3);
  expect(kinds(rest)).toEqual(["tool_finished", "model_called", "run_completed"]);
  expect(await mine(watcher.service).read.view(run.id)).toEqual(await mine(worker.service).read.view(run.id));
});

test("a decision stored by a process that only looks on is taken up by one that works", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const worker = openServer(file, {
    ...GATED,
    model: calling(note("a"), note("b")),
    tools: [noteTool(notes)],
  });
  const other = openServer(file, idle, LOOKS_ON);
  const run = await startRun(worker.service, "note a and b");
  await reachAsked(worker.service, run.id, 2);
  await approve(other.service, run.id, "b");
  await follow(other.service, run.id, ({ kind }) => kind === "tool_finished");
  expect(notes).toEqual(["b"]);
  await approve(other.service, run.id, "a");
  expect((await reach(other.service, run.id, "completed")).run.answer).toBe("noted a; noted b");
  expect(notes).toEqual(["b", "a"]);
});

test("one of two people's answers wins, and the other is told", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const agent = { ...GATED, model: calling(note("a")), tools: [noteTool(notes)] };
  const servers = [openServer(file, agent), openServer(file, agent)] as const;
  const run = await startRun(servers[0].service, "note a");
  const approvals = (await reach(servers[1].service, run.id, "input_required")).requests.filter(isApproval);
  const id = approvals[0]?.id ?? "";
  const outcomes = await Promise.all([
    mine(servers[0].service).requests.answer(run.id, { requestId: id, answer: APPROVE }, "first"),
    mine(servers[1].service).requests.answer(
      run.id,
      { requestId: id, answer: { type: "reject", message: "no" } },
      "second",
    ),
  ]);
  const isApproved = outcomes[0].ok;
  const approval = isApproved
    ? { status: "approved", decidedBy: "first" }
    : { status: "rejected", decidedBy: "second" };
  const [won, lost] = isApproved ? outcomes : outcomes.toReversed();
  expect(won).toMatchObject({ ok: true, how: "stored", request: approval });
  expect(lost).toMatchObject({ ok: false, code: "already_answered", request: approval });
  await reach(servers[0].service, run.id, "completed");
  expect(notes).toEqual(isApproved ? ["a"] : []);
});

test("cancelling from another process stops the work, and the thread is free for the next run", async () => {
  const file = databaseFile();
  const started = deferred();
  const aborted = deferred();
  const obedient = noteTool([], async (_text, signal) => {
    signal?.addEventListener("abort", () => aborted.resolve());
    started.resolve();
    await aborted.promise;
    throw new Error("stopped");
  });
  const second = { model: scriptedModel(() => ({ text: "second" })) };
  const first = { model: calling(note("a")), tools: [obedient] };
  const worker = openServer(file, (run) => (run.task === "first" ? first : second));
  const other = openServer(file, idle, LOOKS_ON);
  const run = await startRun(worker.service, "first");
  await started.promise;
  const cancelled = await mine(other.service).control.cancel(run.id, "elsewhere");
  expect(cancelled).toMatchObject({ ok: true, run: { status: "cancelled" } });
  await aborted.promise;
  const next = await startRun(other.service, "second", { threadId: run.threadId });
  expect((await reach(other.service, next.id, "completed")).run.answer).toBe("second");
  expect(kinds(await follow(other.service, run.id)).at(-1)).toBe("run_cancelled");
});

test("runs are worked on only by servers with the environment they were started in", async () => {
  const file = databaseFile();
  const here = openServer(file, { model: scriptedModel(() => ({ text: "here" })) }, { environment: "/here" });
  const notThere = openServer(file, idle, { environment: "/there", concurrentRuns: 0 });
  const run = await startRun(notThere.service, "work there");
  const own = await startRun(here.service, "work here");
  expect((await reach(here.service, own.id, "completed")).run.answer).toBe("here");
  expect((await mine(here.service).read.view(run.id))?.run.status).toBe("working");
  const there = openServer(
    file,
    { model: scriptedModel(() => ({ text: "there" })) },
    { environment: "/there" },
  );
  expect((await reach(there.service, run.id, "completed")).run.answer).toBe("there");
});

test("two servers under load: every call runs once, every journal is whole", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const agent = (run: { task: string }) => ({
    interruptOn: askedAbout("gated"),
    model: calling(note(`${run.task} free`), note(`${run.task} gated`)),
    tools: [noteTool(notes)],
  });
  const a = openServer(file, agent, { concurrentRuns: 3 });
  const b = openServer(file, agent, { concurrentRuns: 3 });
  const runs = await Promise.all(
    Array.from({ length: 20 }, (_, index) => startRun((index % 2 === 0 ? a : b).service, `${index}`)),
  );
  await Promise.all(
    runs.map(async (run, index) => {
      const { service } = index % 3 === 0 ? a : b;
      await reach(service, run.id, "input_required");
      await approve(service, run.id, `${index} gated`);
      await reach(service, run.id, "completed");
    }),
  );
  const expected = runs.flatMap((_, index) => [`${index} free`, `${index} gated`]);
  expect(notes.toSorted()).toEqual(expected.toSorted());
  for (const run of runs) {
    const events = await follow(a.service, run.id);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(kinds(events).toSorted()).toEqual([
      "approval_decided",
      "approval_requested",
      "model_called",
      "model_called",
      "run_completed",
      "run_started",
      "tool_finished",
      "tool_finished",
      "tool_started",
      "tool_started",
    ]);
  }
});
