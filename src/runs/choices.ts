/** Choices for one run: a model that the operator allows, and limits below those of the server. */
import { z } from "zod";
import { criteriaProblem } from "../core/criteria.ts";
import { shownName, wellFormed } from "../core/text.ts";

const amount = z.number().positive();
const count = z.int().positive();

/** Limits of one run. An absent one is that of the server. */
export const RunLimits = z.strictObject({
  /** US dollars. */
  costUsd: amount.optional(),
  tokens: count.optional(),
  modelCalls: count.optional(),
  toolCalls: count.optional(),
  /** Seconds at work. */
  workTime: amount.optional(),
});
export type RunLimits = z.output<typeof RunLimits>;
const NAMES = RunLimits.keyof().options;

export interface RunChoices {
  /** A model of `StartChoices`. Default: that of the server. */
  model?: string;
  limits?: RunLimits;
  /** Criteria that a judge checks before the run ends. */
  goal?: readonly string[];
  /** `propose`: it works on a copy of the workspace, and a person applies what of it they want. Default: that of the server. */
  changes?: Changes;
}

/** Mode in which a run changes the workspace. */
export type Changes = "direct" | "propose";

export interface OfferedModel {
  /** `provider:model`, `offline` or `client`. */
  spec: string;
  /** The reason why it cannot be used now, with what to do. */
  problem?: string;
  /** US dollars per million tokens. Absent: it is not known. */
  price?: { input: number; output: number };
}

/**
 * The choices of a request. A caller may add supervision and never removes it, so `direct` counts only if the operator
 * chose it: a person on the page of this machine or in its terminal.
 */
export function supervised<Request extends { changes?: Changes | ""; isOperators?: true }>(
  request: Request,
): Request {
  if (request.isOperators || request.changes !== "direct") return request;
  const { changes: _direct, ...others } = request;
  return others as Request; // `changes` is optional
}

export interface StartChoices {
  /** The model of runs that choose none comes first; none if there is no such model. */
  models: readonly OfferedModel[];
  limits: RunLimits;
  /** Change mode of runs that choose none. Default: direct. */
  changes?: Changes;
  /** The reason why no run can propose changes. */
  noProposals?: string;
  /** Paths of the folders that runs may work in, if there are more than one. */
  folders?: readonly string[];
}

export interface ChoiceProblem {
  code: "model_not_allowed" | "limit_not_allowed" | "invalid_goal" | "cannot_propose";
  message: string;
  /** Reason why a schedule with these choices skips its runs. Absent: the problem may pass, as a missing key does. */
  skip?: "model_not_allowed" | "price_unknown";
}

/** Returns why a run cannot start with these choices, or undefined if it can. */
export function choiceProblem(
  { model, limits, goal, changes }: RunChoices,
  offered: StartChoices,
): ChoiceProblem | undefined {
  if ((changes ?? offered.changes) === "propose" && offered.noProposals !== undefined)
    return { code: "cannot_propose", message: offered.noProposals };
  const wrong = goal && criteriaProblem(goal);
  if (wrong !== undefined) return { code: "invalid_goal", message: wrong };
  const chosen = offered.models.find(({ spec }) => model === undefined || spec === model);
  if (model !== undefined && chosen?.problem !== undefined)
    return { code: "model_not_allowed", message: chosen.problem };
  if (model !== undefined && chosen === undefined) {
    const code = "model_not_allowed";
    const others = offered.models.filter(({ problem }) => problem === undefined).map(({ spec }) => spec);
    const choose = others.length === 0 ? "" : ` Choose ${others.join(" or ")}, or leave the model out.`;
    return {
      code,
      message: `This server does not allow the model '${shownName(model)}'.${choose} "allowedModels" in its configuration lists more.`,
      skip: code,
    };
  }
  const problem = limits === undefined ? undefined : limitsProblem(limits, offered.limits);
  if (problem !== undefined) return { code: "limit_not_allowed", message: problem };
  const isOwn = model !== undefined || limits?.costUsd !== undefined;
  const { costUsd } = lowerLimits(offered.limits, limits);
  return isOwn && costUsd !== undefined && chosen !== undefined && chosen.price === undefined
    ? {
        code: "limit_not_allowed",
        message: `The price of ${shownName(chosen.spec)} is not known, so a cost limit cannot be kept. Choose another model or a limit of tokens, or set the price in limits.prices of the server's configuration.`,
        skip: "price_unknown",
      }
    : undefined;
}

function limitsProblem(limits: RunLimits, most: RunLimits): string | undefined {
  const parsed = RunLimits.safeParse(limits);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const name = shownName([...(issue?.path ?? [])].map(String).join(".") || "limits");
    return `The limit ${name} is not valid: ${issue?.message ?? "unknown"}.`;
  }
  const above = NAMES.find((name) => (limits[name] ?? 0) > (most[name] ?? Infinity));
  return above === undefined
    ? undefined
    : `The limit ${above} is ${limits[above]}, and this server allows at most ${most[above]}.`;
}

/** Trims the criteria to the form in which they are read back. */
export const storableGoal = (goal: readonly string[]): string[] =>
  goal.map((criterion) => wellFormed(criterion.trim()));

/** The limits that were chosen, none of them above the server's. */
export const loweredLimits = (own: RunLimits, most: RunLimits): RunLimits =>
  Object.fromEntries(Object.entries(lowerLimits(most, own)).filter(([name]) => Object.hasOwn(own, name)));

/** The lower one of each limit, so that a run never has more than its server allows. */
export function lowerLimits(server: RunLimits, own: RunLimits = {}): RunLimits {
  const limits = NAMES.map((name) => [name, Math.min(server[name] ?? Infinity, own[name] ?? Infinity)]);
  return Object.fromEntries(limits.filter(([, limit]) => limit !== Infinity));
}
