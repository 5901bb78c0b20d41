import {
  DEFAULT_MODELS,
  type Environment,
  PROVIDERS,
  type Provider,
  endpointOf,
  providerOf,
  variable,
} from "./providers.ts";

/** The model that needs no key: it follows rules and says so. */
export const OFFLINE = "offline";

/** The model that an MCP client lends, through sampling. */
export const CLIENT = "client";

export interface ModelOptions {
  /** `provider:model`, a name that tells its provider, `offline` or `client`. Default: chosen from the keys in `env`. */
  model?: string | undefined;
  env: Environment;
  /** Whether clients can lend their model here. Default false. */
  lendable?: boolean;
}

export type ModelProblem =
  | "model_not_configured"
  | "model_unknown"
  | "model_key_missing"
  | "model_endpoint_invalid";

export type ModelChoice =
  | {
      ok: true;
      /** `provider:model`, `offline` or `client`. */
      spec: string;
      provider: string;
      /** The model's name at its provider. */
      name: string;
      /** Host that requests go to, where that is known. */
      endpoint?: string;
      /** One clause: what decided. */
      why: string;
    }
  | { ok: false; code: ModelProblem; message: string };

/**
 * Which model would be used and why, or why none can be. Looks at names and variables only: it loads no
 * provider and makes no request, so it is cheap enough to ask before every run.
 */
export function modelChoice({ model, env, lendable = false }: ModelOptions): ModelChoice {
  const wanted = model?.trim();
  if (wanted === CLIENT) {
    if (!lendable) return { ok: false, code: "model_not_configured", message: NOT_LENDABLE };
    return { ok: true, spec: CLIENT, provider: CLIENT, name: CLIENT, why: "it was chosen" };
  }
  if (wanted) return specChoice(wanted, "it was chosen", env);
  for (const { provider, model: name } of DEFAULT_MODELS) {
    const key = PROVIDERS[provider]?.key;
    if (key !== undefined && variable(env, key) !== undefined) {
      return providerChoice(provider, name, `${key} is set and no model was chosen`, env);
    }
  }
  return { ok: false, code: "model_not_configured", message: notConfigured() };
}

function specChoice(wanted: string, why: string, env: Environment): ModelChoice {
  if (wanted === OFFLINE) {
    return { ok: true, spec: OFFLINE, provider: OFFLINE, name: OFFLINE, why };
  }
  const colon = wanted.indexOf(":");
  const provider = colon < 0 ? providerOf(wanted) : wanted.slice(0, colon);
  const name = wanted.slice(colon + 1).trim();
  if (!provider || name === "") {
    return { ok: false, code: "model_unknown", message: notASpec(wanted) };
  }
  if (!Object.hasOwn(PROVIDERS, provider)) {
    const known = Object.keys(PROVIDERS).join(", ");
    return {
      ok: false,
      code: "model_unknown",
      message: `Model '${wanted}' names the provider '${provider}', which is not known. Known providers: ${known}.`,
    };
  }
  return providerChoice(provider, name, why, env);
}

function providerChoice(provider: string, name: string, why: string, env: Environment): ModelChoice {
  const facts = PROVIDERS[provider] ?? { package: "" };
  const spec = `${provider}:${name}`;
  if (facts.key !== undefined && variable(env, facts.key) === undefined && !takesNoKey(facts, env)) {
    return { ok: false, code: "model_key_missing", message: keyMissing(spec, facts.key) };
  }
  const endpoint = endpointOf(facts, env);
  if (endpoint === undefined) return { ok: true, spec, provider, name, why };
  const host = httpHost(endpoint.url);
  if (host === undefined) {
    return {
      ok: false,
      code: "model_endpoint_invalid",
      message: `${endpoint.from} is not an http or https address. Correct it, or unset it to use ${facts.endpoint?.url}.`,
    };
  }
  return { ok: true, spec, provider, name, endpoint: host, why };
}

/** Servers of one's own that speak a provider's protocol mostly ask for no key. */
export function takesNoKey(facts: Provider, env: Environment): boolean {
  return facts.keylessElsewhere === true && endpointOf(facts, env)?.from !== undefined;
}

/** The host of an address: the part that is safe to log, as the rest may carry credentials. */
function httpHost(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, host } = new URL(address);
  return protocol === "http:" || protocol === "https:" ? host : undefined;
}

function notConfigured(): string {
  const keys = DEFAULT_MODELS.flatMap(({ provider }) => PROVIDERS[provider]?.key ?? []).join(" or ");
  const example = DEFAULT_MODELS.map(({ provider, model }) => `${provider}:${model}`)[0];
  return [
    "No model is configured. Three ways out:",
    `1. Set ${keys} in the server's environment.`,
    `2. Choose a model as provider:model, such as ${example}: --model, DEEPAGENT_MODEL or "model" in the configuration file.`,
    "3. Choose the model `offline` in the same way: it follows fixed rules, is no language model and needs no key.",
  ].join("\n");
}

const NOT_LENDABLE =
  "The model `client` is lent by the MCP client of a server, and there is none here. Choose a model as provider:model, or `offline`.";

function notASpec(wanted: string): string {
  return `Model '${wanted}' does not say whose model it is. Write it as provider:model, such as 'provider:${wanted.replace(/^:|:$/g, "")}', or choose 'offline'.`;
}

function keyMissing(spec: string, key: string): string {
  return `Model '${spec}' needs the environment variable ${key}, which is not set. Set it where the server is started, or choose another model; 'offline' needs no key.`;
}
