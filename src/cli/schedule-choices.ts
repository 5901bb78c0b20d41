/** Flags of `schedule` with which a person chooses model, limits and goal of its runs. */
import type { FlagValues } from "../config/load.ts";
import { defined } from "../core/defined.ts";
import type { Changes, RunChoices, RunLimits } from "../runs/choices.ts";
import { textOf, textsOf } from "./command.ts";

/** Flags of the limits, which the configuration has too. Here they are for the runs of one schedule. */
const LIMITS: readonly (readonly [flag: string, limit: keyof RunLimits])[] = [
  ["limits-cost-usd", "costUsd"],
  ["limits-tokens", "tokens"],
  ["limits-model-calls", "modelCalls"],
  ["limits-tool-calls", "toolCalls"],
  ["limits-work-time", "workTime"],
];

export const CHOICE_FLAGS: readonly string[] = ["model", ...LIMITS.map(([name]) => name), "goal", "changes"];

const CHANGES: readonly Changes[] = ["direct", "propose"];

/** Reads the choices from flags, besides the limits that a schedule has. Returns the problem with one as text. */
export function readChoices(flags: FlagValues, { limits: before }: RunChoices = {}): RunChoices | string {
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
