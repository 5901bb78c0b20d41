import { isApproval } from "../../src/runs/run.ts";
import { describe, expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel, type ScriptedReply } from "../support/scripted-model.ts";
import {
  approve,
  databaseFile,
  follow,
  kinds,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

/** Says what people told it, in their order; calls the tool `note` first, once. */
const listening = (before?: () => Promise<void>) =>
  scriptedModel(async ({ messages }): Promise<ScriptedReply> => {
    await before?.();
    if (messages.every(({ type }) => type !== "tool")) return { toolCalls: [note("a")] };
    return { text: messages.flatMap(({ type, text }) => (type === "human" ? [text] : [])).join(" | ") };
  });

const tell = (server: ReturnType<typeof openServer>, runId: string, text: string, idempotencyKey?: string) =>
  mine(server.service).control.tell(runId, {
    text,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });

test("a task that is too large for the conversation is shown whole to people, and is in a file for the agent, over restarts and follow-ups", async () => {
  const file = databaseFile();
  const model = scriptedModel(({ messages, call }): ScriptedReply => {
    const seen = messages.filter(({ type }) => type === "human").map(({ text }) => text.length);
    return call === 0 ? { toolCalls: [note("a")] } : { text: JSON.stringify(seen) };
  });
  const agent = { model, tools: [noteTool([])], interruptOn: { note: true } };
  const first = openServer(file, agent);
  const task = "row of a table\n".repeat(20_000);
  const run = await startRun(first.service, task);
  await reach(first.service, run.id, "input_required");
  first.kill();
  const { service } = openServer(file, agent);
  await approve(service, run.id, "a");
  const { run: ended } = await reach(service, run.id, "completed");
  expect(ended.task).toBe(task);
  const [shown = 0] = JSON.parse(ended.answer ?? "[]") as number[];
  expect(shown).toBeLessThan(1000);
  const next = await startRun(service, "and now?", { threadId: run.threadId });
  const { run: followed } = await reach(service, next.id, "completed");
  expect(followed.answer).toBe(JSON.stringify([shown, "and now?".length]));
  const files = await mine(service).files.ofRun(run.id);
  const listed = await files?.ls("/conversation_history");
  expect(listed?.files).toMatchObject([{ path: expect.stringContaining(run.id), size: task.length }]);
});

describe("a message to a run", () => {
  test("that works is read before the model is asked next, after the results of the calls at work", async () => {
    const [atWork, go] = [deferred(), deferred()];
    const slow = noteTool([], () => {
      atWork.resolve();
      return go.promise;
    });
    const model = listening();
    const server = openServer(databaseFile(), { model, tools: [slow] });
    const run = await startRun(server.service, "the task");
    await atWork.promise;
    expect(await tell(server, run.id, "more", "k")).toMatchObject({ ok: true, repeated: false });
    expect(await tell(server, run.id, "more", "k")).toMatchObject({ ok: true, repeated: true });
    go.resolve();
    expect((await reach(server.service, run.id, "completed")).run.answer).toBe("the task | more");
    expect(model.requests[1]?.messages.map(({ type }) => type)).toEqual([
      "system",
      "human",
      "ai",
      "tool",
      "human",
    ]);
    const events = await follow(server.service, run.id);
    expect(events.filter(({ kind }) => kind === "message_received").map(({ data }) => data)).toMatchObject([
      { text: "more" },
    ]);
  });

  test("that comes while the last reply is made keeps it from ending unread", async () => {
    const [asked, go] = [deferred(), deferred()];
    let calls = 0;
    const model = listening(async () => {
      calls += 1;
      if (calls !== 2) return;
      asked.resolve();
      await go.promise;
    });
    const server = openServer(databaseFile(), { model, tools: [noteTool([])] });
    const run = await startRun(server.service, "the task");
    await asked.promise;
    await tell(server, run.id, "one more thing");
    go.resolve();
    const { run: ended } = await reach(server.service, run.id, "completed");
    expect(ended.answer).toBe("the task | one more thing");
    expect(
      kinds(await follow(server.service, run.id)).filter((kind) => kind === "run_completed"),
    ).toHaveLength(1);
  });

  test("outlives the server that took it, and is read once", async () => {
    const file = databaseFile();
    const asked = deferred();
    let calls = 0;
    const hanging = listening(() => {
      calls += 1;
      if (calls === 1) return Promise.resolve();
      asked.resolve();
      return new Promise(() => {});
    });
    const died = openServer(file, { model: hanging, tools: [noteTool([])] });
    const run = await startRun(died.service, "the task");
    await asked.promise;
    await tell(died, run.id, "first");
    await tell(died, run.id, "second");
    died.kill();
    const next = openServer(file, { model: listening(), tools: [noteTool([])] });
    expect((await reach(next.service, run.id, "completed")).run.answer).toBe("the task | first | second");
  });

  test("waits with a run that waits, for its turn or for a person", async () => {
    const file = databaseFile();
    const clerk = openServer(file, { model: listening() }, { concurrentRuns: 0 });
    const run = await startRun(clerk.service, "the task");
    await tell(clerk, run.id, "early");
    const server = openServer(file, {
      model: listening(),
      tools: [noteTool([])],
      interruptOn: { note: true },
    });
    const approvals = (await reach(server.service, run.id, "input_required")).requests.filter(isApproval);
    await tell(clerk, run.id, "meanwhile");
    await mine(server.service).requests.answer(
      run.id,
      { requestId: approvals[0]?.id ?? "", answer: { type: "approve" } },
      "test",
    );
    expect((await reach(server.service, run.id, "completed")).run.answer).toBe(
      "the task | early | meanwhile",
    );
  });

  test("is refused when the run is over, or is not the sender's", async () => {
    const server = openServer(databaseFile(), { model: scriptedModel(() => ({ text: "done" })) });
    const run = await startRun(server.service, "the task");
    await reach(server.service, run.id, "completed");
    expect(await tell(server, run.id, "late")).toEqual({
      ok: false,
      code: "ended",
      message: `Run ${run.id} has already ended (completed). To continue, start a new run in its thread ${run.threadId}.`,
    });
    expect(
      await server.service.as({ principal: "someone" }).control.tell(run.id, { text: "mine" }),
    ).toMatchObject({
      code: "not_found",
    });
  });
});

describe("a start in a thread at work", () => {
  const atWork = async () => {
    const [called, go] = [deferred(), deferred()];
    const slow = noteTool([], () => {
      called.resolve();
      return go.promise;
    });
    const file = databaseFile();
    const model = listening();
    const server = openServer(file, { model, tools: [slow] });
    const run = await startRun(server.service, "the task");
    await called.promise;
    return { file, model, server, run, go };
  };

  test("is a message to its run, from whichever process, and starts nothing", async () => {
    const { file, server, run, go } = await atWork();
    const other = openServer(
      file,
      { model: listening() },
      {
        concurrentRuns: 0,
        preflight: () => Promise.resolve({ code: "model_not_configured", message: "No model." }),
      },
    );
    const request = { task: "more", threadId: run.threadId, idempotencyKey: "k" };
    const starts = [other, server, other].map(({ service }) => mine(service).control.start(request));
    const outcomes = await Promise.all(starts);
    expect(outcomes).toMatchObject(outcomes.map(() => ({ ok: true, run: { id: run.id } })));
    expect(outcomes.map((outcome) => outcome.ok && outcome.how).sort()).toEqual([
      "existing",
      "existing",
      "told",
    ]);
    go.resolve();
    expect((await reach(server.service, run.id, "completed")).run.answer).toBe("the task | more");
    expect(await mine(server.service).control.start(request)).toMatchObject({
      how: "existing",
      run: { id: run.id },
    });
    expect(await mine(server.service).read.list({ limit: 9 })).toHaveLength(1);
  });

  test("with a key that stands for something else is refused", async () => {
    const { server, run, go } = await atWork();
    const { threadId } = run;
    const { service } = server;
    await mine(service).control.start({ task: "more", threadId, idempotencyKey: "k" });
    const conflict = {
      ok: false,
      code: "idempotency_conflict",
      message: `This idempotency key was used before, for run ${run.id} with another task, goal or thread. Use a new key for a new task.`,
    };
    expect(await mine(service).control.start({ task: "other", threadId, idempotencyKey: "k" })).toEqual(
      conflict,
    );
    expect(await mine(service).control.start({ task: "more", idempotencyKey: "k" })).toEqual(conflict);
    expect(await tell(server, run.id, "other", "k")).toEqual(conflict);
    expect(
      await service.as({ principal: "someone" }).control.start({ task: "theirs", idempotencyKey: "k" }),
    ).toMatchObject({
      how: "started",
    });
    go.resolve();
    await reach(service, run.id, "completed");
  });

  test("just as its run ends is read by that run or begins another: it is never lost", async () => {
    const model = scriptedModel(({ messages }) => ({
      text: messages.flatMap(({ type, text }) => (type === "human" ? [text] : [])).join(" | "),
    }));
    const server = openServer(databaseFile(), { model });
    const ways = new Set<unknown>();
    for (let turn = 0; turn < 40; turn += 1) {
      const first = await startRun(server.service, "one");
      for (let wait = 0; wait < turn % 20; wait += 1) await new Promise((resolve) => setImmediate(resolve));
      const met = await mine(server.service).control.start({ task: "two", threadId: first.threadId });
      if (!met.ok) throw new Error(met.message);
      ways.add(met.how);
      expect((await reach(server.service, met.run.id, "completed")).run.answer).toBe("one | two");
    }
    expect([...ways]).toContain("told");
  });
});

test.each(["cancelled", "failed"] as const)("the next run reads what a %s run was told", async (end) => {
  const asked = deferred();
  let calls = 0;
  const model = scriptedModel(async ({ messages, signal }): Promise<ScriptedReply> => {
    calls += 1;
    if (calls === 1) {
      asked.resolve();
      await new Promise((_resolve, reject) => {
        breakOff.promise.then(() => reject(new Error("400 bad")), reject);
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
      });
    }
    return { text: messages.flatMap(({ type, text }) => (type === "human" ? [text] : [])).join(" | ") };
  });
  const breakOff = deferred();
  const server = openServer(databaseFile(), { model });
  const run = await startRun(server.service, "the task");
  await asked.promise;
  await tell(server, run.id, "more");
  if (end === "cancelled") await mine(server.service).control.cancel(run.id, "enough");
  else breakOff.resolve();
  await reach(server.service, run.id, end);
  const next = await startRun(server.service, "and then", { threadId: run.threadId });
  expect((await reach(server.service, next.id, "completed")).run.answer).toBe("the task | more | and then");
  const last = await startRun(server.service, "at last", { threadId: run.threadId });
  expect((await reach(server.service, last.id, "completed")).run.answer).toBe(
    "the task | more | and then | at last",
  );
});
