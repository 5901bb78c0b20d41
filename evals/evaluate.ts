import { knownCost } from "../src/server/views/cost-words.ts";
import type { RunView } from "../src/runs/run.ts";
import { makeFolders, openParts } from "../test/support/folders.ts";
import { openBrain, type Think } from "../test/support/harness-brain.ts";
import { attempt } from "./attempt.ts";
import type { Figures, TaskResult } from "./results.ts";
import type { EvalTask } from "./task.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Evaluation {
  tasks: readonly EvalTask[];
  /** Number of times that each task is tried. */
  runs: number;
  /** Settings and keys, as the product's environment variables. */
  env: Environment;
  /** Makes the model on this machine that a try uses. Default: the one that `env` names. */
  think?: () => Think;
  /** Is called after each task. */
  done?: (result: TaskResult) => void;
}

/** Tries each task by itself, one after the other. A task that fails does not end the others. */
export async function evaluate({ tasks, runs, env, think, done }: Evaluation): Promise<TaskResult[]> {
  // What the first run would load does not count in the time of its task.
  await Promise.all([import("../src/app/open-runs.ts"), import("../src/app/agents.ts")]);
  const results: TaskResult[] = [];
  for (const task of tasks) {
    const tries: Try[] = [];
    for (let run = 0; run < runs; run += 1) tries.push(await tryTask(task, env, think?.()));
    const problems = tries.flatMap(({ problem }) => problem ?? []);
    const result = { name: task.name, runs, passed: runs - problems.length, problems, ...meanOf(tries) };
    results.push(result);
    done?.(result);
  }
  return results;
}

interface Try extends Figures {
  problem?: string;
}

/** Tries a task in a workspace and a data directory of its own. Never rejects. */
async function tryTask(task: EvalTask, env: Environment, think: Think | undefined): Promise<Try> {
  const files = Object.entries(task.files ?? {}).map(([file, text]) => [`${task.name}/${file}`, text]);
  const folders = makeFolders(Object.fromEntries(files));
  const brain = think && (await openBrain(think));
  const start = performance.now();
  try {
    const parts = openParts({ ...env, ...folders.env, ...brain?.env });
    try {
      const runs = (await parts.deps.runs()).as({ principal: "local" });
      const { problem, views } = await attempt(runs, task, folders.workspace);
      return { ...figuresOf(views, start), ...(problem === undefined ? {} : { problem }) };
    } finally {
      await parts.close();
    }
  } catch (error) {
    return { ...figuresOf([], start), problem: error instanceof Error ? error.message : String(error) };
  } finally {
    await brain?.close();
    folders.remove();
  }
}

/** Sums up what runs used. The time begins at `start`, of the clock that counts up. */
function figuresOf(views: readonly RunView[], start: number): Figures {
  const models = views.flatMap((view) => view.models);
  const sum = (key: "calls" | "inputTokens" | "outputTokens" | "cachedInputTokens"): number =>
    models.reduce((total, model) => total + model[key], 0);
  const { usd, isWhole } = knownCost(models);
  return {
    inputTokens: sum("inputTokens"),
    outputTokens: sum("outputTokens"),
    cachedInputTokens: sum("cachedInputTokens"),
    costUsd: isWhole ? usd : null,
    seconds: (performance.now() - start) / 1000,
    calls: sum("calls"),
  };
}

/** Figures of the mean try. */
function meanOf(tries: readonly Figures[]): Figures {
  const mean = (key: keyof Figures): number =>
    tries.reduce((total, one) => total + (one[key] ?? 0), 0) / tries.length;
  return {
    inputTokens: mean("inputTokens"),
    outputTokens: mean("outputTokens"),
    cachedInputTokens: mean("cachedInputTokens"),
    costUsd: tries.some(({ costUsd }) => costUsd === null) ? null : mean("costUsd"),
    seconds: mean("seconds"),
    calls: mean("calls"),
  };
}
