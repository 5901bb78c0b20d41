import { describe, expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel, type ScriptedReply } from "../support/scripted-model.ts";
import { databaseFile, follow, kinds, ME, note, noteTool, openServer, reach, startRun } from "./support.ts";

/** Says what people told it, in their order; calls the tool `note` first, once. */
const listening = (before?: () => Promise<void>) =>
  scriptedModel(async ({ messages }): Promise<ScriptedReply> => {
    await before?.();
    if (messages.every(({ type }) => type !== "tool")) return { toolCalls: [note("a")] };
    return { text: messages.flatMap(({ type, text }) => (type === "human" ? [text] : [])).join(" | ") };
  });

const tell = (server: ReturnType<typeof openServer>, runId: string, text: string, idempotencyKey?: string) =>
  server.service.tell(ME, runId, { text, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) });

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
    expect(events.filter(({ kind }) => kind === "message_received").map(({ data }) => data["text"])).toEqual([
      "more",
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
    const { approvals } = await reach(server.service, run.id, "input_required");
    await tell(clerk, run.id, "meanwhile");
    await server.service.decide(ME, run.id, approvals[0]?.id ?? "", { type: "approve" }, "test");
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
      message: `Run ${run.id} is over (completed). Start a new run in its thread ${run.threadId} to go on.`,
    });
    expect(await server.service.tell("someone", run.id, { text: "mine" })).toMatchObject({
      code: "not_found",
    });
  });
});

test("a follow-up in a finished thread goes on with its conversation", async () => {
  const model = listening();
  const server = openServer(databaseFile(), { model, tools: [noteTool([])] });
  const first = await startRun(server.service, "the task");
  await reach(server.service, first.id, "completed");
  const second = await startRun(server.service, "and then", { threadId: first.threadId });
  expect((await reach(server.service, second.id, "completed")).run.answer).toBe("the task | and then");
});
