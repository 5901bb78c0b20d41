/** Finds clients, model keys and a sandbox on this machine. Changes nothing and loads no agent. */
import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { DEFAULT_MODELS, providerFacts, modelChoice, variable } from "../agent/models/choose.ts";
import { chooseExecutor } from "../app/executors.ts";
import { type HostFacts, defaultWorkspace } from "../config/paths.ts";
import { withStoredKeys } from "../app/stored-keys.ts";
import type { Config } from "../config/schema.ts";
import { orElse } from "../core/errors.ts";
import { readSecret } from "../core/keychain.ts";
import { isExecutable } from "../core/stats.ts";
import { CLIENT_NAMES, findClient } from "./clients/catalogue.ts";

export interface ClientHere {
  name: string;
  title: string;
  isInstalled: boolean;
  hasServer: boolean;
}

/** All clients that have a place for their configuration on this platform. */
export const clientsHere = (host: HostFacts): ClientHere[] =>
  CLIENT_NAMES.flatMap((name) => {
    const client = findClient(name, { host });
    if (client === undefined) return [];
    const { title, file } = client;
    const isInstalled =
      client.kind === "file" ? existsSync(dirname(file)) : isProgram(client.remove[0] ?? "", host);
    // JSON, TOML and YAML name a member before a colon or in brackets.
    const hasServer = orElse(() => /\bdeepagent["']?\s*[:\]]/.test(readFileSync(file, "utf8")), false);
    return [{ name, title, isInstalled, hasServer }];
  });

/** True if a shell would find the program. */
export function isProgram(name: string, { env, platform }: HostFacts): boolean {
  const endings = platform === "win32" ? [".exe", ".cmd"] : [""];
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.some((folder) => endings.some((ending) => isExecutable(join(folder, name + ending))));
}

export type KeyPlace = "environment" | "keychain";

/** The providers whose models are chosen by a key, and where that is. */
export interface ModelHere {
  spec: string;
  key: string;
  from: KeyPlace | undefined;
}

/** Timeout of a keychain look-up, in ms, so that a first look never waits for it to be unlocked. */
const KEYCHAIN_MS = 1500;

export const modelsHere = async ({ env, platform }: HostFacts): Promise<ModelHere[]> =>
  Promise.all(
    DEFAULT_MODELS.map(async ({ provider, model }) => {
      const { modelVariables = [] } = providerFacts(provider);
      const { keys: names = [] } = modelChoice({ model: `${provider}:${model}`, env: {} });
      const places = await Promise.all(names.map((name) => keyPlace(name, { env, platform })));
      const at = Math.max(places.findIndex(Boolean), 0);
      const [name = model] = modelVariables.flatMap((one) => variable(env, one) ?? []);
      return { spec: `${provider}:${name}`, key: names[at] ?? "", from: places[at] };
    }),
  );

/** Finds the place of the key with this name; `undefined` if it is not set. */
export async function keyPlace(name: string, { env, platform }: Pick<HostFacts, "env" | "platform">) {
  if (variable(env, name) !== undefined) return "environment";
  const kept = await readSecret(name, { env, platform, timeout: KEYCHAIN_MS });
  return kept.ok && kept.secret !== undefined ? "keychain" : undefined;
}

/** The model that a run here would use, and why; `undefined`: none can be. */
export async function modelHere(config: Config, { env, platform }: HostFacts) {
  const keys = await withStoredKeys(config, env, { platform, timeout: KEYCHAIN_MS });
  const choice = modelChoice({ model: config.model, models: config.models, env: keys.env, lendable: true });
  if (!choice.ok) return undefined;
  const [stored] = keys.found;
  return { spec: choice.spec, why: stored === undefined ? choice.why : `${stored} is in the keychain` };
}

/** The repository around the current folder, or the folder itself, where it is one to work in. */
export function workspaceHere(host: HostFacts): string | undefined {
  const folder = defaultWorkspace(host);
  const repository = folder === undefined ? undefined : repositoryAround(folder);
  return repository === undefined || repository === host.home ? folder : repository;
}

export function repositoryAround(path: string): string | undefined {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

/** Describes the way the agent's commands would run: in a sandbox, or the reason why not. */
export async function sandboxHere(config: Config): Promise<{ ok: boolean; text: string }> {
  const choice = await chooseExecutor(config);
  if (choice.kind === "sandbox") return { ok: true, text: choice.name };
  return { ok: false, text: choice.reason.split("\n")[0] ?? "" };
}
