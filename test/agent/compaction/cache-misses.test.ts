import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { collect } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

/** Warnings of a run whose replies report these tokens: of the input, and of those from the cache. */
async function warningsFor(used: ReadonlyArray<readonly [input: number, cached: number, model?: string]>) {
  const model = scriptedModel(({ call }) => {
    const [inputTokens, cachedInputTokens, name = "scripted"] = used[call] ?? [0, 0];
    return {
      ...(call < used.length - 1 ? { toolCalls: [{ name: "ls", args: {} }] } : { text: "end" }),
      usage: { inputTokens, cachedInputTokens, outputTokens: 1 },
      model: name,
    };
  });
  const events = await collect(buildAgent({ model, checkpointer: new MemorySaver() }), {
    kind: "task",
    task: "go",
  });
  return events.flatMap((event) => (event.kind === "warning" ? [event.message] : []));
}

describe("two requests in a row that the provider's cache has nothing of", () => {
  test("are reported once", async () => {
    const warnings = await warningsFor([
      [20_000, 0],
      [21_000, 19_456],
      [22_000, 0],
      [23_000, 0],
      [24_000, 0],
    ]);
    expect(warnings).toEqual([
      expect.stringContaining(
        "The last 2 requests to scripted had no tokens from the provider's cache, although they begin like an earlier one that had 19456.",
      ),
    ]);
  });

  test("are reported where only the beginning of the prompt is left in it", async () => {
    const warnings = await warningsFor([
      [20_000, 0],
      [21_000, 19_456],
      [22_000, 2048],
      [23_000, 2048],
    ]);
    expect(warnings).toEqual([
      expect.stringContaining("had only 2048 tokens from the provider's cache, although they begin like"),
    ]);
  });

  test.each<[string, Parameters<typeof warningsFor>[0]]>([
    [
      "no cache",
      [
        [20_000, 0],
        [21_000, 0],
        [22_000, 0],
        [23_000, 0],
      ],
    ],
    [
      "a single miss",
      [
        [20_000, 0],
        [21_000, 19_456],
        [22_000, 0],
        [23_000, 21_000],
        [24_000, 0],
      ],
    ],
    [
      "few tokens",
      [
        [900, 0],
        [1200, 900],
        [1300, 0],
        [1400, 0],
      ],
    ],
    [
      "a shorter conversation",
      [
        [20_000, 0],
        [21_000, 19_456],
        [5000, 0],
        [6000, 0],
      ],
    ],
    [
      "another model",
      [
        [20_000, 0],
        [21_000, 19_456],
        [22_000, 0, "other"],
        [23_000, 0, "other"],
      ],
    ],
  ])("are not reported for %s", async (_why, used) => {
    expect(await warningsFor(used)).toEqual([]);
  });
});
