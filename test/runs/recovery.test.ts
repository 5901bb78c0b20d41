import { isApproval } from "../../src/runs/run.ts";
import { expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
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
  reachAsked,
  askedAbout,
} from "./support.ts";

const GATED = { interruptOn: { note: true } };

test("a run whose server died goes on from its last checkpoint; finished calls do not run again", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const reached = deferred();
  const hangs = scriptedModel(async ({ messages }) => {
    if (messages.at(-1)?.type === "human") return { toolCalls: [note("a")] };
    reached.resolve();
    return new Promise(() => {});
  });
  const died = openServer(file, { model: hangs, tools: [noteTool(notes)] });
  const run = await startRun(died.service, "note a");
  await reached.promise;
  died.kill();

  const model = scriptedModel(({ messages }) => ({ text: messages.map(({ type }) => type).join(" ") }));
  const next = openServer(file, { model, tools: [noteTool(notes)] });
  const view = await reach(next.service, run.id, "completed");
  expect(view.run.answer).toBe("system human ai tool");
  expect(notes).toEqual(["a"]);
  const events = await follow(next.service, run.id);
  expect(kinds(events)).toEqual([
    "run_started",
    "model_called",
    "tool_started",
    "tool_finished",
    "run_resumed",
    "model_called",
    "run_completed",
  ]);
  expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

test("a run whose server died before its first step has its task once", async () => {
  const file = databaseFile();
  const reached = deferred();
  const hangs = scriptedModel(() => {
    reached.resolve();
    return new Promise(() => {});
  });
  const died = openServer(file, { model: hangs });
  const run = await startRun(died.service, "the task");
  await reached.promise;
  died.kill();
  const model = scriptedModel(({ messages }) => ({
    text: messages
      .filter(({ type }) => type === "human")
      .map(({ text }) => text)
      .join(" | "),
  }));
  const next = openServer(file, { model });
  expect((await reach(next.service, run.id, "completed")).run.answer).toBe("the task");
});

test("a run that was stored but never begun is begun by the next server", async () => {
  const file = databaseFile();
  const model = scriptedModel(() => ({ text: "done" }));
  const first = openServer(file, { model }, { concurrentRuns: 0 });
  const run = await startRun(first.service, "later");
  first.kill();
  const next = openServer(file, { model });
  expect((await reach(next.service, run.id, "completed")).run.answer).toBe("done");
});

test("an approval outlives its server, and what was decided before the crash is honoured after it", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const agent = { ...GATED, model: calling(note("a"), note("b")), tools: [noteTool(notes)] };
  const first = openServer(file, agent);
  const run = await startRun(first.service, "note a and b");
  await reachAsked(first.service, run.id, 2);
  first.kill();

  const clerk = openServer(file, agent, { concurrentRuns: 0 });
  await approve(clerk.service, run.id, "a");
  clerk.kill();
  expect(notes).toEqual([]);

  const second = openServer(file, agent);
  await follow(second.service, run.id, ({ kind }) => kind === "tool_finished");
  expect(notes).toEqual(["a"]);
  const pending = (await mine(second.service).read.view(run.id))?.requests
    .filter(isApproval)
    .filter(({ status }) => status === "pending");
  expect(pending?.map(({ args }) => args)).toEqual([{ text: "b" }]);
  await approve(second.service, run.id, "b");
  expect((await reach(second.service, run.id, "completed")).run.answer).toBe("noted a; noted b");
  expect(notes).toEqual(["a", "b"]);
});

test("a server that lost a run while it could not write never writes to it again", async () => {
  const file = databaseFile();
  const release = deferred();
  const reached = deferred();
  let now = 1_000_000;
  const slow = scriptedModel(async () => {
    reached.resolve();
    await release.promise;
    return { text: "from the first" };
  });
  const never = { pollMs: 1_000_000, heartbeatMs: 1_000_000, leaseMs: 200 };
  // The first server neither beats nor looks, like a suspended process.
  const first = openServer(file, { model: slow }, { clock: () => now, timing: never });
  const run = await startRun(first.service, "work");
  await reached.promise;
  now += 1000;
  const second = openServer(
    file,
    { model: scriptedModel(() => ({ text: "from the second" })) },
    { clock: () => now },
  );
  expect((await reach(second.service, run.id, "completed")).run.answer).toBe("from the second");
  release.resolve();
  await first.service.close();
  const view = await mine(second.service).read.view(run.id);
  expect(view?.run.answer).toBe("from the second");
  expect(kinds(await follow(second.service, run.id)).at(-1)).toBe("run_completed");
});

test("a lease that is renewed is never taken away, however late it looks at one moment", async () => {
  const file = databaseFile();
  const release = deferred();
  const reached = deferred();
  let calls = 0;
  const model = scriptedModel(async () => {
    calls += 1;
    reached.resolve();
    await release.promise;
    return { text: "done" };
  });
  let now = 1_000_000;
  const clock = () => now;
  const timing = { pollMs: 5, heartbeatMs: 5, leaseMs: 1000 };
  const first = openServer(file, { model }, { clock, timing });
  const run = await startRun(first.service, "work");
  await reached.promise;
  // The machine slept: for both servers every lease has expired.
  now += 3_600_000;
  const second = openServer(file, { model }, { clock, timing });
  const other = await startRun(second.service, "other work");
  release.resolve();
  await reach(second.service, other.id, "completed");
  await reach(second.service, run.id, "completed");
  expect(calls).toBe(2);
  expect(kinds(await follow(second.service, run.id))).toEqual([
    "run_started",
    "model_called",
    "run_completed",
  ]);
});

test("a crash amid subagents repeats none of their finished calls, and their approvals stay the same", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const hangs = deferred();
  const delegating = (whenSecond: () => Promise<unknown>) =>
    scriptedModel(async ({ messages, tools }) => {
      const task = messages.find(({ type }) => type === "human")?.text;
      const first = messages.every(({ type }) => type !== "ai");
      const subagent = !tools.includes("task");
      if (!first) return { text: `${task} done` };
      if (!subagent) return { toolCalls: ["one", "two"].map(delegate) };
      if (task === "one") return { toolCalls: [note("free"), note("gated")] };
      await whenSecond();
      return { text: "two done" };
    });
  const agent = (whenSecond: () => Promise<unknown>) => ({
    model: delegating(whenSecond),
    tools: [noteTool(notes)],
    interruptOn: askedAbout("gated"),
  });
  const died = openServer(
    file,
    agent(() => {
      hangs.resolve();
      return new Promise(() => {});
    }),
  );
  const run = await startRun(died.service, "both");
  await hangs.promise;
  await follow(died.service, run.id, ({ kind, data }) => kind === "tool_finished" && data["tool"] === "note");
  const approvals = (await reach(died.service, run.id, "input_required")).requests.filter(isApproval);
  died.kill();

  const next = openServer(
    file,
    agent(() => Promise.resolve()),
  );
  await follow(
    next.service,
    run.id,
    ({ kind, agent: path }) => kind === "subagent_finished" && path.length === 1,
  );
  expect((await mine(next.service).read.view(run.id))?.requests.filter(isApproval)).toEqual(approvals);
  await approve(next.service, run.id, "gated");
  const view = await reach(next.service, run.id, "completed");
  expect(notes).toEqual(["free", "gated"]);
  expect(view.subagents.map(({ description, status }) => [description, status])).toEqual([
    ["one", "completed"],
    ["two", "completed"],
  ]);
  expect(
    kinds(await follow(next.service, run.id)).filter((kind) => kind === "subagent_started"),
  ).toHaveLength(2);
});

test("what does not stop when its server closes is shut out, and goes on elsewhere", async () => {
  const file = databaseFile();
  const release = deferred();
  const late = openServer(file, async () => {
    await release.promise;
    return { model: scriptedModel(() => ({ text: "too late" })) };
  });
  const run = await startRun(late.service, "work");
  await late.service.close();
  const next = openServer(file, { model: scriptedModel(() => ({ text: "went on" })) });
  release.resolve();
  expect((await reach(next.service, run.id, "completed")).run.answer).toBe("went on");
  const events = ["run_started", "run_parked", "run_resumed", "model_called", "run_completed"];
  expect(kinds(await follow(next.service, run.id))).toEqual(events);
});

const delegate = (description: string) => ({
  name: "task",
  args: { description, subagent_type: "general-purpose" },
});
