import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { modelChoice } from "../src/agent/models/choose.ts";
import { packageRoot, packageVersion } from "../src/config/paths.ts";
import { evaluate } from "./evaluate.ts";
import { FAULTS, idealModel } from "./ideal-model.ts";
import { differenceOf, Results, tableOf } from "./results.ts";
import type { EvalTask } from "./task.ts";
import { TASKS } from "./tasks/tasks.ts";

const USAGE =
  "Usage: npm run evals -- --model provider:model|oracle [--tasks name,…] [--runs N] [--fault cut|end|refuse|overloaded] [--json FILE] [--compare FILE]";

const ORACLE = "oracle";

/** Settings that would have runs share folders or storage, or work elsewhere. */
const NOT_TAKEN = /^DEEPAGENT_(?:CONFIG|WORKSPACE|DATA_DIR|STORAGE|MOUNTS|MODEL)/;

interface Host {
  args: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Shows the tables. */
  print(text: string): void;
  /** Shows progress and problems. */
  note(text: string): void;
}

interface Wanted {
  model: string;
  tasks: readonly EvalTask[];
  runs: number;
  fault?: string;
  json?: string;
  before?: Results;
}

/** What cannot be measured, in a sentence for the person. */
class Refusal extends Error {}

/** Measures a model on the tasks. Exit code: 0 if all tries passed, 1 if one failed, 2 if nothing was tried. */
export async function main({ args, env, print, note }: Host): Promise<0 | 1 | 2> {
  try {
    const { model, tasks, runs, fault, json, before } = wantedOf(args, env);
    const taken = Object.entries(env).filter(([name]) => !NOT_TAKEN.test(name));
    const results = await evaluate({
      tasks,
      runs,
      env: model === ORACLE ? {} : { ...Object.fromEntries(taken), DEEPAGENT_MODEL: model },
      ...(model === ORACLE
        ? { think: () => idealModel(fault === undefined ? undefined : FAULTS[fault]) }
        : {}),
      done: ({ name, passed }) => note(`${name}: ${passed}/${runs}`),
    });
    const measured: Results = {
      version: packageVersion(),
      commit: commit(),
      model,
      ...(fault === undefined ? {} : { fault }),
      date: new Date().toISOString(),
      tasks: results,
    };
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(measured, null, 2)}\n`);
    print(tableOf(measured));
    if (before !== undefined) print(`\n${differenceOf(measured, before)}`);
    return results.every((result) => result.passed === result.runs) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    note(error.message);
    return 2;
  }
}

function wantedOf(args: readonly string[], env: Host["env"]): Wanted {
  const { model, tasks, runs = "1", fault, json, compare } = flagsOf(args);
  const count = Number(runs);
  if (!Number.isInteger(count) || count < 1) throw new Refusal(`--runs has to be a whole number above 0.`);
  if (fault !== undefined && !Object.hasOwn(FAULTS, fault)) {
    throw new Refusal(`The fault '${fault}' is not known. Choose ${Object.keys(FAULTS).join(" or ")}.`);
  }
  const wanted = {
    model: chosenModel(model ?? env["DEEPAGENT_MODEL"], env),
    tasks: tasks === undefined ? TASKS : tasks.split(",").map(taskOf),
    runs: count,
    ...(fault === undefined ? {} : { fault }),
    ...(json === undefined ? {} : { json }),
    ...(compare === undefined ? {} : { before: readResults(compare) }),
  };
  if (fault === undefined || wanted.model === ORACLE) return wanted;
  throw new Refusal("--fault disturbs the ideal model only: add --model oracle.");
}

function flagsOf(args: readonly string[]) {
  const text = { type: "string" } as const;
  const options = { model: text, tasks: text, runs: text, fault: text, json: text, compare: text };
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new Refusal(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

function chosenModel(model: string | undefined, env: Host["env"]): string {
  if (model === ORACLE) return model;
  const choice = modelChoice({ model, env });
  if (choice.ok) return choice.spec;
  const missing = choice.code === "model_not_configured" && !model;
  throw new Refusal(
    missing
      ? `Set ${choice.keys?.join(" or ")}, or name a model with --model provider:model; --model oracle needs no key.`
      : choice.message,
  );
}

function taskOf(name: string): EvalTask {
  const task = TASKS.find((one) => one.name === name.trim());
  if (task) return task;
  throw new Refusal(
    `The task '${name.trim()}' is not known. Tasks: ${TASKS.map(({ name }) => name).join(", ")}.`,
  );
}

function readResults(file: string): Results {
  try {
    return Results.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    throw new Refusal(`${file} cannot be compared with: name a file that --json has written.`);
  }
}

function commit(): string {
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: packageRoot(), encoding: "utf8", stdio: "pipe" }).trim();
  try {
    const changed = git("status", "--porcelain", "--untracked-files=no") === "" ? "" : "+";
    return git("rev-parse", "--short", "HEAD") + changed;
  } catch {
    return "no commit";
  }
}
