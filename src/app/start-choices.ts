/** The models and limits that a start may choose for its run, as the operator allows them. */
import type { ModelChoice } from "../agent/models/choose.ts";
import { modelPrice } from "../agent/budget/prices.ts";
import type { Config } from "../config/schema.ts";
import { defined } from "../core/unknown.ts";
import { type OfferedModel, type RunLimits, type StartChoices, lowerLimits } from "../runs/choices.ts";
import type { Run } from "../runs/run.ts";
import { usableModel } from "./models.ts";
import type { RunSettings } from "./settings.ts";

/** `main`: the model of runs that choose none. */
export function startChoices(
  { config, env, lendable = false }: Pick<RunSettings, "config" | "env" | "lendable">,
  main: ModelChoice,
): StartChoices {
  const { costUsd, tokens, modelCalls, toolCalls, workTime, prices } = config.limits;
  const wanted = [
    main,
    ...config.allowedModels.map((model) => usableModel(model, { config, env, lendable })),
  ];
  const models = new Map<string, OfferedModel>();
  for (const [index, choice] of wanted.entries()) {
    const spec = choice.ok ? choice.spec : (config.allowedModels[index - 1] ?? "");
    const price = choice.ok ? modelPrice(choice.name, prices) : undefined;
    if (spec !== "" && !models.has(spec))
      models.set(spec, { spec, ...defined({ price, problem: choice.ok ? undefined : choice.message }) });
  }
  const noProposals =
    "There is no workspace whose changes a run could propose. Set `workspace`, or leave `changes` out here and in the configuration.";
  return {
    models: [...models.values()],
    changes: config.changes,
    ...(config.workspace === undefined ? { noProposals } : {}),
    limits: lowerLimits(defined({ costUsd, tokens, modelCalls, toolCalls, workTime })),
  };
}

/**
 * The model that was chosen for a run. `notice`: the operator no longer allows it, or it cannot be used here, so the
 * run works with the main model.
 */
export function chosenModel(
  { model }: Pick<Run, "model">,
  { models }: StartChoices,
): { spec?: string; notice?: string } {
  if (model === undefined) return {};
  const found = models.find(({ spec }) => spec === model);
  if (found !== undefined && found.problem === undefined) return { spec: model };
  const why = found?.problem ?? `This server does not allow the model ${model} any more.`;
  return { notice: `${why} It was chosen for this run, which now works with the main model.` };
}

export const withLimits = (config: Config, own: RunLimits | undefined): Config => ({
  ...config,
  limits: { ...config.limits, ...lowerLimits(config.limits, own) },
});
