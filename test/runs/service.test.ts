import { expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { mine, databaseFile, follow, kinds, openServer, reach, startRun } from "./support.ts";

const model = scriptedModel(() => ({ text: "done" }));

test("a repeated start with the same key finds its run, also in another process and after its end", async () => {
  const file = databaseFile();
  const { service } = openServer(file, { model });
  const request = { task: "once", idempotencyKey: "k1" };
  const first = await mine(service).control.start(request);
  if (!first.ok) throw new Error(first.message);
  expect(first.how).toBe("started");
  await reach(service, first.run.id, "completed");
  const other = openServer(
    file,
    { model },
    {
      preflight: () => Promise.resolve({ code: "model_not_configured", message: "No model." }),
    },
  );
  const again = await mine(other.service).control.start(request);
  expect(again).toMatchObject({ ok: true, how: "existing", run: { id: first.run.id, status: "completed" } });
  expect(await mine(other.service).control.start({ ...request, task: "other" })).toMatchObject({
    ok: false,
    code: "idempotency_conflict",
  });
  expect(await service.as({ principal: "someone" }).control.start(request)).toMatchObject({
    ok: true,
    how: "started",
  });
  expect(await mine(service).read.list({ limit: 10 })).toHaveLength(1);
});

test("texts that were cut within a character are the same when they are repeated", async () => {
  const { service } = openServer(databaseFile(), { model }, { concurrentRuns: 0 });
  const cut = "\ud83d";
  const request = { task: `cut ${cut}`, idempotencyKey: `k ${cut}` };
  const first = await mine(service).control.start(request);
  if (!first.ok) throw new Error(first.message);
  expect(await mine(service).control.start(request)).toMatchObject({
    how: "existing",
    run: { id: first.run.id },
  });
  const message = { text: `more ${cut}`, idempotencyKey: `m ${cut}` };
  expect(await mine(service).control.tell(first.run.id, message)).toMatchObject({
    ok: true,
    repeated: false,
  });
  expect(await mine(service).control.tell(first.run.id, message)).toMatchObject({ ok: true, repeated: true });
});

test("the row is on disk when a start is answered", async () => {
  const file = databaseFile();
  const { service, kill } = openServer(file, { model }, { concurrentRuns: 0 });
  const run = await startRun(service, "stored");
  kill();
  const next = openServer(file, { model }, { concurrentRuns: 0 });
  expect((await mine(next.service).read.view(run.id))?.run).toEqual(run);
});

test("a new thread gets the id that its start names", async () => {
  const { service } = openServer(databaseFile(), { model });
  const run = await startRun(service, "a", { newThreadId: "thr_chosen" });
  expect(run.threadId).toBe("thr_chosen");
  await reach(service, run.id, "completed");
  await expect(mine(service).control.start({ task: "b", newThreadId: "thr_chosen" })).rejects.toThrow();
});

test("nothing is stored when the preflight refuses", async () => {
  const refusal = { code: "workspace_missing", message: "The workspace is gone." } as const;
  const { service } = openServer(databaseFile(), { model }, { preflight: () => Promise.resolve(refusal) });
  expect(await mine(service).control.start({ task: "x" })).toEqual({ ok: false, ...refusal });
  expect(await mine(service).read.list({ limit: 10 })).toEqual([]);
});

test("a principal has so many open runs and no more; finding, telling and cancelling go on", async () => {
  const gate = deferred();
  const slow = scriptedModel(async () => {
    await gate.promise;
    return { text: "done" };
  });
  const { service } = openServer(databaseFile(), { model: slow }, { openRuns: 2 });
  const key = { idempotencyKey: "k1" };
  await mine(service).control.start({ task: "1", ...key });
  const second = await startRun(service, "2");
  const refused = await mine(service).control.start({ task: "3" });
  expect(refused).toMatchObject({
    ok: false,
    code: "too_many_open_runs",
    message: expect.stringMatching(/^No run was started: 2 of your runs are unfinished.*cancel_deep_agent/),
  });
  expect(await mine(service).read.list({ limit: 10 })).toHaveLength(2);
  expect(await mine(service).control.start({ task: "1", ...key })).toMatchObject({
    ok: true,
    how: "existing",
  });
  const more = await mine(service).control.start({ task: "more", threadId: second.threadId });
  expect(more).toMatchObject({ ok: true, how: "told" });
  expect(await service.as({ principal: "someone" }).control.start({ task: "theirs" })).toMatchObject({
    ok: true,
    how: "started",
  });
  await mine(service).control.cancel(second.id, "not needed");
  expect(await mine(service).control.start({ task: "3" })).toMatchObject({ ok: true, how: "started" });
  gate.resolve();
});

test("a run of another principal looks exactly like one that does not exist", async () => {
  const { service } = openServer(databaseFile(), { model });
  const run = await startRun(service, "mine");
  await reach(service, run.id, "completed");
  const other = "someone";
  for (const id of [run.id, "run_unknown"]) {
    expect(await service.as({ principal: other }).read.view(id)).toBeUndefined();
    expect(await service.as({ principal: other }).read.events(id)).toBeUndefined();
    expect(await service.as({ principal: other }).files.ofRun(id)).toBeUndefined();
    expect(await service.as({ principal: other }).control.cancel(id, "no")).toEqual({
      ok: false,
      code: "not_found",
      message: `There is no run ${id}.`,
    });
    const signal = new AbortController().signal;
    for await (const event of service.as({ principal: other }).watch.events(id, { signal }))
      expect(event).toBeUndefined();
  }
  expect(await service.as({ principal: other }).read.list({ limit: 10 })).toEqual([]);
});

test("lists have no answers, which are long", async () => {
  const { service } = openServer(databaseFile(), { model });
  const { id } = await startRun(service, "Go");
  const { run } = await reach(service, id, "completed");
  expect(run).toHaveProperty("answer");
  const [listed] = await mine(service).read.list({ limit: 1 });
  expect(listed).toMatchObject({ id, status: "completed", task: "Go" });
  expect(listed).not.toHaveProperty("answer");
});

test("events are read from any point, and following ends with the run or its reader", async () => {
  const gate = deferred();
  const slow = scriptedModel(async () => {
    await gate.promise;
    return { text: "done" };
  });
  const { service } = openServer(databaseFile(), { model: slow });
  const run = await startRun(service, "work");
  const controller = new AbortController();
  const read: string[] = [];
  const aborted = (async () => {
    for await (const event of mine(service).watch.events(run.id, { signal: controller.signal })) {
      read.push(event.kind);
      controller.abort();
    }
  })();
  await aborted;
  expect(read).toEqual(["run_started"]);
  const followed = follow(service, run.id, undefined, 1);
  gate.resolve();
  expect(kinds(await followed)).toEqual(["model_called", "run_completed"]);
  expect(await follow(service, run.id, undefined, 3)).toEqual([]);
  expect(kinds((await mine(service).read.events(run.id, { after: 1, limit: 1 })) ?? [])).toEqual([
    "model_called",
  ]);
  expect(kinds((await mine(service).read.events(run.id)) ?? [])).toEqual([
    "run_started",
    "model_called",
    "run_completed",
  ]);
});

test("closing ends those who follow a run that goes on", async () => {
  const { service } = openServer(databaseFile(), { model }, { concurrentRuns: 0 });
  const run = await startRun(service, "waits");
  const followed = follow(service, run.id);
  await service.close();
  expect(kinds(await followed)).toEqual(["run_started"]);
});
