import { isApproval } from "../../src/runs/run.ts";
import { expect, test } from "vitest";
import { z } from "zod";
import { ConfigurationError } from "../../src/core/errors.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel, scriptedSteps } from "../support/scripted-model.ts";
import {
  ME,
  mine,
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
} from "./support.ts";

test("a run works to its end, and all of it is found again", async () => {
  const notes: string[] = [];
  const { service } = openServer(databaseFile(), {
    model: calling(note("a"), note("b")),
    tools: [noteTool(notes)],
  });
  const run = await startRun(service, "note a and b");
  const { run: ended } = await reach(service, run.id, "completed");
  expect(ended).toMatchObject({ answer: "noted a; noted b", task: "note a and b", principal: ME });
  expect(ended.usage).toEqual({ inputTokens: 20, outputTokens: 10, cachedInputTokens: 0 });
  expect(ended.endedAt).toBeGreaterThanOrEqual(ended.createdAt);
  const events = await follow(service, run.id);
  expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(kinds(events).slice(0, 2)).toEqual(["run_started", "model_called"]);
  expect(kinds(events).slice(2, 6).sort()).toEqual([
    "tool_finished",
    "tool_finished",
    "tool_started",
    "tool_started",
  ]);
  expect(kinds(events).slice(6)).toEqual(["model_called", "run_completed"]);
  expect(ended.lastSeq).toBe(8);
});

test("todos, subagents with their steps and changed files show in the view", async () => {
  const model = scriptedModel(({ messages, tools }) => {
    const isSubagent = !tools.includes("task");
    const answered = messages.at(-1)?.type === "tool";
    if (isSubagent) {
      return answered
        ? { text: "The note is written." }
        : { toolCalls: [{ name: "write_file", args: { file_path: "/n.md", content: "x" } }] };
    }
    if (answered) return messages.length > 5 ? { text: "All done." } : task();
    return {
      toolCalls: [{ name: "write_todos", args: { todos: [{ content: "delegate", status: "in_progress" }] } }],
    };
  });
  const task = () => ({
    toolCalls: [{ name: "task", args: { description: "Write a note.", subagent_type: "general-purpose" } }],
  });
  const { service } = openServer(databaseFile(), { model });
  const run = await startRun(service, "have a note written");
  const view = await reach(service, run.id, "completed");
  // Nothing of a run that has ended is in progress.
  expect(view.run.todos).toEqual([{ content: "delegate", status: "pending" }]);
  expect(view.filesChanged).toEqual(["/n.md"]);
  expect(view.subagents).toMatchObject([
    {
      agent: [{ name: "general-purpose" }],
      name: "general-purpose",
      description: "Write a note.",
      status: "completed",
      step: "The note is written.",
      toolCalls: 1,
    },
  ]);
  expect(view.activity).toBe("completed");
  const files = await mine(service).files.ofRun(run.id);
  expect(await files?.read("/n.md")).toMatchObject({ content: "x" });
});

test("what ends a run too early becomes a stable reason without stack or path", async () => {
  const broken = scriptedSteps([
    () => {
      throw Object.assign(new Error("429 slow down"), { status: 429 });
    },
  ]);
  const secret = "/home/someone/secret.ts";
  const responseFormat = z.object({ degrees: z.number() });
  const failing = (task: string) => {
    if (task === "config") throw new ConfigurationError("no_model", "No model is configured. Set one.");
    if (task === "bug") throw new TypeError(`undefined is not a function at ${secret}`);
    if (task === "text") return { model: scriptedModel(() => ({ text: "-3" })), responseFormat };
    return { model: broken, limits: { modelPatienceMs: 0 } };
  };
  const { service } = openServer(databaseFile(), (run) => failing(run.task));
  const failureOf = async (task: string) =>
    (await reach(service, (await startRun(service, task)).id, "failed")).run.failure;
  expect(await failureOf("limit")).toMatchObject({ reason: "model_rate_limited" });
  expect(await failureOf("config")).toEqual({
    reason: "configuration",
    message: "No model is configured. Set one.",
  });
  expect(await failureOf("text")).toEqual({
    reason: "no_structured_response",
    message: expect.stringMatching(/did not give the answer .* It said: "-3"\. Ask again/),
  });
  const bug = await failureOf("bug");
  expect(bug?.reason).toBe("internal");
  expect(bug?.message).toMatch(/log has details under evt_/);
  expect(bug?.message).not.toContain(secret);
});

test("cancelling reaches the tool at work, withdraws approvals and is final", async () => {
  const notes: string[] = [];
  const aborted = deferred();
  const untilAborted = (_text: string, signal?: AbortSignal) =>
    new Promise<void>((_resolve, reject) => {
      signal?.addEventListener("abort", () => {
        aborted.resolve();
        reject(new Error("stopped"));
      });
    });
  const agent = {
    model: calling(note("free"), note("gated")),
    tools: [noteTool(notes, untilAborted)],
    interruptOn: askedAbout("gated"),
  };
  const { service } = openServer(databaseFile(), agent);
  const run = await startRun(service, "never mind");
  await follow(service, run.id, ({ kind }) => kind === "tool_started");
  const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
  const cancelled = await mine(service).control.cancel(run.id, "changed my mind");
  expect(cancelled).toMatchObject({
    ok: true,
    alreadyEnded: false,
    run: { status: "cancelled", cancelReason: "changed my mind" },
  });
  await aborted.promise;
  const view = await mine(service).read.view(run.id);
  expect(view?.requests.filter(isApproval).map(({ status }) => status)).toEqual(["withdrawn"]);
  const late = await mine(service).requests.answer(
    run.id,
    { requestId: approvals[0]?.id ?? "", answer: { type: "approve" } },
    "test",
  );
  expect(late).toMatchObject({
    ok: false,
    code: "already_answered",
    message: "This no longer needs a decision: the run ended or continued without the call.",
    request: { status: "withdrawn" },
  });
  expect(await mine(service).control.cancel(run.id, "again")).toMatchObject({
    alreadyEnded: true,
    run: { cancelReason: "changed my mind" },
  });
  expect(kinds(await follow(service, run.id)).at(-1)).toBe("run_cancelled");
  expect(notes).toEqual([]);
});

test("a limit holds, and one principal's long queue does not hold up another's run", async () => {
  const gates = new Map<string, ReturnType<typeof deferred>>();
  const order: string[] = [];
  const model = scriptedModel(async ({ messages }) => {
    const task = messages.at(-1)?.text ?? "";
    order.push(task);
    await (gates.get(task) ?? deferred()).promise;
    return { text: "done" };
  });
  const { service } = openServer(databaseFile(), { model }, { concurrentRuns: 2 });
  for (const name of ["a1", "a2", "a3", "a4", "b1"]) gates.set(name, deferred());
  const runs = new Map<string, string>();
  for (const name of ["a1", "a2", "a3", "a4", "b1"]) {
    const outcome = await service.as({ principal: name.slice(0, 1) }).control.start({ task: name });
    if (outcome.ok) runs.set(name, outcome.run.id);
  }
  const place = async (name: string) => {
    const view = await service.as({ principal: name.slice(0, 1) }).read.view(runs.get(name) ?? "");
    return view?.place && [view.place, view.activity];
  };
  const inLine = (number: number, waiting: number) => [
    { number, waiting, atWork: 2 },
    `queued: number ${number} of ${waiting}`,
  ];
  expect(await Promise.all(["a1", "a2", "b1", "a3", "a4"].map(place))).toEqual([
    undefined,
    undefined,
    inLine(1, 3),
    inLine(2, 3),
    inLine(3, 3),
  ]);
  const ended = async (name: string) => {
    gates.get(name)?.resolve();
    const signal = new AbortController().signal;
    for await (const _event of service
      .as({ principal: name.slice(0, 1) })
      .watch.events(runs.get(name) ?? "", { signal }));
  };
  await ended("a1");
  await ended("b1");
  await ended("a2");
  await ended("a3");
  await ended("a4");
  expect(order.slice(0, 2).sort()).toEqual(["a1", "a2"]);
  expect(order.slice(2)).toEqual(["b1", "a3", "a4"]);
});

test("a follow-up goes on in the thread", async () => {
  const release = deferred();
  const model = scriptedModel(async ({ messages }) => {
    await release.promise;
    return {
      text: messages
        .filter(({ type }) => type === "human")
        .map(({ text }) => text)
        .join(" | "),
    };
  });
  const { service } = openServer(databaseFile(), { model });
  const first = await startRun(service, "one");
  release.resolve();
  await reach(service, first.id, "completed");
  const second = await startRun(service, "two", { threadId: first.threadId });
  expect((await reach(service, second.id, "completed")).run.answer).toBe("one | two");
  expect(
    await service.as({ principal: "other" }).control.start({ task: "x", threadId: first.threadId }),
  ).toMatchObject({
    code: "thread_not_found",
  });
});

test("closing parks what works, and nothing starts any more", async () => {
  const file = databaseFile();
  const reached = deferred();
  const model = scriptedModel(async ({ signal }) => {
    reached.resolve();
    await new Promise((_resolve, reject) =>
      signal?.addEventListener("abort", () => reject(new Error("aborted"))),
    );
    return {};
  });
  const { service } = openServer(file, { model });
  const run = await startRun(service, "long work");
  await reached.promise;
  await service.close();
  expect(await mine(service).control.start({ task: "more" })).toMatchObject({
    ok: false,
    code: "shutting_down",
  });
  const next = openServer(file, { model: scriptedModel(() => ({ text: "went on" })) });
  const view = await reach(next.service, run.id, "completed");
  expect(view.run.answer).toBe("went on");
  expect(kinds(await follow(next.service, run.id))).toEqual([
    "run_started",
    "run_parked",
    "run_resumed",
    "model_called",
    "run_completed",
  ]);
});

test("a server that may take up no runs leaves them to others", async () => {
  const file = databaseFile();
  const outdated = openServer(
    file,
    { model: calling(note("a")), tools: [noteTool([])] },
    { mayClaim: () => false },
  );
  const run = await startRun(outdated.service, "go");
  expect(outdated.database.prepare("SELECT lease_epoch FROM runs").pluck().get()).toBe(0);
  openServer(file, { model: calling(note("a")), tools: [noteTool([])] });
  await reach(outdated.service, run.id, "completed");
});
