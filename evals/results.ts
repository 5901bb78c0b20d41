import { z } from "zod";

const Figures = z.object({
  /** With the cached ones. */
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedInputTokens: z.number(),
  /** US dollars; null if the price of any call is not known. */
  costUsd: z.number().nullable(),
  /** From the start of the server to its end. */
  seconds: z.number(),
  /** Model calls. */
  calls: z.number(),
});
/** Usage of the mean try of a task. */
export type Figures = z.output<typeof Figures>;

const TaskResult = Figures.extend({
  name: z.string(),
  runs: z.number(),
  passed: z.number(),
  /** One line for each failed try. */
  problems: z.array(z.string()),
});
export type TaskResult = z.output<typeof TaskResult>;

/** The form of the file of `--json`. */
export const Results = z.object({
  version: z.string(),
  /** Commit of the sources, with `+` if they have been changed since. */
  commit: z.string(),
  model: z.string(),
  /** Fault of the provider, with the ideal model alone. */
  fault: z.string().optional(),
  /** As ISO 8601. */
  date: z.string(),
  tasks: z.array(TaskResult),
});
export type Results = z.output<typeof Results>;

const HEAD =
  "| task | passed | tokens in | out | cached | cost | seconds | calls |\n|---|--:|--:|--:|--:|--:|--:|--:|";

/** Rounds to so many digits, and never to -0. */
const rounded = (value: number, digits: number): number => Number(value.toFixed(digits)) || 0;
const whole = (value: number): string => rounded(value, 0).toLocaleString("en-US");
const dollars = (value: number | null): string => (value === null ? "unknown" : `$${value.toFixed(4)}`);
const oneDigit = (value: number): string => String(rounded(value, 1));
const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

const rowOf = (name: string, result: Omit<TaskResult, "name" | "problems">): string =>
  row([
    name,
    `${result.passed}/${result.runs}`,
    whole(result.inputTokens),
    whole(result.outputTokens),
    whole(result.cachedInputTokens),
    dollars(result.costUsd),
    oneDigit(result.seconds),
    oneDigit(result.calls),
  ]);

/** Names what was measured, and when. */
const titleOf = ({ version, commit, model, fault, date }: Results): string =>
  `${version} (${commit}), ${model}${fault === undefined ? "" : ` with fault ${fault}`}, ${date.slice(0, 10)}`;

function sumOf(tasks: readonly TaskResult[]): Omit<TaskResult, "name" | "problems"> {
  const sum = (key: Exclude<keyof TaskResult, "name" | "problems">): number =>
    tasks.reduce((total, task) => total + (task[key] ?? 0), 0);
  return {
    runs: sum("runs"),
    passed: sum("passed"),
    inputTokens: sum("inputTokens"),
    outputTokens: sum("outputTokens"),
    cachedInputTokens: sum("cachedInputTokens"),
    costUsd: tasks.some(({ costUsd }) => costUsd === null) ? null : sum("costUsd"),
    seconds: sum("seconds"),
    calls: sum("calls"),
  };
}

/** The results as a Markdown table, then a line for each failed try. */
export function tableOf(results: Results): string {
  const { tasks } = results;
  const failures = tasks.flatMap(({ name, problems }) => problems.map((problem) => `- ${name}: ${problem}`));
  const rows = [...tasks.map((task) => rowOf(task.name, task)), rowOf(titleOf(results), sumOf(tasks))];
  return [HEAD, ...rows, ...(failures.length === 0 ? [] : ["", ...failures])].join("\n");
}

const signed = (shown: string): string => (/^-|^0$/.test(shown) ? shown : `+${shown}`);

/** The differences of tasks in both results as a Markdown table: now, less before. */
export function differenceOf(now: Results, before: Results): string {
  const pairs = now.tasks.flatMap((task) => {
    const other = before.tasks.find(({ name }) => name === task.name);
    return other === undefined ? [] : [[task, other] as const];
  });
  const changed = (name: string, one: Omit<TaskResult, "name" | "problems">, other: typeof one): string => {
    const by = (key: "inputTokens" | "outputTokens" | "cachedInputTokens" | "seconds" | "calls"): number =>
      one[key] - other[key];
    const count = (key: Parameters<typeof by>[0], show: (value: number) => string): string =>
      signed(show(by(key)));
    const cost = one.costUsd === null || other.costUsd === null ? null : one.costUsd - other.costUsd;
    return row([
      name,
      `${other.passed}/${other.runs} → ${one.passed}/${one.runs}`,
      count("inputTokens", whole),
      count("outputTokens", whole),
      count("cachedInputTokens", whole),
      cost === null ? "unknown" : signed(String(rounded(cost, 4))),
      count("seconds", oneDigit),
      count("calls", oneDigit),
    ]);
  };
  const all = changed(
    "all of these",
    sumOf(pairs.map(([one]) => one)),
    sumOf(pairs.map(([, other]) => other)),
  );
  const rows = pairs.map(([one, other]) => changed(one.name, one, other));
  return [`Compared with ${titleOf(before)}:`, "", HEAD, ...rows, all].join("\n");
}
