/** Finds keys of models and of the search provider where the environment has none. */
import { type Environment, modelChoice } from "../agent/models/choose.ts";
import { type Config, type ModelSettings, configuredModels } from "../config/schema.ts";
import { readSecret } from "../core/keychain.ts";
import { searchOf } from "./web.ts";

export interface FoundKeys {
  /** The environment, and in it the keys that the keychain has. */
  env: Environment;
  /** Variables whose values are from the keychain. */
  found: readonly string[];
  /** Why the keychain could not be asked. */
  problem?: string;
}

/**
 * Looks in the system's keychain for the keys of configured models and of a named search provider that the environment
 * does not have. Asks it for no other key, and not at all where none is missing.
 */
export async function withStoredKeys(
  config: ModelSettings & Pick<Config, "memories" | "web">,
  env: Environment,
  options: Partial<Parameters<typeof readSecret>[1]> = {},
): Promise<FoundKeys> {
  const specs = new Set(configuredModels(config));
  if (config.memories.embeddings !== undefined) specs.add(config.memories.embeddings);
  const known: Record<string, string | undefined> = { ...env };
  const found: string[] = [];
  const missing = [...specs].map((spec) => () => {
    const choice = modelChoice({ model: spec, env: known, models: config.models, lendable: true });
    return choice.ok ? [] : (choice.keys ?? []);
  });
  const ofSearch = (): readonly string[] => {
    const choice = searchOf(config, known);
    return choice.ok ? [] : (choice.keys ?? []);
  };
  for (const namesOf of [...missing, ofSearch]) {
    for (const name of namesOf()) {
      const kept = await readSecret(name, { platform: process.platform, ...options, env });
      if (!kept.ok) return { env: known, found, problem: kept.problem };
      if (kept.secret === undefined) continue;
      known[name] = kept.secret;
      found.push(name);
      break;
    }
  }
  return { env: known, found };
}
