import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { initChatModel } from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { contextWindow, findExchange } from "../../../src/agent/models/exchange.ts";
import { findWrapping, plainModel } from "../../../src/agent/models/plain-model.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { collect } from "../../support/run-agent.ts";
import { record } from "../../support/wire-server-protocol.ts";
import { WIRE_KEY, type WireRequest, type WireServer, wireServer } from "../../support/wire-server.ts";

const TASK = { kind: "task", task: "go" } as const;
const reply = ({ messages }: WireRequest) =>
  messages.some(({ toolResults }) => toolResults.length > 0)
    ? { text: "done" }
    : { toolCalls: [{ id: "call_1", name: "ls", args: { path: "/" } }] };
const other = tool(() => "", { name: "other", description: "Other.", schema: z.object({}) });

const OPENAI = "gpt-4.1";
const CLAUDE = "claude-sonnet-4-5-20250929";
const claude = ({ url }: WireServer) =>
  new ChatAnthropic({
    model: CLAUDE,
    apiKey: WIRE_KEY,
    anthropicApiUrl: url,
    maxRetries: 0,
    temperature: 0.3,
  });
const openai = ({ url }: WireServer) =>
  new ChatOpenAI({
    model: OPENAI,
    apiKey: WIRE_KEY,
    configuration: { baseURL: `${url}/v1` },
    maxRetries: 0,
    temperature: 0.3,
  });
const init = ({ url }: WireServer) =>
  initChatModel(`anthropic:${CLAUDE}`, {
    apiKey: WIRE_KEY,
    anthropicApiUrl: url,
    maxRetries: 0,
    temperature: 0.3,
  });
const initOpenAi = ({ url }: WireServer) =>
  initChatModel(OPENAI, {
    modelProvider: "openai",
    apiKey: WIRE_KEY,
    configuration: { baseURL: `${url}/v1` },
    maxRetries: 0,
    temperature: 0.3,
  });

/** LangChain's wrappers are not of the type that they stand for. */
const asModel = (wrapped: unknown): BaseChatModel => wrapped as BaseChatModel;

interface Row {
  how: string;
  make: (server: WireServer) => unknown;
  window: number;
  stop?: string[];
  tags?: string[];
}

const OPTIONS = { stop: ["END"], tags: ["mine"] };
const ROWS: Row[] = [
  { how: "ChatAnthropic", make: claude, window: 200_000 },
  {
    how: "ChatAnthropic withConfig",
    make: (server) => claude(server).withConfig(OPTIONS),
    window: 200_000,
    ...OPTIONS,
  },
  {
    how: "ChatAnthropic withRetry",
    make: (server) => claude(server).withRetry({ stopAfterAttempt: 2 }),
    window: 200_000,
  },
  {
    how: "ChatAnthropic bindTools",
    make: (server) => claude(server).bindTools([other], { tool_choice: "other" }),
    window: 200_000,
  },
  {
    how: "ChatAnthropic withConfig withRetry",
    make: (server) => claude(server).withConfig(OPTIONS).withRetry(),
    window: 200_000,
    ...OPTIONS,
  },
  { how: "initChatModel", make: init, window: 200_000 },
  {
    how: "initChatModel withConfig",
    make: async (server) => (await init(server)).withConfig(OPTIONS),
    window: 200_000,
    ...OPTIONS,
  },
  {
    how: "initChatModel bindTools withRetry",
    make: async (server) => asModel((await init(server)).bindTools([other])).withRetry(),
    window: 200_000,
  },
  { how: "ChatOpenAI", make: openai, window: 1_047_000 },
  {
    how: "ChatOpenAI withConfig",
    make: (server) => openai(server).withConfig(OPTIONS),
    window: 1_047_000,
    ...OPTIONS,
  },
  {
    how: "ChatOpenAI bindTools",
    make: (server) => openai(server).bindTools([other], { tool_choice: "other" }),
    window: 1_047_000,
  },
  { how: "ChatOpenAI withRetry", make: (server) => openai(server).withRetry(), window: 1_047_000 },
  { how: "initChatModel of OpenAI", make: initOpenAi, window: 1_047_000 },
  {
    how: "initChatModel of OpenAI bindTools",
    make: async (server) => (await initOpenAi(server)).bindTools([other], { tool_choice: "other" }),
    window: 1_047_000,
  },
];

class Tags extends BaseCallbackHandler {
  override readonly name: string = "tags";
  readonly seen: string[][] = [];

  override handleChatModelStart(...call: unknown[]): void {
    this.seen.push(call[5] as string[]); // so LangChain calls it
  }
}

describe.each(ROWS)("a model by $how", ({ make, window, stop, tags = [] }) => {
  test("works in an agent as the plain one", async () => {
    const server = await wireServer(reply);
    const given = asModel(await make(server));
    const agent = createDeepAgent({ model: given, checkpointer: new MemorySaver() });
    const handler = new Tags();
    const { messages } = await agent.invoke(
      { messages: [{ role: "user", content: "go" }] },
      { configurable: { thread_id: "t" }, callbacks: [handler], tags: ["run"] },
    );
    expect(messages.at(-1)?.text).toBe("done");
    expect(server.refusals).toEqual([]);
    expect(server.requests).toHaveLength(2);
    for (const { tools, body, protocol } of server.requests) {
      expect(tools).toContain("ls");
      expect(tools).not.toContain("other");
      expect(body["temperature"]).toBe(0.3);
      expect(body["stop_sequences"] ?? body["stop"]).toEqual(stop);
      expect(["auto", undefined]).toContain(record(body["tool_choice"])["type"]);
      expect(typeof body["tool_choice"] === "string" ? body["tool_choice"] : "auto").toBe("auto");
      if (protocol === "anthropic") expect(JSON.stringify(body["system"])).toContain("cache_control");
    }
    for (const seen of handler.seen) expect(seen).toEqual(expect.arrayContaining([...tags, "run"]));
    const plain = await plainModel(given);
    expect(contextWindow(plain)).toBe(window);
    expect(await plainModel(given)).toBe(plain);
    expect(await plainModel(plain)).toBe(plain);
  });
});

test.each([
  ["ChatAnthropic", claude],
  ["ChatOpenAI", openai],
])("two wrappings of one %s do not mix, nor with the model itself", async (_class, make) => {
  const server = await wireServer(() => ({ text: "done" }));
  const model = make(server);
  const one = asModel(model.withConfig({ stop: ["ONE"] }));
  const two = asModel(model.withConfig({ stop: ["TWO"] }));
  const agents = [one, model, two, one].map((given) =>
    buildAgent({ model: given, checkpointer: new MemorySaver() }),
  );
  for (const agent of agents) await collect(agent, TASK);
  await Promise.all(agents.map((agent) => collect(agent, TASK, { threadId: "u" })));
  const stops = server.requests.map(({ body }) => body["stop_sequences"] ?? body["stop"]);
  expect(stops.slice(0, 4)).toEqual([["ONE"], undefined, ["TWO"], ["ONE"]]);
  const together = stops.slice(4).map((stop) => JSON.stringify(stop) ?? "none");
  expect(together.toSorted()).toEqual(['["ONE"]', '["ONE"]', '["TWO"]', "none"].toSorted());
  expect(findWrapping(model)).toBeUndefined();
});

test("a wrapping with callbacks that point to themselves is taken", async () => {
  const server = await wireServer(() => ({ text: "done" }));
  const handler = new Tags();
  Reflect.set(handler, "self", handler);
  const model = claude(server);
  for (const metadata of [{ a: 1 }, { a: 2 }]) {
    const wrapped = asModel(model.withConfig({ callbacks: [handler], metadata }));
    await collect(buildAgent({ model: wrapped, checkpointer: new MemorySaver() }), TASK);
  }
  expect(handler.seen).toHaveLength(2);
});

test("a model that each run may choose again stays wrapped", async () => {
  const model = await initChatModel(undefined, { configurableFields: ["model", "modelProvider"] }).catch(
    () => undefined,
  );
  const any = await initChatModel(`anthropic:${CLAUDE}`, { apiKey: "k", configurableFields: "any" });
  for (const given of [model, any]) if (given !== undefined) expect(await plainModel(given)).toBe(given);
});

test.each([
  ["anthropic", `anthropic:${CLAUDE}`],
  ["openai", "openai:house-model"],
] as const)("a model of ours that was wrapped keeps its exchange: %s", async (provider, spec) => {
  const server = await wireServer((request) =>
    "stream_options" in request.body
      ? { status: 400, message: "Unknown parameter: 'stream_options'" }
      : reply(request),
  );
  const { model } = await resolveModel({ model: spec, env: server.env(provider) });
  const wrapped = asModel(model.withConfig({ stop: ["END"] }));
  const plain = await plainModel(wrapped);
  expect(findExchange(plain)).toBeDefined();
  expect(findExchange(plain)).toBe(findExchange(model));
  const events = await collect(buildAgent({ model: wrapped, checkpointer: new MemorySaver() }), TASK);
  expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "done" });
  expect(server.requests.at(-1)?.tools).toContain("ls");
});
