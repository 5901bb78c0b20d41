import { join } from "node:path";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { ModelLender } from "../agent/agent.ts";
import { CLIENT, type Environment, type ModelChoice, OFFLINE, modelChoice } from "../agent/models/choose.ts";
import { type NamedModels, fileModel } from "../agent/models/file-model.ts";
import { Lessons } from "../agent/models/profiles/learned.ts";
import { packageProblem, packagesFolder } from "../agent/models/packages.ts";
import type { ModelSource, ResolveOptions } from "../agent/models/resolve.ts";
import type { Config } from "../config/schema.ts";
import { byValue } from "../core/by-identity.ts";
import { memoized } from "../core/concurrency.ts";
import type { Logger } from "../core/logger.ts";

/** Loads models by their specification; without one, the model that the environment chooses. */
export interface ModelSources {
  get(spec: string | undefined): Promise<BaseChatModel>;
}

/** The models of a server: each is resolved when it is first needed, and then shared. */
export class Models {
  readonly #options: Omit<ResolveOptions, "model">;
  readonly #load = byValue((spec: string) =>
    memoized(async () => {
      const { buildLlm } = await import("../agent/agent.ts");
      return buildLlm({ model: spec || undefined, ...this.#options });
    }),
  );

  constructor(
    config: Pick<Config, "limits" | "dataDir" | "models" | "modelParameters">,
    env: Environment,
    log: Logger,
  ) {
    const { limits, dataDir, models, modelParameters: parameters } = config;
    const idleMs = limits.modelSilence * 1000;
    const packages = packagesFolder(dataDir);
    const lessons = new Lessons(join(dataDir, "learned-from-models.jsonl"));
    this.#options = { env, log, idleMs, packages, models, parameters, lessons };
  }

  /** Adds the model that clients lend to one run. */
  lentTo(lender: ModelLender): ModelSources {
    let lent: Promise<BaseChatModel> | undefined;
    return {
      get: (spec) =>
        spec === CLIENT
          ? (lent ??= import("../agent/models/client-model.ts").then(
              ({ ClientModel }) => new ClientModel(lender),
            ))
          : this.get(spec),
    };
  }

  /**
   * Loads a model; without a specification, the one that the environment chooses. After a failure the next call tries
   * again.
   */
  get(spec = ""): Promise<BaseChatModel> {
    return this.#load(spec)();
  }
}

/** Chooses a model whose package is installed, too. */
export function usableModel(
  model: string | undefined,
  given: { config: Pick<Config, "dataDir" | "models">; env: Environment; lendable: boolean },
): ModelChoice {
  const { config, env, lendable } = given;
  const choice = modelChoice({ model, env, models: config.models, lendable });
  if (!choice.ok || choice.provider === OFFLINE || choice.provider === CLIENT) return choice;
  const message = packageProblem(choice.provider, packagesFolder(config.dataDir));
  return message === undefined ? choice : { ok: false, code: "model_package_missing", message };
}

/** Returns why the model of a subagent or of the judge cannot be used, or undefined if all can. */
export function otherModelProblem(
  { judgeModel, models, subagents }: Pick<Config, "judgeModel" | "models" | "subagents">,
  { env, lendable = false }: { env: Environment; lendable?: boolean },
): string | undefined {
  const named = [
    ...subagents.map(({ name, model }) => ({ whose: `Subagent '${name}'`, model })),
    { whose: "The judge of goals", model: judgeModel },
  ];
  for (const { whose, model } of named) {
    const choice = model === undefined ? undefined : modelChoice({ model, env, models, lendable });
    if (choice?.ok === false) return `No run was started. ${whose}: ${choice.message}`;
  }
  return undefined;
}

/** Returns the usable fallback models. Logs the others, because a missing fallback need not stop anything. */
export const usableFallbacks = (
  { fallbackModels, models }: Pick<Config, "fallbackModels" | "models">,
  { env, lendable = false }: { env: Environment; lendable?: boolean },
  log: Logger,
): string[] =>
  fallbackModels.filter((model) => {
    const choice = modelChoice({ model, env, models, lendable });
    if (!choice.ok) log.warn("fallback_model_unusable", { model, reason: choice.message });
    return choice.ok;
  });

/**
 * The models that the operator named, among which subagent files may choose. `chosen`: the one that the run works with
 * in place of the server's.
 */
export const namedModels = (
  { config, env, lendable }: { config: NamingConfig; env: Environment; lendable?: boolean },
  choice: ModelChoice,
  chosen?: string,
): NamedModels => ({
  main: chosen ?? (choice.ok ? choice.spec : undefined),
  others: [
    ...(chosen !== undefined && choice.ok ? [choice.spec] : []),
    ...config.fallbackModels,
    ...config.allowedModels,
    ...config.subagents.flatMap(({ model }) => model ?? []),
  ],
  env,
  models: config.models,
  lendable,
});

type NamingConfig = Pick<Config, "fallbackModels" | "models" | "allowedModels" | "subagents">;

interface DescribedSubagent {
  name: string;
  /** A file of the workspace describes it. */
  isFile?: boolean;
  model?: string | undefined;
  modelAlias?: string | readonly string[] | undefined;
}

/** Lets subagents of files choose among the named models only. `notices`: their other wishes. */
export function withAllowedModels<Subagent extends DescribedSubagent>(
  subagents: readonly Subagent[],
  named: NamedModels,
): { subagents: Array<Omit<Subagent, "modelAlias">>; notices: string[] } {
  const notices: string[] = [];
  const allowed = subagents.map(({ modelAlias, ...subagent }) => {
    if (subagent.isFile !== true) return subagent;
    const { model, notice } = fileModel({ ...subagent, modelAlias }, named);
    if (notice !== undefined) notices.push(notice);
    return { ...subagent, model };
  });
  return { subagents: allowed, notices };
}

/** Subagents with models that are resolved when they are first needed. `notices`: models that files do not get. */
export function withModels<Subagent extends DescribedSubagent>(
  described: readonly Subagent[],
  models: ModelSources,
  named: NamedModels,
) {
  const { subagents, notices } = withAllowedModels(described, named);
  const resolved = subagents.map(({ model, ...subagent }): typeof subagent & { model?: ModelSource } =>
    model === undefined ? subagent : { ...subagent, model: () => models.get(model) },
  );
  return { subagents: resolved, notices };
}
