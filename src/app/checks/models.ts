/** Checks models, their keys and prices. */
import { type Environment, CLIENT, OFFLINE, modelChoice, variable } from "../../agent/models/choose.ts";
import { embedderProblem } from "../../agent/models/embeddings.ts";
import { packagesFolder } from "../../agent/models/packages.ts";
import { modelPrice } from "../../agent/budget/prices.ts";
import { commandLine } from "../../config/program.ts";
import { type Config, type ModelSettings, configuredModels } from "../../config/schema.ts";
import { usableModel } from "../models.ts";
import { type Check, type Facts, within } from "./check.ts";

type ModelFacts = Pick<Facts, "env" | "lendable"> & {
  config: ModelSettings & Pick<Config, "dataDir" | "modelParameters">;
};

/** Checks names, variables and packages only. Explains how to keep the key that the model lacks. */
export function checkModel({ host, problem, ...facts }: Facts): Check {
  const name = "Model";
  const choice = usableModel(facts.config.model, facts);
  if (choice.ok) {
    const endpoint = choice.endpoint === undefined ? "" : ` at ${choice.endpoint}`;
    const { assumedWindow: window } = choice;
    const note =
      window === undefined
        ? ""
        : `\nUntil the server reports its context window, requests are kept below ${window.toLocaleString("en")} tokens. To set it: \`window\` of the model in \`models\`.`;
    return { name, ok: true, text: `${choice.spec}${endpoint} (${choice.why})${note}` };
  }
  const [key] = choice.keys ?? [];
  if (key === undefined) return { name, ok: false, text: choice.message };
  const remedy = `To store it in the keychain: ${commandLine(host, ["keys", "set", key])}`;
  return { name, ok: false, text: `${choice.message}\n${problem ?? remedy}` };
}

/** The models besides the main one, each with its purpose. */
export function checkOtherModels(facts: ModelFacts): Check[] {
  const { fallbackModels, allowedModels, judgeModel, subagents } = facts.config;
  const others = [
    ...fallbackModels.map((model) => ({ model, by: "fallback" })),
    ...allowedModels.map((model) => ({ model, by: "allowed for runs and subagent files" })),
    { model: judgeModel, by: "judge of goals" },
    ...subagents.map(({ name, model }) => ({ model, by: `of ${name}` })),
  ];
  return others.flatMap(({ model, by }) => {
    if (model === undefined) return [];
    const choice = usableModel(model, facts);
    const text = choice.ok ? `${choice.spec} (${by})` : `${by}: ${choice.message}`;
    return { name: "Model", ok: choice.ok, text };
  });
}

/** The place of each key that is used: the keychain or the environment. */
export function checkKeys({ config, env, found }: Pick<Facts, "config" | "env" | "found">): Check[] {
  const { embeddings } = config.memories;
  const used = [...configuredModels(config), ...(embeddings === undefined ? [] : [embeddings])];
  const names = used.flatMap((spec) => {
    const choice = modelChoice({ model: spec, env, models: config.models, lendable: true });
    return choice.ok ? choice.keys : [];
  });
  const known = [...new Set(names)].filter((name) => variable(env, name) !== undefined);
  const lines = known.map((name) => `${name}, from the ${found.includes(name) ? "keychain" : "environment"}`);
  return lines.length === 0 ? [] : [{ name: "Keys", ok: true, text: lines.join("\n") }];
}

/** The model that finds memories by meaning, if one is configured. Makes no request. */
export function checkEmbeddings(
  { memories: { embeddings: model } }: Pick<Config, "memories">,
  env: Environment,
): Check[] {
  if (model === undefined) return [];
  const problem = embedderProblem({ model, env });
  const text = problem?.message ?? `${model} (of memories)`;
  return [{ name: "Embeddings", ok: problem === undefined, text }];
}

/** Finds models without a price under a cost limit, which ends a run after its first model call. */
export function checkPrices({
  config,
  env,
  lendable,
}: Pick<Facts, "env" | "lendable"> & {
  config: Pick<Config, "model" | "models" | "fallbackModels" | "judgeModel" | "subagents" | "limits">;
}): Check[] {
  const { costUsd, prices = {} } = config.limits;
  if (costUsd === undefined) return [];
  const specs = configuredModels({ ...config, allowedModels: [] });
  const names = specs.flatMap((model) => {
    const choice = modelChoice({ model, env, models: config.models, lendable });
    return choice.ok ? [choice.name] : [];
  });
  const missing = [...new Set(names)].filter((name) => modelPrice(name, prices) === undefined);
  if (missing.length === 0) return [{ name: "Cost limit", ok: true, text: `$${costUsd} for each run` }];
  const text = `limits.costUsd is set, but the price of ${missing.join(" and ")} is not known, so every run would end after its first model call. Set it in limits.prices of the configuration file, or remove the limit.`;
  return [{ name: "Cost limit", ok: false, text }];
}

/** Asks each model in use for the beginning of an answer, which shows whether key, name and address are right. */
export async function checkAnswers(facts: ModelFacts): Promise<Check[]> {
  const choices = configuredModels(facts.config).flatMap((spec) => {
    const choice = usableModel(spec, facts);
    return choice.ok && choice.provider !== OFFLINE && choice.provider !== CLIENT ? [choice.spec] : [];
  });
  return Promise.all([...new Set(choices)].map((spec) => checkAnswer(spec, facts)));
}

async function checkAnswer(model: string, { config, env }: ModelFacts): Promise<Check> {
  const name = "Provider";
  // Loads LangChain, which the other checks do without.
  const { tryModel } = await import("../../agent/models/resolve.ts");
  const { dataDir, models, modelParameters: parameters } = config;
  const options = { model, env, packages: packagesFolder(dataDir), models, parameters };
  const late = (time: string): string =>
    `The model ${model} did not answer within ${time}. Check the network and the configured endpoint, or leave this check out with --offline.`;
  const problem = await within(8, (signal) => tryModel({ ...options, signal }), late);
  return { name, ok: problem === undefined, text: problem ?? `${model} answered` };
}
