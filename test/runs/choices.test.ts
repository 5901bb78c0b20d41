import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type RunLimits, type StartChoices, choiceProblem, lowerLimits } from "../../src/runs/choices.ts";
import { readChoices } from "../../src/server/page/start-form.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { mine, databaseFile, openServer, reach, startRun } from "./support.ts";

const OFFERED: StartChoices = {
  models: [
    { spec: "a:main", price: { input: 3, output: 15 } },
    { spec: "b:small", price: { input: 1, output: 5 } },
    { spec: "c:unpriced" },
    { spec: "d:keyless", problem: "Model 'd:keyless' needs D_API_KEY." },
  ],
  limits: { costUsd: 5, tokens: 2_000_000 },
};

test.each([
  [{}, undefined],
  [{ model: "b:small", limits: { costUsd: 5, toolCalls: 9 } }, undefined],
  [{ model: "e:other" }, /does not allow the model 'e:other'\. Choose a:main or b:small or c:unpriced/],
  [{ model: "d:keyless" }, /needs D_API_KEY/],
  [{ limits: { costUsd: 5.01 } }, /costUsd is 5\.01, and this server allows at most 5/],
  [{ limits: { tokens: 0.5 } }, /limit tokens is not valid/],
  [{ limits: { tokens: -1 } }, /limit tokens is not valid/],
  [{ limits: { steps: 3 } as RunLimits }, /not valid/],
  // Its server has a limit of cost, which could not be kept.
  [{ model: "c:unpriced" }, /price of c:unpriced is not known/],
])("%j is taken or refused with what to do", (choices, problem) => {
  const found = choiceProblem(choices, OFFERED);
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found?.message).toMatch(problem);
});

test("no limit of a run is above that of its server", () => {
  const limits = fc.record(
    { costUsd: fc.double({ min: 0.01, noNaN: true }), tokens: fc.nat() },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(limits, limits, (server, own) => {
      const lower = lowerLimits(server, own);
      expect(lower.costUsd ?? Infinity).toBe(Math.min(server.costUsd ?? Infinity, own.costUsd ?? Infinity));
      expect(lower.tokens ?? Infinity).toBe(Math.min(server.tokens ?? Infinity, own.tokens ?? Infinity));
    }),
  );
});

test.each([
  ["", {}],
  ["model=b:small&cost=1", { model: "b:small", limits: { costUsd: 1 } }],
  ["cost=other&costOther=$ 2,5", { limits: { costUsd: 2.5 } }],
  ["costOther=7", {}],
  ["tokens=1 200,000&minutes=3", { limits: { tokens: 1_200_000, workTime: 180 } }],
  ["cost=other&costOther=1,000", undefined],
  ["cost=other&costOther=-1", undefined],
  ["cost=other", undefined],
  ["cost=1e3", undefined],
  ["tokens=0", undefined],
  ["toolCalls=0x10", undefined],
])("the form %j is read as the person meant it", (form, choices) => {
  const read = readChoices(new URLSearchParams(form));
  expect(read.ok ? read.choices : undefined).toEqual(choices);
});

test("a run keeps what was chosen for it, also for the server that takes it up after a crash", async () => {
  const file = databaseFile();
  const seen: unknown[] = [];
  const agent = ({ model, limits }: { model?: string; limits?: RunLimits }) => {
    seen.push({ model, limits });
    return { model: scriptedModel(() => ({ text: "done" })) };
  };
  const choices = { model: "b:small", limits: { costUsd: 1 } };
  const offers = { choices: () => OFFERED };
  const first = openServer(file, agent, { ...offers, concurrentRuns: 0 });
  const { id } = await startRun(first.service, "look", choices);
  expect(await mine(first.service).control.start({ task: "x", model: "e:other" })).toMatchObject({
    ok: false,
    code: "model_not_allowed",
  });
  expect(await mine(first.service).read.list({ limit: 9 })).toHaveLength(1);
  expect(await mine(first.service).agents.readiness()).toMatchObject(OFFERED);
  first.kill();
  const second = openServer(file, agent, offers);
  const { run } = await reach(second.service, id, "completed");
  expect(run).toMatchObject(choices);
  expect(seen).toEqual([choices]);
});
