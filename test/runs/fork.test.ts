import { isApproval } from "../../src/runs/run.ts";
import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel, type ScriptedReply } from "../support/scripted-model.ts";
import {
  checkpointsOf,
  APPROVE,
  approve,
  databaseFile,
  follow,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

const HOUR = 3_600_000;
const write = (name: string) => ({ name: "write_file", args: { file_path: `/${name}.md`, content: name } });

/** `write NAME` writes a file, `note NAME` calls the gated tool; anything else tells what it was told. */
const model = () =>
  scriptedModel(({ messages }): ScriptedReply => {
    const last = messages.at(-1);
    const [verb, name = ""] = last?.text.split(" ") ?? [];
    if (HumanMessage.isInstance(last) && verb === "write") return { toolCalls: [write(name)] };
    if (HumanMessage.isInstance(last) && verb === "note") return { toolCalls: [write(name), note(name)] };
    return { text: messages.flatMap(({ type, text }) => (type === "human" ? [text] : [])).join(" | ") };
  });

function open(extra: object = {}, options: object = {}) {
  const file = databaseFile();
  const { checkpoints, checkpointer } = checkpointsOf(file);
  const notes: string[] = [];
  const agent = {
    model: model(),
    tools: [noteTool(notes)],
    interruptOn: { note: true },
    checkpointer,
    ...extra,
  };
  const server = openServer(file, agent, { checkpoints: async () => checkpointer, ...options });
  const { service } = server;
  const ended = async (task: string, threadId?: string) => {
    const run = await startRun(service, task, threadId === undefined ? {} : { threadId });
    return (await reach(service, run.id, "completed")).run;
  };
  const pointAt = async (runId: string, summary: string) => {
    const points = (await mine(service).read.points(runId)) ?? [];
    return points.find((point) => point.summary.includes(summary))?.id ?? "none";
  };
  const paths = async (runId: string) => {
    const listed = await (await mine(service).files.ofRun(runId))?.ls("/");
    return listed?.files?.map(({ path }) => path) ?? listed;
  };
  return { ...server, checkpoints, checkpointer, notes, ended, pointAt, paths };
}

test("the points of a thread tell what happened, and to which run it belongs", async () => {
  const { service, ended } = open();
  const first = await ended("write a");
  const second = await ended("hello", first.threadId);
  const points = await mine(service).read.points(second.id);
  expect(points?.map(({ runId, summary }) => [runId, summary])).toEqual([
    [first.id, "You: write a"],
    [first.id, "Called write_file /a.md"],
    [first.id, "Results of write_file"],
    [first.id, "Agent: write a"],
    [second.id, "You: hello"],
    [second.id, "Agent: write a | hello"],
  ]);
  expect(new Set(points?.map(({ id }) => id)).size).toBe(6);
  expect(points?.every(({ id }) => id.startsWith(`${first.threadId}@`))).toBe(true);
  expect(await mine(service).read.points("run_unknown")).toBeUndefined();
  expect(await service.as({ principal: "somebody else" }).read.points(first.id)).toBeUndefined();
});

test("a task whose text went into a file is told of once, by its beginning, and can be forked", async () => {
  const { service, ended, pointAt, paths } = open();
  const task = `tell ${"me all of it. ".repeat(20_000)}`;
  const first = await ended(task);
  const summaries = ((await mine(service).read.points(first.id)) ?? []).map(({ summary }) =>
    summary.slice(0, 20),
  );
  expect(summaries).toEqual(["You: tell me all of ", "Agent: tell me all o"]);
  for (const point of ["You: tell", "Agent: tell"]) {
    const fork = await ended("hello", await pointAt(first.id, point));
    expect(fork.answer).toMatch(/is saved in .* \| hello$/s);
    expect(await paths(fork.id)).toEqual(["/conversation_history/"]);
  }
});

test("a fork has messages and files of its point and goes its own way; the original stays as it is", async () => {
  const { service, ended, pointAt, paths } = open();
  const first = await ended("write a");
  const second = await ended("write b", first.threadId);
  const before = await mine(service).read.points(first.id);
  const fork = await ended("write c", await pointAt(first.id, "Agent: write a"));
  expect(fork.threadId).not.toBe(first.threadId);
  expect(fork.forkedFrom).toMatch(`${first.threadId}@`);
  expect(fork.answer).toBe("write a | write c");
  expect(await paths(fork.id)).toEqual(["/a.md", "/c.md"]);
  expect(await paths(second.id)).toEqual(["/a.md", "/b.md"]);
  expect(await mine(service).read.points(first.id)).toEqual(before);
  expect((await ended("on", fork.threadId)).answer).toBe("write a | write c | on");
  expect((await ended("on", first.threadId)).answer).toBe("write a | write b | on");
  // The points of the original are points of the fork too.
  const again = await ended("again", await pointAt(fork.id, "You: write a"));
  expect(again.answer).toBe("write a | again");
  expect(await paths(again.id)).toEqual([]);
});

test("an approval that waits stays where it was asked for", async () => {
  const { service, notes, pointAt, paths } = open();
  const run = await startRun(service, "note x");
  await reach(service, run.id, "input_required");
  await follow(
    service,
    run.id,
    ({ kind, data }) => kind === "tool_finished" && data["tool"] === "write_file",
  );
  const fork = await startRun(service, "without", {
    threadId: await pointAt(run.id, "Called write_file /x.md, called note"),
  });
  const view = await reach(service, fork.id, "completed");
  expect(view.requests.filter(isApproval)).toEqual([]);
  expect(view.run.answer).toBe("note x | without");
  // What the call beside it wrote counts: it had ended when the fork began.
  expect(await paths(fork.id)).toEqual(["/x.md"]);
  expect(notes).toEqual([]);
  await approve(service, run.id, "x");
  await reach(service, run.id, "completed");
  expect(notes).toEqual(["x"]);
});

test("points that do not exist, and threads of others, are refused before anything is stored", async () => {
  const { service, ended, pointAt, checkpoints } = open();
  const run = await ended("hello");
  const point = await pointAt(run.id, "Agent:");
  const refusals = [
    await mine(service).control.start({ task: "x", threadId: `${run.threadId}@999` }),
    await mine(service).control.start({ task: "x", threadId: "thr_unknown@1" }),
    await service.as({ principal: "somebody else" }).control.start({ task: "x", threadId: point }),
  ].map((outcome) => !outcome.ok && outcome.code);
  expect(refusals).toEqual(["point_not_found", "thread_not_found", "thread_not_found"]);
  expect(await mine(service).read.list({ limit: 9 })).toHaveLength(1);
  expect(checkpoints.prepare("SELECT count(DISTINCT thread_id) FROM checkpoints").pluck().get()).toBe(1);
});

test("a repeated fork with the same key is the same run", async () => {
  const { service, ended, pointAt } = open();
  const run = await ended("hello");
  const request = { task: "on", threadId: await pointAt(run.id, "Agent:"), idempotencyKey: "k" };
  const outcomes = [await mine(service).control.start(request), await mine(service).control.start(request)];
  expect(outcomes).toMatchObject([
    { ok: true, how: "started" },
    { ok: true, how: "existing" },
  ]);
  expect(outcomes[0]?.ok && outcomes[0].run.id).toBe(outcomes[1]?.ok && outcomes[1].run.id);
  expect(await mine(service).control.start({ ...request, threadId: `${run.threadId}@0` })).toMatchObject({
    code: "idempotency_conflict",
  });
});

test("a copy that a crash left behind is deleted, and one that is being made is not", async () => {
  const time = { now: 10 * HOUR };
  const { service, database, ended, checkpoints, checkpointer } = open({}, { clock: () => time.now });
  const run = await ended("hello");
  // As it is after the copy was noted and made, and before its run was stored.
  database.prepare("INSERT INTO thread_copies (id, begun_at) VALUES ('thr_copy', ?)").run(time.now);
  await checkpointer.copyThread(run.threadId, "thr_copy");
  const threads = () =>
    checkpoints.prepare("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1").pluck().all();
  time.now += HOUR / 2;
  await service.prune({});
  expect(threads()).toContain("thr_copy");
  time.now += HOUR;
  await service.prune({});
  expect(threads()).toEqual([run.threadId]);
});

describe("a thread goes on after a run that", () => {
  test("was cancelled within a step: what its calls had finished counts", async () => {
    const atWork = deferred();
    const slow = noteTool([], (_text, signal) => {
      atWork.resolve();
      return new Promise((_resolve, reject) =>
        signal?.addEventListener("abort", () => reject(new Error("stopped"))),
      );
    });
    const asked = model();
    const { service, ended, paths } = open({ model: asked, tools: [slow], interruptOn: {} });
    const run = await startRun(service, "note x");
    await atWork.promise;
    await follow(service, run.id, ({ kind }) => kind === "tool_finished");
    await mine(service).control.cancel(run.id, "enough");
    expect((await ended("on", run.threadId)).answer).toBe("note x | on");
    const results = asked.requests.at(-1)?.messages.filter(({ type }) => type === "tool");
    expect(results?.map(({ text }) => text)).toEqual([
      "Successfully wrote to '/x.md'",
      "Tool call was cancelled: the run was cancelled before note had finished. Whether, or how far, it took effect is unknown; check what it would have left behind.",
    ]);
    expect(await paths(run.id)).toEqual(["/x.md"]);
    const shown = () => asked.requests.at(-1)?.messages.filter(({ type }) => type !== "system").length;
    const first = shown() ?? 0;
    await ended("and on", run.threadId);
    expect(shown()).toBe(first + 2);
  });

  test("was cancelled while an approval waited: nothing asks again", async () => {
    const { service, ended, notes } = open();
    const run = await startRun(service, "note x");
    const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
    await mine(service).control.cancel(run.id, "enough");
    const next = await ended("on", run.threadId);
    expect((await mine(service).read.view(next.id))?.requests.filter(isApproval)).toEqual([]);
    expect(
      await mine(service).requests.answer(
        run.id,
        { requestId: approvals[0]?.id ?? "", answer: APPROVE },
        "late",
      ),
    ).toMatchObject({
      ok: false,
      code: "already_answered",
    });
    expect(notes).toEqual([]);
  });

  test("failed at its model", async () => {
    const failing = { now: true };
    const { service, ended, pointAt } = open({
      model: scriptedModel(({ messages }): ScriptedReply => {
        if (failing.now) throw new Error("no such model");
        return { text: messages.map(({ type, text }) => (type === "human" ? text : "")).join("|") };
      }),
    });
    const run = await startRun(service, "first");
    await reach(service, run.id, "failed");
    failing.now = false;
    const point = await pointAt(run.id, "You: first");
    expect((await ended("on", run.threadId)).answer).toBe("|first|on");
    expect((await ended("fork", point)).answer).toBe("|first|fork");
  });

  test("reached its limit", async () => {
    const loops = scriptedModel(({ messages }): ScriptedReply => {
      const last = messages.findLast((message) => HumanMessage.isInstance(message));
      return last?.text === "loop" ? { toolCalls: [write(`f${messages.length}`)] } : { text: "done" };
    });
    const { ended } = open({ model: loops, limits: { maxIterations: 2 } });
    const run = await ended("loop");
    expect(run.stopReason).toBe("max_iterations");
    const next = await ended("stop", run.threadId);
    expect([next.answer, next.stopReason]).toEqual(["done", undefined]);
  });
});
