import { isApproval } from "../../src/runs/run.ts";
import { expect, test } from "vitest";
import type { RunEvent } from "../../src/runs/events.ts";
import type { RunService } from "../../src/runs/service.ts";
import { stepRows } from "../../src/server/views/room/steps.ts";
import { deferred } from "../support/harness-deferred.ts";
import { callingOnce, type ScriptedToolCall } from "../support/scripted-model.ts";
import { agentWith, repliesIn, reportsIn, resultsIn } from "./background/support.ts";
import {
  APPROVE,
  mine,
  approve,
  calling,
  databaseFile,
  follow,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

const program = (source: string): ScriptedToolCall => ({ name: "run_program", args: { source } });
const SETTINGS = { programs: true, interruptOn: { note: true } };

/** Notes the texts at once, and returns what each call said. */
const noteAll = (...texts: string[]): string => `
  return Promise.all(${JSON.stringify(texts)}.map((text) => tools.note({ text }).catch((error) => error.message)));`;

test("the calls of a program wait as approvals of their own, and are made once each when all are decided", async () => {
  const notes: string[] = [];
  const agent = { ...SETTINGS, model: calling(program(noteAll("a", "b", "c"))), tools: [noteTool(notes)] };
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "three notes");
  const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
  expect(approvals.map(({ args, index }) => [args["text"], index])).toEqual([
    ["a", 0],
    ["b", 1],
    ["c", 2],
  ]);
  await approve(service, run.id, "c");
  const rejected = approvals[1]?.id ?? "";
  await mine(service).requests.answer(
    run.id,
    { requestId: rejected, answer: { type: "reject", message: "no" } },
    "test",
  );
  expect((await mine(service).read.view(run.id))?.run.status).toBe("input_required");
  expect(notes).toEqual([]);
  await approve(service, run.id, "a");
  const view = await reach(service, run.id, "completed");
  expect(view.run.answer).toBe('["noted a","no","noted c"]');
  expect(notes).toEqual(["a", "c"]);
});

/** A run whose program waits for `a`, and then for `b`. */
async function waiting(notes: string[]) {
  const source = `const one = await tools.note({ text: "a" }); return [one, await tools.note({ text: "b" })];`;
  const { service } = openServer(databaseFile(), {
    ...SETTINGS,
    model: calling(program(source)),
    tools: [noteTool(notes)],
  });
  const run = await startRun(service, "two notes");
  const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
  return { service, run, first: approvals[0]?.id ?? "" };
}

/** Waits for the event of this kind with this number. */
async function nth(
  service: RunService,
  runId: string,
  count: number,
  isOne: (event: RunEvent) => boolean,
): Promise<void> {
  let seen = 0;
  await follow(service, runId, (event) => isOne(event) && (seen += 1) === count);
}

const statuses = async (service: RunService, runId: string) =>
  (await mine(service).read.view(runId))?.requests
    .filter(isApproval)
    .map(({ args, status }) => [args["text"], status]);

test("stale, forged, foreign and repeated answers about calls of a program change nothing", async () => {
  const notes: string[] = [];
  const { service, run, first } = await waiting(notes);
  const forged = [first.replace(/:0$/, ":1"), first.replace(":0", "-2:0"), "nothing:0"];
  for (const id of forged) {
    expect(
      await mine(service).requests.answer(run.id, { requestId: id, answer: APPROVE }, "test"),
    ).toMatchObject({
      ok: false,
      code: "not_found",
    });
  }
  expect(
    await service
      .as({ principal: "someone" })
      .requests.answer(run.id, { requestId: first, answer: APPROVE }, "test"),
  ).toMatchObject({
    code: "not_found",
  });
  expect(await statuses(service, run.id)).toEqual([["a", "pending"]]);
  await approve(service, run.id, "a");
  await nth(service, run.id, 2, ({ kind }) => kind === "approval_requested");
  await reach(service, run.id, "input_required");
  expect(notes).toEqual(["a"]);
  // The answer to the first question counts for that one alone.
  expect(
    await mine(service).requests.answer(run.id, { requestId: first, answer: APPROVE }, "test"),
  ).toMatchObject({
    ok: true,
    how: "repeated",
  });
  expect(
    await mine(service).requests.answer(run.id, { requestId: first, answer: { type: "reject" } }, "test"),
  ).toMatchObject({
    code: "already_answered",
  });
  expect(await statuses(service, run.id)).toEqual([
    ["a", "approved"],
    ["b", "pending"],
  ]);
  expect(notes).toEqual(["a"]);
  await approve(service, run.id, "b");
  expect((await reach(service, run.id, "completed")).run.answer).toBe('["noted a","noted b"]');
  expect(notes).toEqual(["a", "b"]);
});

test("two people who decide at once are counted once", async () => {
  const notes: string[] = [];
  const { service, run, first } = await waiting(notes);
  const outcomes = await Promise.all(
    [APPROVE, { type: "reject" } as const, APPROVE].map((decision) =>
      mine(service).requests.answer(run.id, { requestId: first, answer: decision }, "test"),
    ),
  );
  expect(outcomes.filter((outcome) => outcome.ok && outcome.how === "stored")).toHaveLength(1);
  await reach(service, run.id, "input_required").then(() => approve(service, run.id, "b"));
  await reach(service, run.id, "completed");
  expect(notes).toEqual(["a", "b"]);
});

test("the same calls of a program are approved for the rest of the run", async () => {
  const notes: string[] = [];
  const source = `for (let i = 0; i < 3; i += 1) await tools.note({ text: "a" }); return "done";`;
  const { service } = openServer(databaseFile(), {
    ...SETTINGS,
    model: calling(program(source)),
    tools: [noteTool(notes)],
  });
  const run = await startRun(service, "the same note");
  const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
  const outcome = await mine(service).requests.answer(
    run.id,
    { requestId: approvals[0]?.id ?? "", answer: { type: "approve_same" } },
    "test",
  );
  expect(outcome).toMatchObject({ ok: true });
  expect((await reach(service, run.id, "completed")).run.answer).toBe("done");
  expect(notes).toEqual(["a", "a", "a"]);
});

test("a program continues on another server, and ended calls are not made again", async () => {
  const notes: string[] = [];
  const file = databaseFile();
  const atWork = deferred();
  let isFirst = true;
  const source = `const one = await tools.note({ text: "a" }); const time = Date.now() + Math.random();
    const two = await tools.note({ text: "b" }); return [one, two, time === Date.now() + Math.random()];`;
  const agent = () => ({
    programs: true,
    model: calling(program(source)),
    tools: [
      noteTool(notes, async (text) => {
        if (text !== "b" || !isFirst) return;
        atWork.resolve();
        await new Promise(() => undefined);
      }),
    ],
  });
  const first = openServer(file, agent);
  const run = await startRun(first.service, "two notes");
  await atWork.promise;
  first.kill();
  isFirst = false;
  const second = openServer(file, agent);
  const { run: ended } = await reach(second.service, run.id, "completed");
  expect(ended.answer).toMatch(
    /^Error: The server stopped while note was at work.*Calls that were made.*note, note failed/s,
  );
  expect(notes).toEqual(["a"]);
});

test("the journal says which calls a program made", async () => {
  const { service } = openServer(databaseFile(), {
    programs: true,
    model: callingOnce({ id: "outer", ...program(noteAll("a")) }),
    tools: [noteTool([])],
  });
  const run = await startRun(service, "a note");
  const events = await follow(service, run.id);
  const calls = events.flatMap(({ kind, data }) => (kind === "tool_started" ? [data] : []));
  expect(calls).toMatchObject([
    { callId: "outer", tool: "run_program" },
    { callId: "outer:1", tool: "note", within: "outer" },
  ]);
  const seq = events.find(({ kind, data }) => kind === "tool_started" && "within" in data)?.seq ?? 0;
  const texts = await mine(service).read.callTexts(run.id, seq);
  expect(texts).toMatchObject({ tool: "note", missing: expect.stringContaining("A program made this call") });
  const steps = stepRows({
    now: 0,
    view: await reach(service, run.id, "completed"),
    viewer: "app",
    steps: events.toReversed(),
  });
  expect(steps.map(({ text }) => text).filter((row) => row.includes("inner"))).toEqual([
    expect.stringContaining("Called note"),
  ]);
});

test("a program starts subagents in the background once, and cannot wait for them", async () => {
  const source = `
    const started = await Promise.all([1, 2, 3].map((n) =>
      tools.start_async_task({ description: "child " + n, subagent_type: "general-purpose" })));
    await tools.note({ text: "asked" });
    const id = /task (\\S+)\\./.exec(started[0])[1];
    const waited = await tools.check_async_task({ task_id: id }).catch((error) => error.message);
    return [started.length, waited];`;
  const notes: string[] = [];
  const agent = agentWith(
    (request) =>
      repliesIn(request) === 0
        ? { toolCalls: [program(source)] }
        : { text: [...resultsIn(request), ...reportsIn(request).toSorted()].join("\n") },
    ({ messages }) => ({
      text: `report: ${messages.find(({ type }) => type === "human")?.text.slice(0, 7)}`,
    }),
    { ...SETTINGS, notes },
  );
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "three children");
  await nth(service, run.id, 1, ({ kind }) => kind === "approval_requested");
  await approve(service, run.id, "asked");
  const { run: ended } = await reach(service, run.id, "completed");
  expect(ended.answer).toContain('[3,"a program cannot wait for background tasks; return their ids');
  for (const n of [1, 2, 3])
    expect(ended.answer?.match(new RegExp(`report: child ${n}`, "g"))).toHaveLength(1);
  expect(notes).toEqual(["asked"]);
});

test("a subagent that a program starts in the background has the files that the program wrote before", async () => {
  const source = `
    await tools.write_file({ file_path: "/draft.md", content: "the draft" });
    return tools.start_async_task({ description: "child", subagent_type: "general-purpose" });`;
  const agent = agentWith(
    (request) =>
      repliesIn(request) === 0
        ? { toolCalls: [program(source)] }
        : { text: reportsIn(request).join() || "I wait." },
    (request) =>
      repliesIn(request) === 0
        ? { toolCalls: [{ name: "read_file", args: { file_path: "/draft.md" } }] }
        : { text: `read: ${resultsIn(request).join()}` },
    { programs: true },
  );
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "the task");
  const { run: ended } = await reach(service, run.id, "completed");
  expect(ended.answer).toContain("the draft");
});
