/** Flags of `schedule` with which a person chooses model, limits and goal of its runs. */
import type { FlagValues } from "../config/load.ts";
import { defined } from "../core/defined.ts";
import type { Changes, RunChoices, RunLimits } from "../runs/choices.ts";
import { type Flag, flag, textOf, textsOf } from "./command.ts";

/** The flags of the limits, which the configuration has too. Here they are for the runs of one schedule. */
const LIMITS: readonly (readonly [flag: string, limit: keyof RunLimits, hint: string, help: string])[] = [
  ["limits-cost-usd", "costUsd", "USD", "US dollars at which each of its runs stops."],
  ["limits-tokens", "tokens", "N", "Tokens at which each of its runs stops."],
  ["limits-model-calls", "modelCalls", "N", "Model calls at which each of its runs stops."],
  ["limits-tool-calls", "toolCalls", "N", "Tool calls at which each of its runs stops."],
  ["limits-work-time", "workTime", "SECONDS", "Seconds at work after which each of its runs stops."],
];

export const CHOICE_FLAGS: readonly Flag[] = [
  flag("--model MODEL", "Model of its runs. Default: the server's."),
  ...LIMITS.map(([name, , hint, help]) => flag(`--${name} ${hint}`, help)),
  flag("--goal CRITERION…", "Have a judge check this before each run ends. Repeat it for more criteria."),
  flag(
    "--changes direct|propose",
    "Let its runs work in the folder, or in a copy whose changes you apply. Default: the server's way.",
  ),
];

/** For `edit` alone. */
export const REMOVAL_FLAGS: readonly Flag[] = [
  flag("--no-model", "For edit: use the server's model."),
  flag("--no-limits", "For edit: keep to the server's limits alone."),
  flag("--no-goal", "For edit: without a judge."),
];

const CHANGES: readonly Changes[] = ["direct", "propose"];

/** Reads the choices from flags, besides the limits that a schedule has. Returns the problem with one as text. */
export function choicesIn(flags: FlagValues, { limits: before }: RunChoices = {}): RunChoices | string {
  const { model, goal } = flags;
  const changes = CHANGES.find((way) => way === flags["changes"]);
  if (changes === undefined && flags["changes"] !== undefined)
    return `--changes must be ${CHANGES.join(" or ")}.`;
  const given = LIMITS.filter(([flag]) => flags[flag] !== undefined);
  const limits = Object.fromEntries(
    given.map(([flag, limit]) => [limit, Number(textOf(flags[flag])?.trim() || Number.NaN)]),
  );
  const isGiven = { model: model !== undefined, limits: given.length > 0, goal: goal !== undefined };
  for (const name of ["model", "limits", "goal"] as const) {
    if (isGiven[name] && flags[`no-${name}`] === true)
      return `Give ${name === "limits" ? `--${given[0]?.[0]}` : `--${name}`} or --no-${name}, not both.`;
  }
  return defined({
    model: flags["no-model"] === true ? "" : textOf(model),
    limits: flags["no-limits"] === true ? {} : isGiven.limits ? { ...before, ...limits } : undefined,
    changes,
    goal: flags["no-goal"] === true ? [] : textsOf(goal),
  });
}
