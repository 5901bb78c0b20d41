import { ChatAnthropic } from "@langchain/anthropic";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { type AgentEvent, buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { collect, skippingPauses } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { wireServer, WIRE_KEY, type WireReply, type WireRequest } from "../../support/wire-server.ts";
import { PROVIDERS } from "../../support/wire-thread.ts";

const TASK = { kind: "task", task: "go" } as const;
type Retry = Extract<AgentEvent, { kind: "model_retry" }>;

const retriesOf = (events: readonly AgentEvent[]): Retry[] =>
  events.filter((event) => event.kind === "model_retry");

interface World {
  reply: (request: WireRequest) => WireReply;
  params?: DeepAgentParams;
  /** Default: the model that the server resolves. */
  model?: (url: string) => DeepAgentParams["model"];
  protocol?: (typeof PROVIDERS)[number];
}

/** Runs a task; each pause is over as soon as it was told. */
async function tried({ reply, params, model: own, protocol = PROVIDERS[0] }: World) {
  const server = await wireServer(reply);
  const env = server.env(protocol.provider);
  const model =
    own?.(server.url) ?? (await resolveModel({ model: protocol.spec, env, idleMs: 60_000 })).model;
  const agent = buildAgent({ checkpointer: new MemorySaver(), model, ...params });
  let told: readonly AgentEvent[] = [];
  const skipPause = skippingPauses(handSetTime());
  const outcome: unknown = await collect(agent, TASK, {}, (events) => {
    told = events;
    skipPause(events);
  }).catch((error: unknown) => error);
  return { outcome, retries: retriesOf(told), server };
}

const overloaded = { status: 529, type: "overloaded_error", code: "server_error", message: "Overloaded" };

describe.each(PROVIDERS)("over $protocol", (protocol) => {
  test.each<[string, WireReply, string, RegExp]>([
    ["a lost connection in an answer", { fault: "cut" }, "model_stream_broken", /^Model's answer broke off/],
    ["an answer that ends too early", { fault: "end" }, "model_stream_broken", /^Model's answer broke off/],
    [
      "an overload inside an answer",
      { fault: "report", error: overloaded },
      "model_unavailable",
      /^Model overloaded\. /,
    ],
    ["an overload", overloaded, "model_unavailable", /^Model overloaded \(HTTP 529\)\. /],
    ["a server error", { status: 500, message: "x" }, "model_unavailable", /provider failed \(HTTP 500\)\. /],
    ["a rate limit", { status: 429, message: "x" }, "model_rate_limited", /^Model rate limited \(HTTP 429\)/],
    ["no connection", { fault: "refuse" }, "model_unavailable", /^Model not reachable \(\w+\)\. /],
  ])("%s is tried again and named", async (_name, fault, reason, message) => {
    const { outcome, retries, server } = await tried({
      protocol,
      reply: ({ number }) => (number < 3 ? fault : { text: "here I am" }),
    });
    expect(outcome).toContainEqual({ kind: "finished", answer: "here I am" });
    expect(retries.map(({ reason, attempt }) => ({ reason, attempt }))).toEqual(
      [1, 2, 3].map((attempt) => ({ reason, attempt })),
    );
    for (const retry of retries) expect(retry.message).toMatch(message);
    expect(retries[2]?.message).toMatch(/\. Attempt 4 in \d+ s\.$/);
    expect(server.requests).toHaveLength(4);
  });

  test.each<[WireReply]>([
    [{ status: 400, message: "temperature: out of range" }],
    [{ status: 401, message: "invalid key" }],
    [{ status: 403, message: "not in your region" }],
    [{ status: 404, message: "no such model" }],
    [{ status: 429, message: "You exceeded your current quota", code: "insufficient_quota" }],
    [{ status: 500, message: "never", headers: { "x-should-retry": "false" } }],
  ])("%j is not tried again", async (fault) => {
    const { retries, server } = await tried({ protocol, reply: () => fault });
    expect(retries).toEqual([]);
    expect(server.requests).toHaveLength(1);
  });

  test("silence in the middle of an answer is tried again", async () => {
    const server = await wireServer(({ number }) => (number === 0 ? { fault: "stall" } : { text: "awake" }));
    const env = server.env(protocol.provider);
    const { model } = await resolveModel({ model: protocol.spec, env, idleMs: 50 });
    const events = await collect(buildAgent({ checkpointer: new MemorySaver(), model }), TASK);
    expect(events.at(-1)).toMatchObject({ answer: "awake" });
    expect(retriesOf(events)).toMatchObject([
      { reason: "model_stream_broken", message: expect.stringMatching(/^Model fell silent/) as string },
    ]);
  });
});

describe("pauses", () => {
  test("grow until the patience is over", async () => {
    const { outcome, retries, server } = await tried({
      reply: () => overloaded,
      params: { limits: { modelPatienceMs: 600_000 } },
    });
    expect(outcome).toMatchObject({
      code: "model_unavailable",
      message: expect.stringContaining("overloaded (HTTP 529)") as string,
    });
    const pauses = retries.map(({ pauseMs }) => pauseMs);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(60_000);
    expect(pauses.length).toBeGreaterThan(10);
    expect(pauses.length).toBeLessThan(40);
    expect(server.requests).toHaveLength(retries.length + 1);
  });

  test.each([
    ["seconds", { "retry-after": "120" }],
    ["milliseconds", { "retry-after-ms": "120000", "retry-after": "1" }],
    ["a date", { date: "Mon, 01 Jan 2035 00:00:00 GMT", "retry-after": "Mon, 01 Jan 2035 00:02:00 GMT" }],
  ])("are as long as the provider asks, in %s", async (_form, headers) => {
    const { outcome, retries } = await tried({
      reply: ({ number }) => (number < 2 ? { status: 429, message: "slow down", headers } : { text: "now" }),
      params: { limits: { modelPatienceMs: 600_000 } },
    });
    expect(outcome).toContainEqual({ kind: "finished", answer: "now" });
    expect(retries).toMatchObject([{ pauseMs: 120_000 }, { pauseMs: 120_000 }]);
    expect(retries[0]?.message).toBe("Model rate limited (HTTP 429). Attempt 2 in 120 s.");
  });

  test("are not begun when the provider asks for more than the patience", async () => {
    const limited = { status: 429, message: "slow down", headers: { "retry-after": "3600" } };
    const { outcome, retries } = await tried({ reply: () => limited });
    expect(outcome).toMatchObject({
      code: "model_rate_limited",
      message: expect.stringContaining("Wait 3600 s") as string,
    });
    expect(retries).toEqual([]);
  });

  test("end at once when the run is stopped", async () => {
    const controller = new AbortController();
    const server = await wireServer(() => ({ ...overloaded, headers: { "retry-after": "500" } }));
    const { model } = await resolveModel({ model: PROVIDERS[0].spec, env: server.env("anthropic") });
    const limits = { modelPatienceMs: 600_000 };
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, limits });
    const events: AgentEvent[] = [];
    const work = collect(agent, TASK, { signal: controller.signal }, (all) => {
      events.splice(0, events.length, ...all);
      if (all.at(-1)?.kind === "model_retry") controller.abort();
    });
    await expect(work).rejects.toThrow(/abort/i);
    expect(retriesOf(events)).toHaveLength(1);
    expect(server.requests).toHaveLength(1);
  });
});

test("an instance that retries by itself leaves it to the agent", async () => {
  const { outcome, retries, server } = await tried({
    reply: ({ number }) => (number < 2 ? { status: 529, message: "x" } : { text: "end" }),
    model: (anthropicApiUrl) =>
      new ChatAnthropic({
        model: "claude-sonnet-4-5-20250929",
        apiKey: WIRE_KEY,
        anthropicApiUrl,
        maxRetries: 6,
      }),
  });
  expect(outcome).toContainEqual({ kind: "finished", answer: "end" });
  expect(retries).toHaveLength(2);
  expect(server.requests).toHaveLength(3);
});

test("an error of the program itself is passed on as it is", async () => {
  const error = new TypeError("x is not a function");
  const { outcome, retries } = await tried({
    reply: () => ({ text: "never" }),
    model: () =>
      scriptedModel(() => {
        throw error;
      }),
  });
  expect(outcome).toBe(error);
  expect(retries).toEqual([]);
});

test("a subagent whose stream breaks goes on with its next call", async () => {
  const isBroken = (request: WireRequest): boolean => request.number % 3 === 2;
  const { outcome, retries, server } = await tried({
    reply: (request) => {
      if (isBroken(request)) return { fault: "cut" };
      const { messages, tools } = request;
      const results = messages.filter(({ toolResults }) => toolResults.length > 0).length;
      if (tools.includes("task")) {
        const args = { description: "look", subagent_type: "general-purpose" };
        return results === 0 ? { toolCalls: [{ name: "task", args }] } : { text: "end" };
      }
      return results < 4 ? { toolCalls: [{ name: "ls", args: {} }] } : { text: "report" };
    },
  });
  expect(outcome).toContainEqual({ kind: "finished", answer: "end" });
  const calls = (outcome as AgentEvent[]).filter(({ kind }) => kind === "tool_started");
  expect(calls).toHaveLength(5);
  const broken = server.requests.filter(isBroken);
  expect(retries).toHaveLength(broken.length);
  expect(retries.some(({ agent }) => agent.length === 1)).toBe(true);
});

test("a subagent whose task is given again after its model was down goes on from where it was", async () => {
  const task = (id: string, description: string) => ({
    id,
    name: "task",
    args: { description, subagent_type: "general-purpose" },
  });
  let isDown = true;
  const { outcome, server } = await tried({
    params: { limits: { modelPatienceMs: 0 } },
    reply: ({ messages, tools }) => {
      const results = messages.flatMap(({ toolResults }) => toolResults);
      if (tools.includes("task")) {
        isDown = results.length === 0;
        const next = [task("task_1", "look"), task("task_2", "look"), task("task_3", "look")][results.length];
        return next === undefined ? { text: "end" } : { toolCalls: [next] };
      }
      if (results.length === 2 && isDown) return overloaded;
      return results.length < 3
        ? { toolCalls: [{ id: `ls_${results.length}`, name: "ls", args: {} }] }
        : { text: "report" };
    },
  });
  expect(outcome).toContainEqual({ kind: "finished", answer: "end" });
  const calls = (outcome as AgentEvent[]).flatMap((event) =>
    event.kind === "tool_started" && event.agent.length > 0 ? [[event.agent[0]?.callId, event.callId]] : [],
  );
  // The third time it is a task of its own: the one before had ended well.
  expect(calls).toEqual([
    ["task_1", "ls_0"],
    ["task_1", "ls_1"],
    ["task_2", "ls_2"],
    ["task_3", "ls_0"],
    ["task_3", "ls_1"],
    ["task_3", "ls_2"],
  ]);
  const told = server.requests.flatMap(({ messages }) => messages.flatMap(({ toolResults }) => toolResults));
  const reports = new Map(told.map(({ id, text }) => [id, text]));
  expect(reports.get("task_1")).toMatch(/is overloaded .*with the same description/s);
  expect([reports.get("task_2"), reports.get("task_3")]).toEqual(["report", "report"]);
  expect(server.refusals).toEqual([]);
});
