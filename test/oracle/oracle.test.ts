// @module-tag long
// Thirty tasks are solved over the wire, several times.
import { expect, test } from "vitest";
import { attempt } from "../../evals/attempt.ts";
import { FAULTS, idealModel } from "../../evals/ideal-model.ts";
import { askOf } from "../../evals/task.ts";
import { TASKS } from "../../evals/tasks/tasks.ts";
import { runIdOf, untilStatus } from "../e2e/support.ts";
import { openDeps, openHome, openWorld } from "../support/harness.ts";
import { WIRE_KEY } from "../support/wire-server.ts";

const files = Object.fromEntries(
  TASKS.flatMap(({ name, files = {} }) =>
    Object.entries(files).map(([file, text]) => [`${name}/${file}`, text]),
  ),
);

const isSolved = async (model: string, fault: string): Promise<void> => {
  const home = await openHome({ think: idealModel(FAULTS[fault]), files });
  const OPENAI_BASE_URL = `${home.env["ANTHROPIC_BASE_URL"]}/v1`;
  const env = { ...home.env, DEEPAGENT_MODEL: model, OPENAI_API_KEY: WIRE_KEY, OPENAI_BASE_URL };
  const service = await openDeps({ ...home, env }).runs();
  const tries = await Promise.all(
    TASKS.map(async (task) => ({
      task: task.name,
      ...(await attempt(service.as({ principal: "local" }), task, home.workspace)),
    })),
  );
  expect(TASKS).toHaveLength(30);
  expect(tries.filter(({ problem }) => problem !== undefined)).toEqual([]);
  expect(home.brain.refusals).toEqual([]);
};

const SOLVES = "an ideal model in the place of %s solves all 30 tasks, disturbed by: %s";
test.each([["anthropic:claude-test", "nothing"]])(SOLVES, isSolved);
test.each([
  ["openai:gpt-4.1", "cut"],
  ["anthropic:claude-test", "cut"],
  ["anthropic:claude-test", "end"],
  ["anthropic:claude-test", "refuse"],
  ["anthropic:claude-test", "overloaded"],
])(SOLVES, { tags: "long" }, isSolved);

/** What those tasks come to for which nobody needs to be asked. */
const ANSWERS: Readonly<Record<string, string>> = {
  "three-facts": "The sum is 251.",
  pages: "the key is under the mat",
  trail: "the treasure is tea",
  delegate: "north: snow east: rain south: sun",
  "two-rounds": "Found gold",
  compaction: "The product is 120.",
};

test("a client over stdio is given the answers, with every fourth stream broken", async () => {
  const world = await openWorld("stdio", { think: idealModel(FAULTS["cut"]), files });
  const client = await world.connect("v2-modern");
  const ask = async (name: string): Promise<string> => {
    const asked = TASKS.find((task) => task.name === name)?.asked[0] as string; // none of them begins anew
    const { structured } = await client.call("run_deep_agent", { task: askOf(name, asked) });
    const { answer } = await untilStatus(client, runIdOf({ structured }), "completed");
    return String(answer);
  };
  const names = Object.keys(ANSWERS);
  const answers = await Promise.all(names.map(ask));
  expect(Object.fromEntries(names.map((name, n) => [name, answers[n]]))).toEqual(ANSWERS);
});
