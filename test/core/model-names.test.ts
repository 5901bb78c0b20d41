import { describe, expect, test } from "vitest";
import { findModel, modelNames } from "../../src/core/model-names.ts";

describe("names of a model", () => {
  test.each([
    ["gpt-4o-2024-08-06", "gpt-4o"],
    ["gpt-5-chat-latest", "gpt-5-chat"],
    ["grok-4-latest", "grok-4"],
    ["gemini-2.5-pro-preview-03-2025", "gemini-2.5-pro"],
    ["models/gemini-2.5-pro", "gemini-2.5-pro"],
    ["mistral-large-2411", "mistral-large"],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"],
    ["eu.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"],
    ["anthropic.claude-3-sonnet-20240229-v1:0:28k", "claude-3-sonnet"],
    [
      "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-sonnet-4-6-v1:0",
      "claude-sonnet-4-6",
    ],
    ["publishers/anthropic/models/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"],
    ["databricks-claude-sonnet-4-5", "claude-sonnet-4-5"],
    ["anthropic--claude-4-sonnet", "claude-4-sonnet"],
    ["anthropic/claude-3.7-sonnet:thinking", "claude-3.7-sonnet"],
    ["deepseek/deepseek-r1-0528:free", "deepseek-r1"],
    ["meta-llama/llama-4-maverick:nitro", "llama-4-maverick"],
    ["x-ai/grok-4:online", "grok-4"],
    ["openai/gpt-5:beta", "gpt-5"],
    ["zai-org/GLM-4.6-FP8", "glm-4.6"],
    ["Qwen/Qwen3-32B-AWQ", "qwen3-32b"],
    ["@cf/openai/gpt-oss-120b", "gpt-oss-120b"],
    ["accounts/fireworks/models/kimi-k2p5", "kimi-k2.5"],
    ["deepseek-v3", "deepseek-v3"],
    ["mimo-v2", "mimo-v2"],
    ["gpt-4.1", "gpt-4.1"],
    ["qwen3:14b", "qwen3:14b"],
    ["claude-sonnet-4-5-turbo", "claude-sonnet-4-5-turbo"],
  ])("%s is %s", (given, name) => {
    expect(modelNames(given).at(-1)).toBe(name);
  });

  test("begin with the most exact one", () => {
    expect(modelNames("openrouter/Qwen/Qwen3-Coder-2507:nitro")).toEqual([
      "qwen/qwen3-coder-2507:nitro",
      "qwen3-coder-2507:nitro",
      "qwen/qwen3-coder-2507",
      "qwen3-coder-2507",
      "qwen/qwen3-coder",
      "qwen3-coder",
    ]);
  });

  test("are few for a long text", () => {
    expect(modelNames("-latest".repeat(100_000)).length).toBeLessThan(50);
  });
});

test("a table's entry with the vendor comes before the one without, and exact names before shorter ones", () => {
  const table = new Map([
    ["model-1-5", "any"],
    ["host/model-1-5", "host"],
    ["model-1-5-0711", "dated"],
  ]);
  expect(findModel(table, "host/model-1.5:nitro")).toBe("host");
  expect(findModel(table, "other/model-1.5")).toBe("any");
  expect(findModel(table, "model-1.5-0711-preview")).toBe("dated");
  expect(findModel(table, "model-1.6")).toBeUndefined();
});
