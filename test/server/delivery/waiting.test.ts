import { expect, test } from "vitest";
import { calling, databaseFile, mine, note, noteTool, openServer, reach } from "../../runs/support.ts";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { connect, connectTo, depsFor } from "../support.ts";

test.each(CLIENT_KINDS)("%s: wait_seconds 0 gives a handle; check waits for the end", async (kind) => {
  const thinking = deferred();
  const model = scriptedModel(async () => {
    await thinking.promise;
    return { text: "done" };
  });
  const { service } = openServer(databaseFile(), { model });
  const client = await connectTo(service, kind);
  const { structured } = await client.call("run_deep_agent", { task: "x", wait_seconds: 0 });
  expect(structured).toMatchObject({ status: "working", next: { tool: "check_deep_agent" } });
  const checking = client.call("check_deep_agent", { run_id: structured["run_id"] });
  thinking.resolve();
  expect((await checking).structured).toMatchObject({ status: "completed", answer: "done" });
  const late = await client.call("cancel_deep_agent", { run_id: structured["run_id"], reason: "too late" });
  expect(late.structured).toMatchObject({ status: "completed", answer: "done" });
});

test.each(CLIENT_KINDS)("%s: a client is answered before it gives up", async (kind) => {
  const model = scriptedModel(() => new Promise<never>(() => {}));
  const { service } = openServer(databaseFile(), { model });
  const deps = depsFor(service, { config: { delivery: { window: 1 } } });
  const client = await connect(deps, { kind });
  const call = client.call("run_deep_agent", { task: "x" }, { onProgress: () => {}, timeout: 20_000 });
  expect((await call).structured).toMatchObject({ status: "working", next: { tool: "check_deep_agent" } });
});

test.each(CLIENT_KINDS)("%s: giving up on a call does not end its run", async (kind) => {
  const started = deferred();
  const thinking = deferred();
  const model = scriptedModel(async () => {
    started.resolve();
    await thinking.promise;
    return { text: "done" };
  });
  const { service } = openServer(databaseFile(), { model });
  const client = await connectTo(service, kind);
  const controller = new AbortController();
  const call = client.call("run_deep_agent", { task: "x" }, { signal: controller.signal });
  await started.promise;
  controller.abort();
  await expect(call).rejects.toThrow();
  thinking.resolve();
  const [run] = await mine(service).read.list({ limit: 1 });
  expect((await reach(service, run?.id ?? "", "completed")).run.answer).toBe("done");
});

test.each([
  ["cancellation", "cancelled"],
  ["disconnect", "cancelled"],
  ["disconnect", "timed out"],
  ["disconnect", "gone"],
] as const)("configured to stop runs on %s: one whose client has %s ends", async (stopRunOn, how) => {
  for (const kind of CLIENT_KINDS) {
    const started = deferred();
    const model = scriptedModel(async () => {
      started.resolve();
      return new Promise<never>(() => {});
    });
    const { service } = openServer(databaseFile(), { model });
    const deps = depsFor(service, { config: { delivery: { stopRunOn } } });
    const client = await connect(deps, { kind });
    const controller = new AbortController();
    const call = client.call(
      "run_deep_agent",
      { task: "x" },
      { signal: controller.signal, ...(how === "timed out" ? { timeout: 1500 } : {}) },
    );
    call.catch(() => undefined);
    await started.promise;
    if (how === "cancelled") controller.abort("the person pressed escape");
    if (how === "gone") await client.close();
    const [run] = await mine(service).read.list({ limit: 1 });
    expect((await reach(service, run?.id ?? "", "cancelled")).run.cancelReason).toMatch(/^the client /);
    await expect(call).rejects.toThrow();
  }
});

test("configured to stop runs on cancellation: a client that timed out or is gone does not end its run", async () => {
  for (const how of ["timed out", "gone"]) {
    const started = deferred();
    const thinking = deferred();
    const model = scriptedModel(async () => {
      started.resolve();
      await thinking.promise;
      return { text: "done" };
    });
    const { service } = openServer(databaseFile(), { model });
    const deps = depsFor(service, { config: { delivery: { stopRunOn: "cancellation" } } });
    const client = await connect(deps, { kind: "v1" });
    const call = client.call("run_deep_agent", { task: "x" }, { timeout: how === "gone" ? 25_000 : 1000 });
    call.catch(() => undefined);
    await started.promise;
    if (how === "gone") await client.close();
    await expect(call).rejects.toThrow();
    thinking.resolve();
    const [run] = await mine(service).read.list({ limit: 1 });
    await reach(service, run?.id ?? "", "completed");
  }
});

test.each(CLIENT_KINDS)("%s: progress grows and names the steps", async (kind) => {
  // A run that has made a step before its call is looked at begins with that one.
  const looked = deferred();
  const { service } = openServer(databaseFile(), async () => {
    await looked.promise;
    return { model: calling(note("a")), tools: [noteTool([])] };
  });
  const client = await connectTo(service, kind);
  const lines: [string, number][] = [];
  const onProgress = (line: string, progress: number): void => {
    lines.push([line, progress]);
    looked.resolve();
  };
  await client.call("run_deep_agent", { task: "x" }, { onProgress });
  const own = lines.filter(([line]) => !line.startsWith("Fulfilling"));
  expect(own[0]?.[0]).toMatch(/^run run_\S+ started$/);
  expect(own.map(([line]) => line)).toContain("note");
  expect(own.every(([, value], index) => index === 0 || value > (own[index - 1]?.[1] ?? 0))).toBe(true);
});

test.each(CLIENT_KINDS)("%s: a check returns at the first change that shows", async (kind) => {
  const more = deferred();
  const todos = [{ content: "look", status: "in_progress" }];
  const model = scriptedModel(async ({ messages }) => {
    if (messages.at(-1)?.type === "tool") await new Promise<never>(() => {});
    await more.promise;
    return { toolCalls: [{ name: "write_todos", args: { todos } }] };
  });
  const { service } = openServer(databaseFile(), { model });
  const client = await connectTo(service, kind);
  const { structured } = await client.call("run_deep_agent", { task: "x", wait_seconds: 0 });
  expect(structured["todos"]).toEqual([]);
  const checking = client.call("check_deep_agent", { run_id: structured["run_id"] });
  more.resolve();
  expect((await checking).structured).toMatchObject({ status: "working", todos });
});
