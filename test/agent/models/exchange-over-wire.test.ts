import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type AgentEvent, type DeepAgentParams, buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { findExchange } from "../../../src/agent/models/exchange.ts";
import { Lessons } from "../../../src/agent/models/profiles/learned.ts";
import { type ResolveOptions, resolveModel } from "../../../src/agent/models/resolve.ts";
import { collect } from "../../support/run-agent.ts";
import { streamingProvider } from "../../support/streaming-provider.ts";
import { type Json, list } from "../../support/wire-server-protocol.ts";
import { type WireReply, type WireRequest, wireServer } from "../../support/wire-server.ts";

const TASK = { kind: "task", task: "go" } as const;
const refusal = (message: string, status = 400): WireReply => ({
  status,
  type: "invalid_request_error",
  message,
});
const usual = ({ messages }: WireRequest): WireReply =>
  messages.some(({ toolResults }) => toolResults.length > 0)
    ? { text: "done" }
    : { toolCalls: [{ id: "call_1", name: "ls", args: { path: "/" } }] };
const notices = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => (event.kind === "warning" ? [event.message] : []));

/** A server, and runs of agents with a model of it, each in a thread of its own. */
async function setUp(
  spec: string,
  reply: (request: WireRequest) => WireReply,
  options: Partial<ResolveOptions> = {},
) {
  const server = await wireServer(reply);
  const provider = spec.startsWith("anthropic:") ? "anthropic" : "openai";
  /** As a new process makes it. */
  const load = async (more: Partial<ResolveOptions> = {}) =>
    (await resolveModel({ model: spec, env: server.env(provider), requestMs: 20_000, ...options, ...more }))
      .model;
  const model = await load();
  let threads = 0;
  const run = (params: DeepAgentParams = {}): Promise<AgentEvent[]> => {
    const checkpointer = new MemorySaver();
    return collect(buildAgent({ model, checkpointer, ...params }), TASK, { threadId: `t${(threads += 1)}` });
  };
  return { server, load, model, run };
}

function lessonsFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-lessons-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "lessons.jsonl");
}

const says = (part: string) => (body: Json) => JSON.stringify(body).includes(part);
const hasRole = (role: string) => (body: Json) =>
  list(body["messages"]).some((message) => message["role"] === role);

interface Row {
  what: string;
  spec: string;
  text: string;
  refuses: (body: Json) => boolean;
  /** Requests that are refused. */
  refused?: number;
  maxTokens?: number;
  params?: DeepAgentParams;
}

const WEATHER = z.object({ degrees: z.number() }).meta({ title: "weather" });

const ROWS: Row[] = [
  {
    what: "stream_options",
    spec: "openai:house-model",
    text: 'Bad request: json: unknown field "stream_options"',
    refuses: (body) => "stream_options" in body,
  },
  {
    what: "max_tokens",
    spec: "openai:house-model",
    text: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    refuses: (body) => "max_tokens" in body || body["max_completion_tokens"] !== 4000,
    maxTokens: 4000,
  },
  {
    what: "max_completion_tokens",
    spec: "openai:gpt-5",
    text: "max_completion_tokens: Extra inputs are not permitted",
    refuses: (body) => "max_completion_tokens" in body || body["max_tokens"] !== 4000,
    maxTokens: 4000,
  },
  {
    what: "as many tokens",
    spec: "anthropic:house-model",
    text: "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for house-model",
    refuses: (body) => Number(body["max_tokens"]) > 8192,
  },
  {
    what: "the role developer",
    spec: "openai:gpt-5",
    text: "Unexpected message role: developer",
    refuses: hasRole("developer"),
  },
  {
    what: "the role system",
    spec: "openai:house-model",
    text: "System role not supported",
    refuses: hasRole("system"),
  },
  {
    what: "cache marks at the top",
    spec: "anthropic:claude-sonnet-4-5",
    text: "cache_control: Extra inputs are not permitted",
    refuses: (body) => "cache_control" in body,
  },
  {
    what: "all cache marks",
    spec: "anthropic:claude-sonnet-4-5",
    text: "Unexpected field cache_control",
    refuses: says('"cache_control"'),
    refused: 2,
  },
  {
    what: "cache marks of text",
    spec: "openai:claude-sonnet-4-5",
    text: "messages.0.content.0.cache_control: Extra inputs are not permitted",
    refuses: says('"cache_control"'),
  },
  {
    what: "other keywords of schemas",
    spec: "openai:house-model",
    text: "failed to parse grammar",
    refuses: says('"default"'),
  },
];

describe.each(ROWS)(
  "a server that refuses $what of $spec",
  ({ spec, text, refuses, refused = 1, maxTokens, params }) => {
    const parameters = maxTokens === undefined ? {} : { parameters: { [spec]: { maxTokens } } };

    test("does so once; the notice is told once, and not again after a restart", async () => {
      const file = lessonsFile();
      const reply = (request: WireRequest) => (refuses(request.body) ? refusal(text) : usual(request));
      const { server, load, run } = await setUp(spec, reply, { ...parameters, lessons: new Lessons(file) });
      const first = await run(params);
      expect(first.at(-1)).toMatchObject({ kind: "finished", answer: "done" });
      expect(server.requests.map(({ body }) => refuses(body)).filter(Boolean)).toHaveLength(refused);
      expect(server.refusals).toEqual([]);
      const told = notices(first).filter((notice) => notice.includes("refused"));
      expect(told).toEqual([
        expect.stringContaining("To set this up front, write in the configuration file: {"),
      ]);
      const before = server.requests.length;
      const again = await run({ ...params, model: await load({ lessons: new Lessons(file) }) });
      expect(again.at(-1)).toMatchObject({ kind: "finished", answer: "done" });
      expect(server.requests).toHaveLength(before + 2);
      expect(notices(again).filter((notice) => notice.includes("refused"))).toEqual([]);
      // The notice's own setting does the same.
      const { models } = JSON.parse(told[0]?.slice(told[0].indexOf("{")) ?? "") as {
        models: { NAME: { request: Json } };
      };
      const provider = spec.startsWith("anthropic:") ? "anthropic" : "openai";
      const entry = {
        provider,
        model: spec.slice(provider.length + 1),
        request: models.NAME.request,
      } as const;
      const set = await load({
        model: "own",
        models: { own: entry },
        parameters: { own: { maxTokens } },
        lessons: new Lessons(),
      });
      const count = server.requests.length;
      await run({ ...params, model: set });
      expect(server.requests.slice(count).map(({ body }) => refuses(body))).toEqual([false, false]);
    });

    test("is asked by several runs at the same time", async () => {
      const reply = (request: WireRequest) => (refuses(request.body) ? refusal(text) : usual(request));
      const { run } = await setUp(spec, reply, parameters);
      const runs = await Promise.all(Array.from({ length: 4 }, () => run(params)));
      for (const events of runs) expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "done" });
      expect(runs.flatMap(notices).filter((notice) => notice.includes("refused"))).toHaveLength(1);
    });
  },
);

describe.each(["openai:house-model", "anthropic:house-model"])("a forced tool call of %s", (spec) => {
  test("that is refused becomes one that is asked for", async () => {
    const text = "tool_choice 'required' is incompatible with thinking enabled";
    const { server, run } = await setUp(spec, ({ body }) =>
      body["tool_choice"] === undefined || body["tool_choice"] === "auto"
        ? { toolCalls: [{ id: "c1", name: "weather", args: { degrees: 3 } }] }
        : refusal(text),
    );
    for (const requests of [2, 3]) {
      expect((await run({ responseFormat: WEATHER })).at(-1)).toMatchObject({
        kind: "finished",
        structured: { degrees: 3 },
      });
      expect(server.requests).toHaveLength(requests);
    }
    // Later requests ask for the call in words.
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain(
      "Give your final answer by calling weather.",
    );
  });
});

test("thoughts with a signature of another service are left out after a refusal", async () => {
  const { server, model } = await setUp("anthropic:claude-sonnet-4-5", () => ({ text: "done" }));
  const thought = { type: "thinking", thinking: "Hm.", signature: "foreign" };
  const reply = new AIMessage({ content: [thought, { type: "text", text: "Well." }] });
  const messages = [new HumanMessage("a"), reply, new HumanMessage("b")];
  const agent = createDeepAgent({ model });
  for (const requests of [1, 2]) {
    expect((await agent.invoke({ messages })).messages.at(-1)?.text).toBe("done");
    expect(server.requests).toHaveLength(requests);
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain("Well.");
    expect(server.refusals).toEqual(["messages.1.content.0: Invalid `signature` in `thinking` block"]);
  }
  expect(findExchange(model)?.takeNotices()).toEqual([]);
});

test("thinking is off for calls of another model's reply, and on again afterwards", async () => {
  const thinking = { type: "enabled", budget_tokens: 1024 };
  const parameters = { "anthropic:": { thinking, maxTokens: 4096 } };
  const reply = (): WireReply => ({ thinking: "So.", text: "done" });
  const made = await setUp("anthropic:claude-sonnet-4-5", reply, { parameters });
  const { server } = made;
  const ls = tool(() => "a", { name: "ls", description: "Lists.", schema: z.object({ path: z.string() }) });
  const model = made.model.bindTools?.([ls]) ?? made.model;
  const call = { id: "call_1", name: "ls", args: { path: "/" } };
  const use = { type: "tool_use", id: call.id, name: call.name, input: call.args };
  const thought = { type: "thinking", thinking: "Hm.", signature: "foreign" };
  for (const content of [[thought, use], [use]]) {
    const messages = [
      new HumanMessage("a"),
      new AIMessage({ content, tool_calls: [call] }),
      new ToolMessage({ content: "[]", tool_call_id: call.id }),
    ];
    const answer = await model.invoke(messages);
    expect([answer.text, server.requests.at(-1)?.body["thinking"]]).toEqual(["done", undefined]);
    await model.invoke([...messages, new AIMessage("done"), new HumanMessage("b")]);
    expect(server.requests.at(-1)?.body["thinking"]).toEqual(thinking);
  }
  expect(server.refusals).toEqual(["messages.1.content.0: Invalid `signature` in `thinking` block"]);
});

describe("a server that has only the responses API for a model", () => {
  const text = "This model is only supported in v1/responses and not in v1/chat/completions.";
  const reply = (request: WireRequest): WireReply =>
    request.protocol === "openai-chat" ? refusal(text, 404) : usual(request);

  test("is asked there, with tools and without, and after a restart at once", async () => {
    const file = lessonsFile();
    const { server, run, load } = await setUp("openai:o-house", reply, { lessons: new Lessons(file) });
    const events = await run();
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "done" });
    expect(server.requests.map(({ protocol }) => protocol)).toEqual([
      "openai-chat",
      "openai-responses",
      "openai-responses",
    ]);
    expect(server.requests[1]?.tools).toContain("ls");
    expect(notices(events)).toHaveLength(1);
    const model = await load({ lessons: new Lessons(file) });
    const ls = tool(() => "a", { name: "ls", description: "Lists.", schema: z.object({ path: z.string() }) });
    const bound = model.bindTools?.([ls]);
    expect(await bound?.invoke("go")).toMatchObject({ tool_calls: [{ name: "ls", args: { path: "/" } }] });
    expect(server.requests.slice(3).map(({ protocol }) => protocol)).toEqual(["openai-responses"]);
  });

  test("and fails there too is asked by chat completions the next time", async () => {
    const file = lessonsFile();
    let isUp = false;
    const { server, run, load } = await setUp(
      "openai:o-house",
      (request) =>
        request.protocol === "openai-chat" && isUp
          ? usual(request)
          : refusal(request.protocol === "openai-chat" ? text : "Not here.", 404),
      { lessons: new Lessons(file) },
    );
    await expect(run()).rejects.toThrow();
    expect(new Lessons(file).of({ place: `${new URL(server.url).host}/v1`, model: "o-house" })).toEqual({
      rules: {},
    });
    isUp = true;
    expect((await run()).at(-1)).toMatchObject({ kind: "finished", answer: "done" });
    expect((await run({ model: await load() })).at(-1)).toMatchObject({ kind: "finished", answer: "done" });
  });
});

test("a lesson is not kept when the repeated request fails, too", async () => {
  const file = lessonsFile();
  const { server, run, model } = await setUp(
    "openai:house-model",
    ({ body }) =>
      refusal("stream_options" in body ? "Unknown parameter: 'stream_options'" : "Something is wrong."),
    { lessons: new Lessons(file) },
  );
  await expect(run()).rejects.toThrow("Something is wrong.");
  expect(server.requests).toHaveLength(2);
  expect(findExchange(model)?.rules).toEqual({});
  expect(new Lessons(file).of({ place: `${new URL(server.url).host}/v1`, model: "house-model" })).toEqual({
    rules: {},
  });
});

const data = (value: Json): string => `event: ${String(value["type"])}\ndata: ${JSON.stringify(value)}\n\n`;

test("tokens that Anthropic's protocol reports at the end only are counted", async () => {
  const start = {
    type: "message",
    role: "assistant",
    content: [],
    usage: { input_tokens: 0, output_tokens: 0 },
  };
  const { url } = await streamingProvider(() =>
    [
      data({ type: "message_start", message: { id: "m", model: "glm", ...start } }),
      data({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
      data({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "done" } }),
      data({ type: "content_block_stop", index: 0 }),
      data({
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { input_tokens: 1234, output_tokens: 7 },
      }),
      data({ type: "message_stop" }),
    ].join(""),
  );
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "k" };
  const { model } = await resolveModel({ model: "anthropic:glm-4.6", env });
  const events = await collect(buildAgent({ model, checkpointer: new MemorySaver() }), TASK);
  expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "done" });
  expect(events).toContainEqual(
    expect.objectContaining({
      kind: "model_called",
      usage: expect.objectContaining({ inputTokens: 1234, outputTokens: 7 }),
    }),
  );
  expect(notices(events)).toEqual([]);
});

describe("a server that reports no tokens", () => {
  const reply = (request: WireRequest): WireReply =>
    "stream_options" in request.body ? refusal("stream_options is not supported") : usual(request);

  test("has them estimated, and that is told once", async () => {
    const { run } = await setUp("openai:house-model", reply);
    const events = await run();
    const used = events.flatMap((event) => (event.kind === "model_called" ? [event.usage] : []));
    expect(used).toHaveLength(2);
    for (const usage of used) {
      // The prompt and 18 tools.
      expect(usage.inputTokens).toBeGreaterThan(1000);
      expect(usage.outputTokens).toBeGreaterThan(0);
    }
    const told = (all: AgentEvent[]) => notices(all).filter((notice) => notice.includes("reports no tokens"));
    expect(told(events)).toHaveLength(1);
    expect(told(await run())).toEqual([]);
  });

  test("does not outrun a limit", async () => {
    let number = 0;
    const { run, server } = await setUp("openai:house-model", (request) =>
      "stream_options" in request.body
        ? refusal("stream_options is not supported")
        : { toolCalls: [{ id: `call_${(number += 1)}`, name: "ls", args: { path: "/" } }] },
    );
    const events = await run({ limits: { tokens: 15_000 } }).catch((error: unknown) => String(error));
    expect(server.requests.length).toBeLessThan(12);
    expect(JSON.stringify(events)).toMatch(/token/);
  });
});
