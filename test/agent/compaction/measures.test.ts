import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { type AgentEvent, buildAgent } from "../../../src/agent/agent.ts";
import { Measures, inEstimates } from "../../../src/agent/compaction/measures.ts";
import type { ModelRequest } from "../../../src/agent/contracts/middleware.ts";
import { contextWindow, findExchange } from "../../../src/agent/models/exchange.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { collect } from "../../support/run-agent.ts";
import { wireServer } from "../../support/wire-server.ts";

const MESSAGES = [new HumanMessage("Hi.")];
const PICTURE = new HumanMessage({
  content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
});

/** A model of a server of one's own, and requests to it that are measured. */
async function setUp(window = 200_000) {
  const entry = { baseUrl: "http://127.0.0.1:9/v1", model: "house", request: {} };
  const { model } = await resolveModel({ model: "own", env: {}, models: { own: entry } });
  findExchange(model)?.learnWindow(window);
  const measures = new Measures();
  interface Place {
    threadId?: string;
    agent?: string[];
    messages?: BaseMessage[];
  }
  const at = ({ threadId = "t", agent = [], messages = MESSAGES }: Place = {}) => {
    const step = { agent: agent.map((callId) => ({ callId })) };
    // The members that are read.
    return measures.of({ model, messages, runtime: { threadId, step } } as unknown as ModelRequest);
  };
  /** Takes the reply to a request of `size` estimated tokens, for which its server counts `reported`. */
  const take = (size: number, reported: number, place: Place = {}): void => {
    const usage_metadata = { input_tokens: reported, output_tokens: 1, total_tokens: reported + 1 };
    const reply = new AIMessage({ content: "Hi.", usage_metadata });
    expect(at(place).take(reply, size)).toBe(reply);
  };
  return { model, at, take, notices: () => findExchange(model)?.takeNotices() ?? [] };
}

describe("the scale of a conversation", () => {
  test.each([
    ["a language with twice as many tokens", 10_000, 20_000, 2],
    ["as many as estimated", 10_000, 10_000, 1],
    ["fewer than estimated", 10_000, 6000, 1],
    ["a count that cannot be", 10_000, 900_000, 8],
    ["a small request", 7999, 30_000, 1],
    ["no count", 10_000, 0, 1],
  ])("%s", async (_what, size, reported, scale) => {
    const { at, take } = await setUp();
    expect(at().scale).toBe(1);
    take(size, reported);
    expect(at().scale).toBe(scale);
  });

  test("is that of the last large request, and stays with small ones", async () => {
    const { at, take } = await setUp();
    take(10_000, 30_000);
    take(2000, 20_000);
    expect(at().scale).toBe(3);
    take(20_000, 30_000);
    expect(at().scale).toBe(1.5);
  });

  test("is that of one conversation and one of its agents", async () => {
    const { at, take } = await setUp();
    take(10_000, 30_000);
    take(10_000, 20_000, { agent: ["call_1"] });
    take(10_000, 50_000, { threadId: "u" });
    const scales = [{}, { agent: ["call_1"] }, { threadId: "u" }, { agent: ["call_2"] }, { threadId: "v" }];
    expect(scales.map((place) => at(place).scale)).toEqual([3, 2, 5, 1, 1]);
  });

  test("makes limits in tokens smaller, and leaves parts and messages", () => {
    const limits = {
      trigger: [{ tokens: 10_000 }, { fraction: 0.85 }, { messages: 50 }],
      keep: { tokens: 1001 },
      maxInputTokens: 32_000,
    };
    expect(inEstimates(limits, 1)).toBe(limits);
    expect(inEstimates(limits, 2)).toEqual({
      trigger: [{ tokens: 5000 }, { fraction: 0.85 }, { messages: 50 }],
      keep: { tokens: 500 },
      maxInputTokens: 16_000,
    });
    expect(inEstimates({ ...limits, maxInputTokens: undefined }, 2).maxInputTokens).toBeUndefined();
  });
});

describe("a server that drops a part of a request without a word", () => {
  test("is found when the count stands still, once", async () => {
    const { model, take, notices } = await setUp();
    take(3000, 3100);
    take(5000, 4096);
    expect(contextWindow(model)).toBe(200_000);
    take(8000, 4090);
    expect(contextWindow(model)).toBe(4090);
    take(11_000, 4096);
    take(14_000, 4081);
    expect(contextWindow(model)).toBe(4090);
    expect(notices()).toEqual([expect.stringContaining("reads about 4090 tokens")]);
  });

  test("is found when it drops whole messages, so that the count goes up and down", async () => {
    const { model, take, notices } = await setUp();
    take(5000, 5100);
    take(9000, 8000);
    take(12_000, 6300);
    expect(contextWindow(model)).toBe(200_000);
    take(16_000, 7400);
    expect(contextWindow(model)).toBe(8000);
    expect(notices()).toEqual([expect.stringContaining("reads about 8000 tokens")]);
  });

  test.each<[string, Array<[size: number, reported: number]>]>([
    [
      "is large, and grows by a small part",
      [
        [250_000, 240_000],
        [252_100, 241_900],
        [254_200, 243_800],
      ],
    ],
    [
      "is that of the part that was not in a cache",
      [
        [30_000, 29_000],
        [34_000, 4500],
        [38_000, 4510],
        [46_000, 9000],
      ],
    ],
    [
      "grows as it should",
      [
        [5000, 5000],
        [8000, 8000],
        [11_000, 11_000],
      ],
    ],
    [
      "has shrunk after a summary",
      [
        [20_000, 20_000],
        [5000, 5000],
        [8000, 8000],
      ],
    ],
    [
      "has hardly grown",
      [
        [20_000, 16_000],
        [21_000, 16_010],
      ],
    ],
    [
      "counts more than estimated",
      [
        [5000, 9000],
        [8000, 9010],
      ],
    ],
    [
      "counts the new part only",
      [
        [5000, 2100],
        [8000, 2110],
        [11_000, 2105],
      ],
    ],
    [
      "has no count now and then",
      [
        [5000, 5000],
        [8000, 0],
        [11_000, 11_000],
      ],
    ],
  ])("is not one whose count %s", async (_what, requests) => {
    const { model, take, notices } = await setUp();
    for (const [size, reported] of requests) take(size, reported);
    expect(contextWindow(model)).toBe(200_000);
    expect(notices()).toEqual([]);
  });

  test("is not found while there are pictures, whose tokens are a guess", async () => {
    const { model, take } = await setUp();
    const messages = [...MESSAGES, PICTURE];
    take(5000, 5000, { messages });
    take(9000, 5000, { messages });
    expect(contextWindow(model)).toBe(200_000);
  });

  test("is not found where conversations take turns", async () => {
    const { model, take, notices } = await setUp();
    for (const [first, second] of [
      [5000, 8000],
      [5500, 8500],
      [6000, 9000],
    ] as const) {
      take(first, 5000);
      take(second, 5000, { threadId: "u" });
      take(second + 3000, 5000, { agent: [`call_${second}`] });
    }
    expect(contextWindow(model)).toBe(200_000);
    expect(notices()).toEqual([]);
  });

  test("does not change a smaller window, or one that a person set", async () => {
    const small = await setUp(4096);
    small.take(6000, 5000);
    small.take(9000, 5000);
    expect(contextWindow(small.model)).toBe(4096);
    const entry = { baseUrl: "http://127.0.0.1:9/v1", model: "house", window: 50_000 };
    const { model } = await resolveModel({ model: "own", env: {}, models: { own: entry } });
    findExchange(model)?.learnWindow(5000, "notice");
    expect(contextWindow(model)).toBe(50_000);
    expect(findExchange(model)?.takeNotices()).toEqual([]);
  });
});

test.each([
  ["counts four tokens for an estimated one, and is compacted in time", 4, 1],
  ["counts as estimated, and is left alone", 1, 0],
])("a conversation in a language that a server %s", async (_what, factor, compactions) => {
  const server = await wireServer(({ number, body }) => ({
    ...(number < 2
      ? { toolCalls: [{ id: `call_${number}`, name: "ls", args: { path: "/" } }] }
      : { text: "끝" }),
    usage: { inputTokens: Math.round((JSON.stringify(body).length / 4) * factor), outputTokens: 10 },
  }));
  const { model } = await resolveModel({ model: "openai:gpt-4.1", env: server.env("openai") });
  const agent = buildAgent({
    model,
    checkpointer: new MemorySaver(),
    summarization: { trigger: { tokens: 40_000 }, keep: { messages: 2 } },
  });
  const task = `${"abcd ".repeat(16_000)} ?`;
  const events: AgentEvent[] = await collect(agent, { kind: "task", task });
  expect(events.at(-1)).toMatchObject({ kind: "finished" });
  expect(events.filter(({ kind }) => kind === "compacted")).toHaveLength(compactions);
});
