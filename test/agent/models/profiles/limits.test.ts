import { describe, expect, test } from "vitest";
import { z } from "zod";
import limits from "../../../../src/agent/models/profiles/limits.json" with { type: "json" };
import { buildProfile } from "../../../../src/agent/models/profiles/profile.ts";
import { profileTable } from "../../../../src/agent/models/profiles/schema.ts";
import profiles from "../../../../src/agent/models/profiles/profiles.json" with { type: "json" };
import { knownWindow } from "../../../../src/agent/models/profiles/profile.ts";

describe("windows and output limits", () => {
  test.each([
    ["claude-sonnet-4-5", 200_000, 64_000],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 64_000],
    ["claude-opus-4-1-20250805", 200_000, 32_000],
    ["claude-opus-4-6", 1_000_000, 128_000],
    ["claude-haiku-5-5", 1_000_000, 128_000],
    ["claude-3-haiku-20240307", 200_000, 4096],
    ["gpt-5", 272_000, 128_000],
    ["gpt-5-mini-2025-08-07", 272_000, 128_000],
    ["openai/gpt-5.2", 272_000, 128_000],
    ["gpt-5.3-codex", 272_000, 128_000],
    ["gpt-5.1-chat-latest", 128_000, 16_384],
    ["gpt-5.4", 922_000, 128_000],
    ["gpt-6-sol", 922_000, 128_000],
    ["gemini-4-neon", 1_048_000, 65_000],
    ["moonshotai/kimi-k3", 1_048_576, 262_000],
    ["grok-4-0709", 256_000, 30_000],
    ["grok-4.5", 500_000, 30_000],
    ["z-ai/glm-5.2:free", 1_000_000, 131_000],
    ["zai-org/GLM-4.5-Air-FP8", 131_072, 98_304],
    ["sonar-pro", 200_000, undefined],
    ["qwen3-8b", 131_000, 8192],
    ["a-model-nobody-knows", undefined, undefined],
  ])("%s reads %s tokens and writes %s", (model, window, output) => {
    const profile = buildProfile(model, { provider: "openai" });
    expect(knownWindow(profile)).toBe(window);
    expect(profile.output).toBe(output);
  });

  test.each([
    ["qwen3-coder-plus", 32_000],
    ["a-model-nobody-knows", 32_000],
    ["grok-4.5", 500_000],
  ])("%s has a window of %s at a server of one's own", (model, window) => {
    const profile = buildProfile(model, { provider: "openai", address: "http://127.0.0.1:8000/v1" });
    expect(knownWindow(profile)).toBe(window);
  });

  test("come from a table with a date and a source, which only has what differs from the family", () => {
    const entry = z.strictObject({ window: z.int().positive(), output: z.int().positive() }).partial();
    z.strictObject({
      date: z.iso.date(),
      source: z.string().startsWith("https://models.dev"),
      unit: z.literal("tokens"),
      models: z.record(z.string().regex(/^[a-z][a-z0-9-]*$/), entry),
    }).parse(limits);
    for (const [name, given] of Object.entries(limits.models)) {
      const { family } = buildProfile(name);
      expect({ name, ...given }).not.toMatchObject({ window: family?.window });
      expect({ name, ...given }).not.toMatchObject({ output: family?.output });
    }
  });
});

test("the table of providers and families has nothing that its schema does not know", () => {
  expect(profileTable.safeParse(profiles).error?.issues).toBeUndefined();
});
