/** Reads a person's choices for a new run. */
import { defined } from "../../core/unknown.ts";
import { type RunChoices, type RunLimits, loweredLimits } from "../../runs/choices.ts";
import type { Run } from "../../runs/run.ts";
import type { Readiness } from "../../runs/service.ts";
import { textOf } from "./responses.ts";

/** Fields with a whole number, and how the page calls them. */
const COUNTS = [
  ["tokens", "tokens"],
  ["modelCalls", "model calls"],
  ["toolCalls", "tool calls"],
] as const;

export function readChoices(form: URLSearchParams) {
  const model = textOf(form, "model");
  const changes = textOf(form, "changes");
  const goal = textOf(form, "goal")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const limits: RunLimits = {};
  const wanted = textOf(form, "cost");
  const cost = wanted === "other" ? textOf(form, "costOther").replace(/^\$\s*/, "") : wanted;
  if (wanted === "other" && cost === "") return wrong("Write the cost at which the run stops, such as 2.50.");
  if (cost !== "") {
    // A comma is read as a point only where it cannot stand between thousands.
    const usd = /^\d{1,9}(?:\.\d{1,6}|,\d{1,2})?$/.test(cost) ? Number(cost.replace(",", ".")) : 0;
    if (usd === 0) return wrong("The cost has to be an amount of US dollars above zero, such as 2.50.");
    limits.costUsd = usd;
  }
  for (const [name, word] of COUNTS) {
    const count = textOf(form, name).replaceAll(/[\s,]/g, "");
    if (count === "") continue;
    if (!/^\d{1,12}$/.test(count) || Number(count) === 0)
      return wrong(`The limit of ${word} has to be a whole number above zero.`);
    limits[name] = Number(count);
  }
  const minutes = textOf(form, "minutes").replaceAll(/[\s,]/g, "");
  const seconds = /^\d{1,9}(?:\.\d{1,6})?$/.test(minutes) ? Math.round(Number(minutes) * 60) : 0;
  if (seconds > 0) limits.workTime = seconds;
  else if (minutes !== "") return wrong("The limit of minutes of work has to be a number above zero.");
  const choices: RunChoices = {
    ...(model === "" ? {} : { model }),
    ...(changes === "direct" || changes === "propose" ? { changes } : {}),
    ...(goal.length === 0 ? {} : { goal }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
  };
  return { ok: true, choices } as const;
}

export function fieldsOf({ model, limits = {}, goal, changes }: RunChoices): URLSearchParams {
  const { costUsd, workTime } = limits;
  const minutes = workTime === undefined ? undefined : Number((workTime / 60).toFixed(6));
  const counts = Object.fromEntries(COUNTS.map(([name]) => [name, limits[name]]));
  const cost = costUsd === undefined ? {} : { cost: "other", costOther: String(costUsd) };
  const given = { model, changes, goal: goal?.join("\n"), ...counts, minutes, ...cost };
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(defined(given))) fields.set(name, String(value));
  return fields;
}

const wrong = (message: string) => ({ ok: false, code: "limit_not_allowed", message }) as const;

/** The choices of an earlier run, for one that continues it, as far as the server still allows them. */
export function choicesOf(
  { model, limits, changes }: Pick<Run, "model" | "limits" | "changes">,
  { models = [], limits: most = {}, noProposals }: Readiness,
): RunChoices {
  const isUsable = models.some(({ spec, problem }) => spec === model && problem === undefined);
  return {
    ...(model !== undefined && isUsable ? { model } : {}),
    ...(changes === undefined || noProposals !== undefined ? {} : { changes }),
    ...(limits === undefined ? {} : { limits: loweredLimits(limits, most) }),
  };
}
