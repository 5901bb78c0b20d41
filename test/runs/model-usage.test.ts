import { expect, test } from "vitest";
import { costText, totalCost } from "../../src/server/views/cost-words.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { databaseFile, openServer, reach, startRun } from "./support.ts";

const tokens = { inputTokens: 1000, outputTokens: 100, cachedInputTokens: 400 };
const prices = { "main-": { input: 2, output: 10, cachedInput: 1 }, "main-large": { input: 4, output: 10 } };

/** A run whose main agent delegates once, with a model for each. */
async function usageOf(mainModel: string, subagentModel: string) {
  const called = (model: string) => ({ usage: tokens, model });
  const main = scriptedModel(({ call }) =>
    call === 0
      ? {
          ...called(mainModel),
          toolCalls: [{ name: "task", args: { description: "look", subagent_type: "helper" } }],
        }
      : { ...called(mainModel), text: "done" },
  );
  const helper = scriptedModel(() => ({ ...called(subagentModel), text: "seen" }));
  const { service } = openServer(databaseFile(), {
    model: main,
    limits: { prices },
    subagents: [{ name: "helper", description: "Helps.", systemPrompt: "You help.", model: helper }],
  });
  const { id } = await startRun(service, "go");
  return (await reach(service, id, "completed")).models;
}

test("tokens and money are counted by model, for the main agent and its subagents", async () => {
  const models = await usageOf("main-small", "main-large-2");
  expect(models).toEqual([
    {
      model: "main-small",
      role: "main",
      calls: 2,
      inputTokens: 2000,
      outputTokens: 200,
      cachedInputTokens: 800,
      costUsd: 2 * 0.0026,
    },
    { model: "main-large-2", role: "subagents", calls: 1, ...tokens, costUsd: 0.005 },
  ]);
  expect(totalCost(models)).toBeCloseTo(0.0102);
});

test("a price that is not known makes the cost unknown, not 0", async () => {
  const models = await usageOf("main-small", "somebody-elses");
  expect(models.map(({ costUsd }) => costUsd)).toEqual([0.0052, undefined]);
  expect(totalCost(models)).toBeUndefined();
});

test.each([
  ["a free model of a gateway", [{ model: "x/y:free", costUsd: 0 }], "$0"],
  ["the model that follows rules", [{ model: "offline", costUsd: 0 }], undefined],
  ["an unknown price", [{ model: "x" }], "cost unknown"],
  ["one of two prices", [{ model: "x" }, { model: "y", costUsd: 0.5 }], "at least $0.50"],
])("people read of %s what it cost", (_what, models, text) => {
  const usage = { role: "main" as const, calls: 1, inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };
  expect(
    costText(
      models.map(({ model, costUsd }: { model: string; costUsd?: number }) => ({
        ...usage,
        model,
        ...(costUsd === undefined ? {} : { costUsd }),
      })),
    ),
  ).toBe(text);
});
