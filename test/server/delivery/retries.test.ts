import { expect, test } from "vitest";
import type { ServerDeps } from "../../../src/server/contracts/deps.ts";
import { cleanUpWith, databaseFile, mine, openServer } from "../../runs/support.ts";
import { CLIENT_KINDS, connectClient, type ClientKind } from "../../support/clients.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { httpConnector } from "../../support/harness-http.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { connect, depsFor } from "../support.ts";

const JOINED = "in a call that was not answered, so this call joined its run";
const TASK = { task: "x" };

/** Runs that answer once they are let. */
function slowRuns(file = databaseFile()) {
  const started = deferred();
  const thinking = deferred();
  const model = scriptedModel(async () => {
    started.resolve();
    await thinking.promise;
    return { text: "done" };
  });
  const server = openServer(file, { model });
  return { ...server, started, thinking, deps: depsFor(server.service) };
}

async function overHttp(deps: ServerDeps, kind: ClientKind) {
  const client = await connectClient(await httpConnector(deps, cleanUpWith), { kind });
  cleanUpWith(() => client.close());
  return client;
}

const CASES = CLIENT_KINDS.flatMap((kind) =>
  (["time-out", "cancel", "disconnect"] as const).map((how) => ({ kind, how })),
);

test.each(CASES)("$kind: after a $how the same call joins its run", async ({ kind, how }) => {
  for (const open of [
    (deps: ServerDeps) => connect(deps, { kind }),
    (deps: ServerDeps) => overHttp(deps, kind),
  ]) {
    const { service, started, thinking, deps } = slowRuns();
    const client = await open(deps);
    const controller = new AbortController();
    const timeout = how === "time-out" ? 1500 : 60_000;
    const first = client.call("run_deep_agent", TASK, { signal: controller.signal, timeout });
    first.catch(() => undefined);
    await started.promise;
    if (how === "cancel") controller.abort();
    if (how === "disconnect") await client.close();
    await expect(first).rejects.toThrow();
    const retry = (how === "disconnect" ? await open(deps) : client).call("run_deep_agent", TASK);
    thinking.resolve();
    const { structured, text } = await retry;
    expect(structured).toMatchObject({ status: "completed", answer: "done" });
    expect(text).toContain(JOINED);
    const again = await (await open(deps)).call("run_deep_agent", TASK);
    expect(again.structured["run_id"]).not.toBe(structured["run_id"]);
    expect(again.text).not.toContain(JOINED);
    expect(await mine(service).read.list({ limit: 10 })).toHaveLength(2);
  }
});

test.each(CLIENT_KINDS)("%s: two calls at once are one run; a key makes them two", async (kind) => {
  const { service, thinking, deps } = slowRuns();
  const [one, other] = [await connect(deps, { kind }), await connect(deps, { kind })];
  const calls = [
    one.call("run_deep_agent", TASK),
    other.call("run_deep_agent", TASK),
    other.call("run_deep_agent", { ...TASK, idempotency_key: "mine" }),
  ];
  await expect.poll(() => mine(service).read.list({ limit: 10 })).toHaveLength(2);
  thinking.resolve();
  const [first, second, own] = (await Promise.all(calls)).map(({ structured }) => structured["run_id"]);
  expect(second).toBe(first);
  expect(own).not.toBe(first);
});

test.each(CLIENT_KINDS)("%s: a run whose server died is joined in the next", async (kind) => {
  const file = databaseFile();
  const first = slowRuns(file);
  const client = await connect(first.deps, { kind });
  client.call("run_deep_agent", TASK).catch(() => undefined);
  await first.started.promise;
  first.kill();
  const second = slowRuns(file);
  second.thinking.resolve();
  const { text, structured } = await (await connect(second.deps, { kind })).call("run_deep_agent", TASK);
  expect(text).toContain(JOINED);
  expect(structured).toMatchObject({ status: "completed", answer: "done" });
});

test("a client that looked at the run knows of it: the same task starts another", async () => {
  const { service, started, thinking, deps } = slowRuns();
  const client = await connect(deps, { kind: "v1" });
  await expect(client.call("run_deep_agent", TASK, { timeout: 500 })).rejects.toThrow();
  await started.promise;
  const [run] = await mine(service).read.list({ limit: 1 });
  thinking.resolve();
  await client.call("check_deep_agent", { run_id: run?.id });
  const { text } = await client.call("run_deep_agent", TASK);
  expect(text).not.toContain(JOINED);
});
