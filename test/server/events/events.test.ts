import { InMemoryTransport } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { PUBLIC_CALLBACKS, type Callbacks, subscriberSend } from "../../../src/news/subscriber.ts";
import { Courier } from "../../../src/runs/courier.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { startReceiver } from "../../news/receiver.ts";
import {
  ME,
  approve,
  calling,
  callingInTurn,
  cleanUpWith,
  connect,
  databaseFile,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { depsFor } from "../support.ts";
import { type Rpc, envelope, overHttp, overMemory } from "../tasks/raw.ts";
import type { ServerDeps } from "../../../src/server/contracts/deps.ts";
import { createServerFactory } from "../../../src/server/protocol/create-server.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
/** Lets tests receive on this machine. */
const HERE: Callbacks = { network: { isNamed: () => true }, isTrusted: () => true };

interface Occurrence {
  eventId: string;
  name: string;
  timestamp: string;
  data: Record<string, string>;
}
interface Polled {
  events: Occurrence[];
  cursor: string;
  truncated: boolean;
  hasMore: boolean;
  nextPollMs: number;
}

/** A server with runs that ask for approval, and what its outbox sends. */
function world(principal = ME, file = databaseFile()) {
  const { service } = openServer(file, {
    model: calling(note("a")),
    tools: [noteTool([])],
    interruptOn: { note: true },
  });
  const deps = {
    ...depsFor(service, { principalOf: () => principal }),
    callbacks: HERE,
    pageOf: (runId: string) => `https://agents.example/runs/${runId}`,
  };
  return { service, deps, file };
}

/** Sends what waits in the outbox of the file, as a server does. */
function deliver(file: string): Courier {
  const { news } = sqliteRuns(connect(file));
  const context = { callbacks: HERE, clock: Date.now, holds: async () => true, pageOf: () => undefined };
  const courier = new Courier({
    news,
    channels: [],
    subscriber: (id) => subscriberSend(() => news.subscriptionById(id), context),
    environment: "test",
    clock: Date.now,
    log: silentLogger,
    checkMs: 10,
  });
  cleanUpWith(() => courier.close());
  return courier;
}

const poll = async (rpc: Rpc, name: string, more: object = {}): Promise<Polled> => {
  const { result, error } = await rpc("events/poll", { name, ...more });
  if (error !== undefined) throw new Error(error.message);
  return result as unknown as Polled; // as the specification has it
};

const finishedRun = async (service: RunService, task: string): Promise<string> => {
  const { id } = await startRun(service, task);
  await reach(service, id, "input_required");
  await approve(service, id, "a");
  await reach(service, id, "completed");
  return id;
};

test("the catalogue describes each type, and offers webhooks over HTTP only", async () => {
  const { deps } = world();
  const overStdio = (await (await overMemory(deps))("events/list", {})).result;
  const { events } = (await (await overHttp(deps))("events/list", {})).result as {
    events: { name: string; delivery: string[]; inputSchema: object; payloadSchema: object }[];
  };
  const names = "run.finished run.failed question.asked approval.requested budget.reached run.progress";
  expect(events.map(({ name }) => name)).toEqual(names.split(" "));
  expect(events[0]).toMatchObject({
    delivery: ["poll", "push", "webhook"],
    inputSchema: { type: "object", properties: { run_id: { type: "string" } }, additionalProperties: false },
    payloadSchema: { type: "object", required: ["run_id", "thread_id", "name", "summary"] },
  });
  expect(events.at(-1)?.delivery).toEqual(["poll", "push"]);
  expect(JSON.stringify(overStdio)).not.toContain("webhook");
  const discovered = (await (await overMemory(deps))("server/discover", {})).result;
  expect(discovered).toMatchObject({
    capabilities: {
      events: { listChanged: false },
      extensions: { "io.modelcontextprotocol/events": { listChanged: false } },
    },
  });
});

describe("a poll", () => {
  test("gives events after its cursor once, in pages, with no contents", async () => {
    const { service, deps } = world();
    const rpc = await overHttp(deps);
    await finishedRun(service, "before");
    const start = await poll(rpc, "run.finished");
    expect(start).toMatchObject({ events: [], truncated: false, hasMore: false, nextPollMs: 5000 });
    const ids = [await finishedRun(service, "one"), await finishedRun(service, "two")];
    const first = await poll(rpc, "run.finished", { cursor: start.cursor, maxEvents: 1 });
    expect(first).toMatchObject({ hasMore: true, nextPollMs: 0 });
    const url = `https://agents.example/runs/${ids[0]}`;
    const data = { run_id: ids[0], name: "one", summary: "finished", url };
    expect(first.events).toMatchObject([{ name: "run.finished", data }]);
    const second = await poll(rpc, "run.finished", { cursor: first.cursor });
    expect(second.events.map(({ data }) => data["run_id"])).toEqual([ids[1]]);
    expect(second.hasMore).toBe(false);
    expect((await poll(rpc, "run.finished", { cursor: second.cursor })).events).toEqual([]);
    const one = await poll(rpc, "approval.requested", {
      cursor: start.cursor,
      arguments: { run_id: ids[1] },
    });
    expect(one.events.map(({ data }) => data)).toMatchObject([
      { run_id: ids[1], summary: "needs your approval: call note", tool: "note" },
    ]);
    const old = await poll(rpc, "run.finished", { cursor: start.cursor, maxAgeMs: 0 });
    expect(old).toMatchObject({ events: [], truncated: true });
  });

  test("finds an event that was stored after one with a later time", async () => {
    const { service, deps, file } = world();
    const rpc = await overMemory(deps);
    const start = await poll(rpc, "run.finished");
    const id = await finishedRun(service, "one");
    const first = await poll(rpc, "run.finished", { cursor: start.cursor });
    expect(first.events).toHaveLength(1);
    // As if its transaction had taken long.
    const database = connect(file);
    database
      .prepare<[string], object>(
        "INSERT INTO run_events (run_id, seq, time, agent, kind, data) SELECT run_id, 99, time - 1, agent, kind, data FROM run_events WHERE run_id = ? AND kind = 'run_completed'",
      )
      .run(id);
    const late = await poll(rpc, "run.finished", { cursor: first.cursor });
    expect(late.events).toHaveLength(1);
    expect(late.events[0]?.eventId).not.toBe(first.events[0]?.eventId);
    expect((await poll(rpc, "run.finished", { cursor: late.cursor })).events).toEqual([]);
  });

  test("shows nobody the runs of another principal", async () => {
    const { service, deps, file } = world();
    const mine = await overMemory(deps);
    const theirs = await overMemory(world("somebody else", file).deps);
    const start = await poll(mine, "run.finished");
    const id = await finishedRun(service, "secret");
    expect((await poll(mine, "run.finished", { cursor: start.cursor })).events).toHaveLength(1);
    for (const more of [{}, { arguments: { run_id: id } }]) {
      expect((await poll(theirs, "run.finished", { cursor: start.cursor, ...more })).events).toEqual([]);
    }
  });

  test("of bad parameters is refused with what is wrong", async () => {
    const { deps } = world();
    const rpc = await overMemory(deps);
    const codeOf = async (params: object) => (await rpc("events/poll", params)).error;
    expect(await codeOf({ name: "run.lost" })).toMatchObject({ code: -32_011, data: { kind: "event" } });
    expect(await codeOf({})).toMatchObject({ code: -32_602 });
    for (const bad of [
      { arguments: { run_id: 7 } },
      { arguments: { other: "x" } },
      { cursor: "hunter2" },
      { cursor: Buffer.from("[1,2,[3]]").toString("base64url") },
      { maxEvents: 0 },
      { maxAgeMs: -1 },
    ]) {
      expect(await codeOf({ name: "run.finished", ...bad })).toMatchObject({ code: -32_602 });
    }
  });
});

describe("a subscription", () => {
  const subscribe = (rpc: Rpc, url: string, more: object = {}) =>
    rpc("events/subscribe", {
      name: "run.finished",
      delivery: { mode: "webhook", url, secret: SECRET },
      cursor: null,
      ...more,
    });

  /** Repeats challenges as clients do. */
  const repeating = (body: string): string => {
    const { challenge } = JSON.parse(body) as { challenge?: string };
    return JSON.stringify({ challenge });
  };

  test("proves its address, is sent one signed event a request, and ends", async () => {
    const { service, deps, file } = world();
    const receiver = await startReceiver(repeating);
    const rpc = await overHttp(deps);
    const { result } = await subscribe(rpc, `${receiver.url}/hook`, { ttlMs: 3_600_000 });
    expect(result).toMatchObject({ id: expect.stringMatching(/^sub_[0-9a-f]{32}$/), truncated: false });
    const id = String(result?.["id"]);
    const { refreshBefore } = result as { refreshBefore: string };
    expect(Date.parse(refreshBefore) - Date.now()).toBeGreaterThan(3_500_000);
    const [verification] = receiver.received;
    const verify = ({ body, headers }: (typeof receiver.received)[number]) =>
      new Webhook(SECRET).verify(body, headers as Record<string, string>);
    expect(verification && verify(verification)).toMatchObject({ type: "verification" });
    expect(verification?.headers["x-mcp-subscription-id"]).toBe(id);

    // Subscribing again changes the same one, and asks for no second proof.
    expect((await subscribe(rpc, `${receiver.url}/hook`)).result).toMatchObject({ id });
    expect(receiver.received).toHaveLength(1);

    deliver(file);
    const runs = [await finishedRun(service, "one"), await finishedRun(service, "two")];
    await expect.poll(() => receiver.received.length).toBe(3);
    const sent = receiver.received.slice(1).map((one) => ({ ...one, event: verify(one) as Occurrence }));
    expect(sent.map(({ event }) => event.data["run_id"])).toEqual(runs);
    for (const { event, headers, body } of sent) {
      expect(headers).toMatchObject({ "webhook-id": event.eventId, "x-mcp-subscription-id": id });
      expect(Buffer.byteLength(body)).toBeLessThan(262_144);
    }
    const ended = await rpc("events/unsubscribe", {
      name: "run.finished",
      delivery: { url: `${receiver.url}/hook` },
    });
    expect(ended.error).toBeUndefined();
    await finishedRun(service, "three");
    expect(await sqliteRuns(connect(file)).news.list(9)).toEqual([]);
    const again = await rpc("events/unsubscribe", {
      name: "run.finished",
      delivery: { url: `${receiver.url}/hook` },
    });
    expect(again.error).toMatchObject({ code: -32_011, data: { kind: "subscription" } });
  });

  test("with a cursor is first sent the events since then", async () => {
    const { service, deps, file } = world();
    const receiver = await startReceiver(repeating);
    const rpc = await overHttp(deps);
    await finishedRun(service, "before");
    const { cursor } = await poll(rpc, "run.finished");
    const missed = await finishedRun(service, "missed");
    const url = `${receiver.url}/hook`;
    const { result } = await subscribe(rpc, url, { cursor });
    expect(result).toMatchObject({ truncated: false });
    // Renewed with the cursor that it began with, as clients do: it is sent nothing again.
    expect((await subscribe(rpc, url, { cursor })).error).toBeUndefined();
    deliver(file);
    const later = await finishedRun(service, "later");
    await expect.poll(() => receiver.received.length).toBe(3);
    const runs = receiver.received
      .slice(1)
      .map(({ body }) => (JSON.parse(body) as Occurrence).data["run_id"]);
    expect(runs).toEqual([missed, later]);
    const skipping = await subscribe(rpc, `${receiver.url}/other`, { cursor, maxAgeMs: 0 });
    expect(skipping.result).toMatchObject({ truncated: true });
    const foreign = await subscribe(rpc, url, { cursor: "hunter2" });
    expect(foreign.error).toMatchObject({ code: -32_602, data: { field: "cursor" } });
  });

  test("of another principal is another one, which nobody else can end", async () => {
    const { service, deps, file } = world();
    const receiver = await startReceiver(repeating);
    const [mine, theirs] = [await overHttp(deps), await overHttp(world("them", file).deps)];
    const url = `${receiver.url}/hook`;
    const first = await subscribe(mine, url);
    const second = await subscribe(theirs, url);
    expect(first.result?.["id"]).not.toBe(second.result?.["id"]);
    await finishedRun(service, "mine");
    expect(await sqliteRuns(connect(file)).news.list(9)).toMatchObject([
      { target: `@${String(first.result?.["id"])}` },
    ]);
    expect(
      (await theirs("events/unsubscribe", { name: "run.finished", delivery: { url } })).error,
    ).toBeUndefined();
    expect(
      (await mine("events/unsubscribe", { name: "run.finished", delivery: { url } })).error,
    ).toBeUndefined();
  });

  test("needs an answer to the challenge", async () => {
    const { deps } = world();
    const rpc = await overHttp(deps);
    const wrong = await startReceiver(() => JSON.stringify({ challenge: "guess" }));
    expect((await subscribe(rpc, wrong.url)).error).toMatchObject({
      code: -32_015,
      data: { reason: "challenge_failed" },
    });
    const failing = await startReceiver(repeating);
    failing.statuses = [500, 404];
    expect((await subscribe(rpc, failing.url)).error?.data).toEqual({ reason: "http_5xx" });
    expect((await subscribe(rpc, failing.url)).error?.data).toEqual({ reason: "http_4xx" });
    expect((await subscribe(rpc, "http://127.0.0.1:1/")).error?.data).toEqual({
      reason: "connection_failed",
    });
  });

  test("has a public address, a good secret, and an event that is sent so", async () => {
    const { deps } = world();
    const rpc = await overHttp({ ...deps, callbacks: PUBLIC_CALLBACKS });
    for (const url of [
      "http://example.com/hook",
      "https://127.0.0.1/hook",
      "https://localhost/hook",
      "https://[::1]/hook",
      "https://169.254.169.254/latest/meta-data",
      "https://10.0.0.8/hook",
      "https://intranet/hook",
      "https://me:hunter2@example.com/hook",
      "https://example.com/hook#a",
      "https://example.com:22/hook",
      "file:///etc/passwd",
      "hunter2",
      `https://example.com/${"x".repeat(2001)}`,
    ]) {
      const { error } = await subscribe(rpc, url);
      expect(error).toMatchObject({ code: -32_602, data: { field: "delivery.url" } });
      expect(error?.message).not.toContain("hunter2");
    }
    // A public name with a private address is found out when it is looked up.
    const rebound = {
      ...PUBLIC_CALLBACKS,
      network: { isNamed: () => false, resolve: async () => [LOOPBACK] },
    };
    const rebinding = await overHttp({ ...deps, callbacks: rebound });
    expect((await subscribe(rebinding, "https://rebind.example/hook")).error).toMatchObject({
      code: -32_015,
    });
    for (const secret of ["", "hunter2", `whsec_${Buffer.alloc(23).toString("base64")}`, undefined]) {
      const delivery = { mode: "webhook", url: "https://example.com/hook", secret };
      const { error } = await subscribe(rpc, "", { delivery });
      expect(error).toMatchObject({ code: -32_602, data: { field: "delivery.secret" } });
      expect(error?.message).not.toContain("hunter2");
    }
    const url = "https://example.com/hook";
    expect((await subscribe(rpc, url, { name: "run.progress" })).error?.code).toBe(-32_014);
    expect((await subscribe(rpc, url, { name: "run.lost" })).error?.code).toBe(-32_011);
    const overStdio = await overMemory(deps);
    expect((await subscribe(overStdio, url)).error?.code).toBe(-32_014);
  });

  test("comes to an end by itself, and a principal has at most 50", async () => {
    const { service, deps, file } = world();
    const { news } = sqliteRuns(connect(file));
    const one = { type: "run.finished" as const, url: "https://example.com/", secret: SECRET };
    for (let number = 0; number < 50; number += 1) {
      const expiresAt = Date.now() + (number === 0 ? -1 : 60_000);
      expect(
        await news.subscribe(ME, { ...one, id: `sub_${number}`, expiresAt }, { most: 50, now: 0 }),
      ).toBeDefined();
    }
    await finishedRun(service, "one");
    expect((await news.list(99)).map(({ target }) => target)).not.toContain("@sub_0");
    expect(await news.list(99)).toHaveLength(49);
    const receiver = await startReceiver(repeating);
    const rpc = await overHttp(deps);
    expect((await subscribe(rpc, `${receiver.url}/1`)).error).toBeUndefined();
    expect((await subscribe(rpc, `${receiver.url}/2`)).error).toMatchObject({
      code: -32_013,
      data: { limit: "subscriptions", max: 50 },
    });
  });
});

const LOOPBACK = { address: "127.0.0.1", family: 4 };

test("progress tells of steps and subagents, by poll", async () => {
  const todos = (done: boolean) => ({
    name: "write_todos",
    args: { todos: [{ content: "secret step", status: done ? "completed" : "pending" }] },
  });
  const { service } = openServer(databaseFile(), {
    model: callingInTurn([todos(false)], [todos(true)]),
  });
  const rpc = await overMemory(depsFor(service));
  const start = await poll(rpc, "run.progress");
  const { id } = await startRun(service, "steps");
  await reach(service, id, "completed");
  const { events } = await poll(rpc, "run.progress", { cursor: start.cursor });
  expect(events.map(({ data }) => data["summary"])).toEqual(["0 of 1 step done", "1 of 1 step done"]);
  expect(JSON.stringify(events)).not.toContain("secret step");
});

interface Message {
  id?: number;
  method?: string;
  params?: { cursor?: string; truncated?: boolean; eventId?: string; _meta?: Record<string, unknown> };
  result?: object;
  error?: object;
}

/** A client over stdio that keeps every message. */
async function listening(deps: ServerDeps) {
  const [client, server] = InMemoryTransport.createLinkedPair();
  const handle = serveStdio(createServerFactory(deps), { transport: server });
  cleanUpWith(() => handle.close());
  const got: Message[] = [];
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  client.onmessage = (message) => void got.push(message as Message);
  await client.start();
  const send = (method: string, params: object, id?: number) =>
    client.send({
      jsonrpc: "2.0",
      method,
      params: { ...params },
      ...(id === undefined ? {} : { id }),
    });
  const of = (what: string) => got.filter(({ method }) => method === `notifications/events/${what}`);
  return { send, of, answerTo: (id: number) => got.find((one) => one.id === id) };
}

describe("a stream", () => {
  test.each(["2026-07-28", "2025-11-25"])("sends events as they happen, in %s", async (revision) => {
    const { service, deps } = world();
    const { send, of, answerTo } = await listening(deps);
    const isModern = revision === "2026-07-28";
    if (!isModern) {
      const clientInfo = { name: "raw", version: "1" };
      await send("initialize", { protocolVersion: revision, capabilities: {}, clientInfo }, 1);
      await expect
        .poll(() => answerTo(1)?.result)
        .toMatchObject({
          capabilities: { extensions: { "io.modelcontextprotocol/events": {} } },
        });
      await send("notifications/initialized", {});
    }
    const _meta = isModern ? { _meta: envelope({}) } : {};
    await send("events/stream", { name: "run.finished", cursor: null, ..._meta }, 7);
    await expect.poll(() => of("active")).toHaveLength(1);
    const [active] = of("active");
    expect(active?.params).toMatchObject({
      truncated: false,
      _meta: { "io.modelcontextprotocol/subscriptionId": 7 },
    });
    const id = await finishedRun(service, "one");
    await expect.poll(() => of("event"), { timeout: 5000 }).toHaveLength(1);
    expect(of("event")[0]?.params).toMatchObject({
      eventId: expect.stringContaining(id),
      name: "run.finished",
      data: { run_id: id },
      _meta: { "io.modelcontextprotocol/subscriptionId": 7 },
    });
    await send("notifications/cancelled", { requestId: 7 });
    // A later stream continues where this one was.
    const cursor = of("event")[0]?.params?.cursor;
    const next = await finishedRun(service, "two");
    await send("events/stream", { name: "run.finished", cursor, ..._meta }, 8);
    await expect
      .poll(() => of("event").map(({ params }) => params?.eventId), { timeout: 5000 })
      .toEqual([expect.stringContaining(id), expect.stringContaining(next)]);
    expect(answerTo(7)).toBeUndefined();
    await send("events/stream", { name: "run.lost", ..._meta }, 9);
    await expect.poll(() => answerTo(9)?.error).toMatchObject({ code: -32_011 });
  });

  test("is one of at most 50 of its principal", async () => {
    const { deps } = world();
    const { send, of, answerTo } = await listening(deps);
    const params = { name: "run.finished", _meta: envelope({}) };
    for (let id = 1; id <= 51; id += 1) await send("events/stream", params, id);
    await expect
      .poll(() => answerTo(51)?.error, { timeout: 10_000 })
      .toMatchObject({ code: -32_013, data: { limit: "streams", max: 50 } });
    expect(of("active")).toHaveLength(50);
    await send("notifications/cancelled", { requestId: 3 });
    await expect
      .poll(
        async () => {
          await send("events/stream", params, 52);
          return of("active").length;
        },
        { timeout: 10_000 },
      )
      .toBe(51);
  });
});
