import { expect, test } from "vitest";
import type { Started } from "../../src/runs/service.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  calling,
  connect,
  databaseFile,
  ME,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

const HOUR = 3_600_000;
const never = () => scriptedModel(() => new Promise<never>(() => {}));

/** A service, and what a call that asks for a task comes to. */
function open(file = databaseFile(), options: Parameters<typeof openServer>[2] = {}, model = never()) {
  const server = openServer(file, { model }, options);
  const ask = async (task: string, extra: object = {}, principal = ME): Promise<[Started, string]> => {
    const outcome = await server.service.as({ principal }).control.start({ task, askedAt: 1000, ...extra });
    if (!outcome.ok) throw new Error(outcome.message);
    return [outcome.how, outcome.run.id];
  };
  return { ...server, ask };
}

test("the same task joins the run of a call that was not answered, also after a restart", async () => {
  const file = databaseFile();
  const first = open(file);
  const [, id] = await first.ask("x");
  expect(await first.ask("x")).toEqual(["joined", id]);
  first.kill();
  const second = open(file);
  expect(await second.ask("x")).toEqual(["joined", id]);
  expect(await mine(second.service).read.list({ limit: 10 })).toHaveLength(1);
});

test("once its call was answered, the same task is a wish to do it again", async () => {
  const { service, ask } = open();
  const [, id] = await ask("x");
  await mine(service).control.answered(id, 1000);
  expect(await ask("x")).toEqual(["started", expect.not.stringMatching(id)]);
});

test("calls at the same moment are one run", async () => {
  const { ask } = open();
  const all = await Promise.all(Array.from({ length: 5 }, () => ask("x")));
  expect(new Set(all.map(([, id]) => id)).size).toBe(1);
  expect(all.filter(([how]) => how === "started")).toHaveLength(1);
});

test("another task, thread, principal or key, and a start without a call, join nothing", async () => {
  const { service, ask } = open();
  const [, id] = await ask("x");
  const { threadId } = await startRun(service, "x");
  expect(await mine(service).read.list({ limit: 10 })).toHaveLength(2);
  const others = [
    ask("y"),
    ask("x", {}, "someone else"),
    ask("x", { idempotencyKey: "again" }),
    ask("x", { threadId }),
  ];
  for (const [how, other] of await Promise.all(others)) {
    expect(how).not.toBe("joined");
    expect(other).not.toBe(id);
  }
});

test("a server of another workspace joins nothing", async () => {
  const file = databaseFile();
  await open(file).ask("x");
  expect((await open(file, { environment: "elsewhere" }).ask("x"))[0]).toBe("started");
});

test("a message to a thread at work is not told twice", async () => {
  const { service, ask } = open();
  const run = await startRun(service, "x");
  const extra = { threadId: run.threadId };
  expect(await ask("and y", extra)).toEqual(["told", run.id]);
  expect(await ask("and y", extra)).toEqual(["joined", run.id]);
  await mine(service).control.answered(run.id, 1000);
  expect(await ask("and y", extra)).toEqual(["told", run.id]);
});

test("a completed run is joined for an hour, one that was cancelled is not", async () => {
  const done = open(
    databaseFile(),
    {},
    scriptedModel(() => ({ text: "done" })),
  );
  const [, id] = await done.ask("x", { askedAt: Date.now() });
  await reach(done.service, id, "completed");
  expect(await done.ask("x", { askedAt: Date.now() })).toEqual(["joined", id]);
  expect((await done.ask("x", { askedAt: Date.now() + HOUR + 1000 }))[0]).toBe("started");
  const { service, ask } = open();
  const [, cancelled] = await ask("x");
  await mine(service).control.cancel(cancelled, "not wanted");
  expect((await ask("x"))[0]).toBe("started");
});

test("a run that waits for a person is joined however old it is", async () => {
  const file = databaseFile();
  const server = openServer(file, {
    model: calling(note("a")),
    tools: [noteTool([])],
    interruptOn: { note: true },
  });
  const first = await mine(server.service).control.start({ task: "note a", askedAt: 0 });
  const id = first.ok ? first.run.id : "";
  await reach(server.service, id, "input_required");
  const again = await mine(server.service).control.start({ task: "note a", askedAt: Date.now() });
  expect(again).toMatchObject({ how: "joined", run: { id } });
  expect(connect(file).prepare("SELECT count(*) AS runs FROM runs").get()).toEqual({ runs: 1 });
});
