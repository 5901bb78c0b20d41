import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { evaluate } from "../../evals/evaluate.ts";
import { FAULTS, idealModel } from "../../evals/ideal-model.ts";
import { main } from "../../evals/main.ts";
import { differenceOf, Results, tableOf } from "../../evals/results.ts";
import { TASKS } from "../../evals/tasks/tasks.ts";
import { openBrain } from "../support/harness-brain.ts";
import { filesIn } from "../support/files-in.ts";

const NAMES = ["three-facts", "rejected", "delegate"];
const tasks = TASKS.filter(({ name }) => NAMES.includes(name));

/** Runs the command in this process. */
async function command(args: readonly string[], env: Record<string, string> = {}) {
  const printed: string[] = [];
  const noted: string[] = [];
  const code = await main({
    args,
    env,
    print: (text) => printed.push(text),
    note: (text) => noted.push(text),
  });
  return { code, printed: printed.join("\n"), noted: noted.join("\n") };
}

test("the ideal model has the same score undisturbed and under each fault", async () => {
  const scores = await Promise.all(
    [undefined, ...Object.values(FAULTS)].map(async (fault) => {
      // All tasks under all faults are tried in test/oracle.
      const tried = tasks.filter(({ name }) => fault === undefined || name === "delegate");
      const results = await evaluate({ tasks: tried, runs: 1, env: {}, think: () => idealModel(fault) });
      return results.map(({ name, passed, problems }) => ({ name, passed, problems }));
    }),
  );
  const ideal = tasks.map(({ name }) => ({ name, passed: 1, problems: [] }));
  expect(scores).toEqual([
    ideal,
    ...Object.keys(FAULTS).map(() => ideal.filter(({ name }) => name === "delegate")),
  ]);
});

test("a task that fails says what was expected, and the others are tried", async () => {
  const ideal = idealModel();
  const think = () => (thought: Parameters<typeof ideal>[0]) =>
    JSON.stringify(thought.request.messages).includes("[three-facts]")
      ? { text: "No idea." }
      : ideal(thought);
  const results = await evaluate({ tasks, runs: 2, env: {}, think });
  expect(results.map(({ name, passed }) => [name, passed])).toEqual([
    ["three-facts", 0],
    ["rejected", 2],
    ["delegate", 2],
  ]);
  const problem = 'expected an answer with 251, found "No idea."';
  expect(results[0]?.problems).toEqual([problem, problem]);
  const table = tableOf({
    version: "1.2.3",
    commit: "abc",
    model: "m",
    date: "2026-01-02T03:04:05Z",
    tasks: results,
  });
  expect(table).toMatch(/^\| three-facts \| 0\/2 \|/m);
  expect(table).toMatch(/^\| 1\.2\.3 \(abc\), m, 2026-01-02 \| 4\/6 \|/m);
  expect(table).toContain(`- three-facts: ${problem}`);
});

test("a model that cannot be reached fails its tasks, each with a line", async () => {
  const env = {
    DEEPAGENT_MODEL: "anthropic:claude-test",
    ANTHROPIC_API_KEY: "a-key-that-nobody-takes",
    ANTHROPIC_BASE_URL: "not an address",
  };
  const results = await evaluate({ tasks: tasks.slice(0, 2), runs: 1, env });
  for (const { passed, problems } of results) {
    expect(passed).toBe(0);
    expect(problems[0]).toMatch(/^[^\n]+$/);
    expect(problems[0]).not.toContain(env.ANTHROPIC_API_KEY);
  }
});

test("a model of the environment is measured with its price", async () => {
  const brain = await openBrain(idealModel());
  onTestFinished(() => brain.close());
  const { DEEPAGENT_MODEL: _, ...env } = brain.env;
  const model = "anthropic:claude-sonnet-4-5-20250929";
  const { code, printed } = await command(["--tasks", "trail"], { ...env, DEEPAGENT_MODEL: model });
  expect(code).toBe(0);
  expect(printed).toMatch(/^\| trail \| 1\/1 \| 500 \| 105 \| 0 \| \$0\.00\d\d \|/m);
  expect(printed).toContain(`), ${model}, `);
});

test("differences to earlier results are of the tasks in both", () => {
  const task = {
    runs: 2,
    problems: [],
    inputTokens: 1000,
    outputTokens: 50,
    cachedInputTokens: 10,
    seconds: 1.5,
    calls: 2,
  };
  const facts = { version: "1.0.0", model: "m", date: "2026-01-01T00:00:00Z" };
  const before = {
    ...facts,
    commit: "old",
    tasks: [
      { ...task, name: "a", passed: 1, costUsd: 0.02 },
      { ...task, name: "gone", passed: 2, costUsd: 1 },
    ],
  };
  const now = {
    ...facts,
    commit: "new",
    tasks: [
      { ...task, name: "a", passed: 2, costUsd: 0.01, inputTokens: 3500, calls: 1.5 },
      { ...task, name: "new", passed: 2, costUsd: null },
    ],
  };
  expect(differenceOf(now, before).split("\n")).toEqual([
    "Compared with 1.0.0 (old), m, 2026-01-01:",
    "",
    "| task | passed | tokens in | out | cached | cost | seconds | calls |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
    "| a | 1/2 → 2/2 | +2,500 | 0 | 0 | -0.01 | 0 | -0.5 |",
    "| all of these | 1/2 → 2/2 | +2,500 | 0 | 0 | -0.01 | 0 | -0.5 |",
  ]);
});

test("the command prints a table, writes JSON, and compares with an earlier one", { tags: "long" }, () => {
  const file = join(filesIn(), "results.json");
  const run = (...args: string[]): string =>
    execFileSync(process.execPath, ["evals/run.mjs", "--model", "oracle", "--tasks", "trail", ...args], {
      cwd: join(import.meta.dirname, "../.."),
      encoding: "utf8",
      stdio: "pipe",
    });
  expect(run("--json", file)).toMatch(/^\| trail \| 1\/1 \| .* \| 5 \|$/m);
  const results = Results.parse(JSON.parse(readFileSync(file, "utf8")));
  expect(results).toMatchObject({ model: "oracle", tasks: [{ name: "trail", passed: 1, calls: 5 }] });
  expect(run("--fault", "cut", "--compare", file)).toMatch(/^\| all of these \| 1\/1 → 1\/1 \|/m);
});

test.each([
  [[], /^Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a model with --model provider:model/],
  [["--model", "openai:gpt-5.4"], /OPENAI_API_KEY/],
  [
    ["--model", "oracle", "--tasks", "trail,nonsense"],
    /^The task 'nonsense' is not known\. Tasks: three-facts, /,
  ],
  [
    ["--model", "oracle", "--fault", "flood"],
    /^The fault 'flood' is not known\. Choose cut or end or refuse or overloaded\.$/,
  ],
  [["--model", "offline", "--fault", "cut"], /^--fault disturbs the ideal model only/],
  [["--model", "oracle", "--runs", "0"], /^--runs has to be a whole number/],
  [["--model", "oracle", "--compare", "/nothing.json"], /^\/nothing\.json cannot be compared with/],
  [["--modle", "oracle"], /Usage: npm run evals/],
])("with %j nothing is tried, and one sentence says why", async (args, problem) => {
  const { code, printed, noted } = await command(args);
  expect({ code, printed }).toEqual({ code: 2, printed: "" });
  expect(noted).toMatch(problem);
});

test("results that are no longer of this form are not compared with", async () => {
  const file = join(filesIn(), "old.json");
  writeFileSync(file, '{"tasks":[{}]}');
  const { code, noted } = await command(["--model", "oracle", "--compare", file]);
  expect(code).toBe(2);
  expect(noted).toContain("cannot be compared with");
});
