import { AIMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { replyCost } from "../../../src/agent/budget/prices.ts";
import table from "../../../src/agent/budget/prices.json" with { type: "json" };

interface Used {
  input?: number;
  output?: number;
  read?: number;
  written?: number;
}

const reply = (model: string, { input = 1000, output = 100, read = 0, written = 0 }: Used = {}): AIMessage =>
  new AIMessage({
    content: "",
    response_metadata: { model_name: model },
    usage_metadata: {
      input_tokens: input,
      output_tokens: output,
      total_tokens: input + output,
      input_token_details: { cache_read: read, cache_creation: written },
    },
  });

const listed = table.models["claude-sonnet-4-5"];
const million = (amount: number): number => amount / 1_000_000;

describe("list prices", () => {
  test.each([
    ["its own name", "claude-sonnet-4-5"],
    ["its dated name", "claude-sonnet-4-5-20250929"],
    ["capitals", "Claude-Sonnet-4-5"],
    ["OpenRouter", "anthropic/claude-sonnet-4.5"],
    ["Bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"],
    ["a region of Bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"],
    ["Vertex", "publishers/anthropic/models/claude-sonnet-4-5@20250929"],
  ])("are found by %s", (_where, name) => {
    expect(replyCost(reply(name))).toBeCloseTo(million(1000 * listed.input + 100 * listed.output), 9);
  });

  test.each([
    ["gpt-4o-2024-08-06", "gpt-4o"],
    ["models/gemini-2.5-pro", "gemini-2-5-pro"],
    ["grok-4-latest", "grok-4"],
    ["qwen/qwen3-coder:nitro", "qwen/qwen3-coder"],
    ["openrouter/qwen/qwen3-coder", "qwen/qwen3-coder"],
    ["accounts/fireworks/models/deepseek-v3p2", "fireworks/deepseek-v3-2"],
    ["accounts/fireworks/routers/glm-5p1-fast", "fireworks/glm-5-1-fast"],
    ["llama-3.3-70b-versatile", "llama-3-3-70b-versatile"],
    ["meta-llama/Llama-3.3-70B-Instruct-Turbo", "meta-llama/llama-3-3-70b-instruct-turbo"],
    ["zai-org/GLM-5.2-FP8", "glm-5-2"],
  ] as const)("%s costs as %s", (name, key) => {
    const { input, output } = table.models[key];
    expect(replyCost(reply(name))).toBeCloseTo(million(1000 * input + 100 * output), 9);
  });

  test.each([
    ["another model of a family", "claude-sonnet-4-5-turbo"],
    ["a newer version", "gpt-5.4.1"],
    ["a local model", "deepseek-r1:14b"],
    ["an own name", "my-deployment"],
    ["no name", ""],
    ["a name of dates alone", "-2024-08-06-2024-08-06"],
    ["a name of JavaScript", "constructor"],
  ])("are not guessed for %s", (_what, name) => {
    expect(replyCost(reply(name))).toBeUndefined();
  });

  test("count what was read from the cache, and written to it, at their own prices", () => {
    const used = { input: 10_000, output: 0, read: 6000, written: 3000 };
    expect(replyCost(reply("claude-sonnet-4-5", used))).toBeCloseTo(
      million(1000 * listed.input + 6000 * listed.cachedInput + 3000 * listed.cacheWrite),
      9,
    );
  });

  test("are those of long requests above their limit", () => {
    const { tokens, input, output } = listed.above;
    expect(replyCost(reply("claude-sonnet-4-5", { input: tokens }))).toBeCloseTo(
      million(tokens * listed.input + 100 * listed.output),
      9,
    );
    expect(replyCost(reply("claude-sonnet-4-5", { input: tokens + 1 }))).toBeCloseTo(
      million((tokens + 1) * input + 100 * output),
      9,
    );
  });

  test("give way to the operator's, for all of a request", () => {
    const prices = { "claude-sonnet": { input: 1, output: 2 } };
    const used = { input: 300_000, output: 10, read: 1000, written: 1000 };
    expect(replyCost(reply("claude-sonnet-4-5", used), prices)).toBeCloseTo(million(300_000 + 20), 9);
  });

  test.each(["offline", "qwen/qwen3-coder:free", "a/model-nobody-knows:free"])("%s costs nothing", (name) => {
    expect(replyCost(reply(name))).toBe(0);
  });
});

test("the table has a date, its sources, and a price above zero for each model", () => {
  expect(table.date).toMatch(/^\d{4}-\d{2}-\d{2}$/);
  expect(table.source).toContain("genai-prices");
  expect(Object.values(table.pages).every((page) => page.startsWith("https://"))).toBe(true);
  for (const [name, { input, output }] of Object.entries(table.models)) {
    expect(name).toMatch(/^[a-z][\w-]*(?:\/[a-z][\w-]*)?$/);
    expect(input).toBeGreaterThan(0);
    expect(output).toBeGreaterThan(0);
  }
});
