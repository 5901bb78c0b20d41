/** Chooses a model from names and variables alone: nothing is loaded and nothing requested. */
import { defined, parsedUrl } from "../../core/unknown.ts";
import { fill, trimEndOf, variableText } from "../../core/text.ts";
import { PROVIDERS, buildProfile, knownWindow } from "./profiles/profile.ts";
import type { ModelEntry, Provider } from "./profiles/schema.ts";
import texts from "./texts.json" with { type: "json" };

export { PROVIDERS };

/** The model that needs no key: it follows fixed rules, and its answers state that. */
export const OFFLINE = "offline";

/** The model that an MCP client lends, through sampling. */
export const CLIENT = "client";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Models by names of the operator, as the setting `models` has them. */
export type NamedEntries = Readonly<Record<string, ModelEntry>>;

export interface ModelOptions {
  /** `provider:model`, a name that implies its provider, `offline` or `client`. Default: by the keys in `env`. */
  model?: string | undefined;
  env: Environment;
  /** Names of the operator's own, each alone or as `name:model`. Default: none. */
  models?: NamedEntries | undefined;
  /** True if clients can lend their model here. Default false. */
  lendable?: boolean;
}

type ModelProblem =
  `model_${"not_configured" | "unknown" | "key_missing" | "endpoint_invalid" | "package_missing"}`;

export type ModelChoice =
  | {
      ok: true;
      /** `provider:model`, a name of the operator, `offline` or `client`. */
      spec: string;
      provider: string;
      name: string;
      /** Host that requests go to, where that is known. */
      endpoint?: string;
      /** One clause: what decided. */
      why: string;
      /** Variables that the key may be in; empty if none is needed. */
      keys: readonly string[];
      /** The context window that is assumed until the server reports its own, in tokens. */
      assumedWindow?: number;
    }
  | {
      ok: false;
      code: ModelProblem;
      message: string;
      /** Variables any of which would do, where a key is all that is missing. */
      keys?: readonly string[];
    };

/** The model that would be used and the reason, or the reason why there is none. Cheap enough to call before every run. */
export function modelChoice({ model, env, models = {}, lendable = false }: ModelOptions): ModelChoice {
  // A client may pass on a placeholder that it did not replace.
  const wanted = isPlaceholder(model) ? undefined : variableText(model ?? "");
  if (wanted === CLIENT && !lendable) return no("model_not_configured", texts.clientNotConnected);
  if (wanted) return specChoice(wanted, env, models);
  for (const { provider, model: usual } of DEFAULT_MODELS) {
    const facts = providerFacts(provider);
    const key = allKeys(facts).find(isSetIn(env));
    if (key === undefined) continue;
    const named = facts.modelVariables?.find(isSetIn(env));
    const name = named === undefined ? usual : (variable(env, named) ?? usual);
    const why = named === undefined ? `${key} is set and no model was chosen` : `${named} names it`;
    const ignored = isPlaceholder(model) ? `; the client did not replace ${model?.trim()}` : "";
    return placeChoice({ spec: `${provider}:${name}`, provider, name }, why + ignored, env);
  }
  return notConfigured(env);
}

function notConfigured(env: Environment): ModelChoice {
  // Tokens of GitHub and Hugging Face mostly have another purpose.
  const telling = KEY_NAMES.filter(
    (name) => !DEFAULT_KEYS.includes(name) && !/^(?:GITHUB|GH|HF)_TOKEN$/.test(name),
  );
  const found = telling.find(isSetIn(env));
  const owner = Object.entries(PROVIDERS).find(([, { keys = [] }]) => keys.includes(found ?? ""))?.[0];
  const unfilled = KEY_NAMES.filter((name) => isPlaceholder(env[name]));
  const lines = [
    fill(texts.notConfigured, DEFAULT_KEYS.join(" or "), DEFAULT_MODEL),
    ...(owner === undefined ? [] : [fill(texts.keyFound, found, owner)]),
    ...unfilled.map(placeholderProblem(env)),
  ];
  return no("model_not_configured", lines.join("\n"), DEFAULT_KEYS);
}

const no = (code: ModelProblem, message: string, keys?: readonly string[]) =>
  ({ ok: false, code, message, ...(keys && { keys }) }) as const;

type FoundModel = Record<"spec" | "provider" | "name", string> & { entry?: ModelEntry };

function specChoice(wanted: string, env: Environment, models: NamedEntries): ModelChoice {
  const why = "it was chosen";
  const own = namedModel(wanted, models);
  if (own?.name === "") return no("model_unknown", fill(texts.entryWithoutModel, wanted, wanted));
  if (own && !Object.hasOwn(PROVIDERS, own.provider))
    return no("model_unknown", fill(texts.entryOfUnknown, wanted, own.provider));
  if (own) return placeChoice(own, why, env);
  if (wanted === OFFLINE || wanted === CLIENT)
    return { ok: true, spec: wanted, provider: wanted, name: wanted, why, keys: [] };
  const colon = wanted.indexOf(":");
  const implying = Object.entries(PROVIDERS).filter(
    ([, { nameBeginnings = [] }]) => colon < 0 && nameBeginnings.some((begin) => wanted.startsWith(begin)),
  );
  // Services of one vendor share names: the one with a key is meant, else the last.
  const hasKey = ([, { keys = [] }]: [string, Provider]): boolean => keys.some(isSetIn(env));
  const [implied] = implying.find(hasKey) ?? implying.at(-1) ?? [];
  const provider = colon < 0 ? implied : wanted.slice(0, colon);
  const name = wanted.slice(colon + 1).trim();
  if (!provider || name === "")
    return no("model_unknown", fill(texts.noProvider, wanted, `provider:${wanted.replace(/^:|:$/g, "")}`));
  if (!Object.hasOwn(PROVIDERS, provider)) {
    const known = [...Object.keys(models), ...Object.keys(PROVIDERS)].join(", ");
    return no("model_unknown", fill(texts.unknownProvider, wanted, provider, known));
  }
  return placeChoice({ spec: `${provider}:${name}`, provider, name }, why, env);
}

/** The model that an entry of `models` stands for: by its name alone, or by `name:model`. */
export function namedModel(spec: string, models: NamedEntries): FoundModel | undefined {
  const [first = ""] = spec.split(":", 1);
  const key = Object.hasOwn(models, spec) ? spec : first;
  const entry = Object.hasOwn(models, key) ? models[key] : undefined;
  if (entry === undefined) return undefined;
  const name = key === spec ? (entry.model ?? "") : spec.slice(key.length + 1).trim();
  return { spec, provider: entry.provider ?? "openai", name, entry };
}

function placeChoice({ spec, provider, name, entry }: FoundModel, why: string, env: Environment) {
  const facts = providerFacts(provider);
  const { url, from, keys, apiKey, missing } = resolveConnection(provider, env, entry);
  if (missing !== undefined) {
    const whole = facts.baseVariables ? `, or the whole address in ${facts.baseVariables[0]}` : "";
    return no("model_endpoint_invalid", fill(texts.addressMissing, spec, missing.join(" and "), whole));
  }
  if (keys.length > 0 && apiKey === undefined) {
    const all = entry?.keyVariable === undefined ? allKeys(facts) : keys;
    const unfilled = all.find((one) => isPlaceholder(env[one]));
    const others = keys.length > 1 ? ` (or ${keys.slice(1).join(", ")})` : "";
    const problem = unfilled && fill(texts.keyUnfilled, spec, placeholderProblem(env)(unfilled));
    return no("model_key_missing", problem ?? fill(texts.keyMissing, spec, keys[0], others), all);
  }
  const chosen = { ok: true as const, spec, provider, name, why, keys };
  if (url === undefined) return chosen;
  const parsed = parsedUrl(url);
  const invalid = fill(texts.addressInvalid, from ?? "The address of the model", facts.base);
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol))
    return no("model_endpoint_invalid", invalid);
  const profile = buildProfile(name, { provider, address: url });
  const window = profile.isLocal && entry?.window === undefined ? knownWindow(profile) : undefined;
  // The host is safe to log; the rest of an address may carry credentials.
  return { ...chosen, endpoint: parsed.host, ...(window !== undefined && { assumedWindow: window }) };
}

/**
 * Address, key and headers of requests to a provider, by the environment and an entry of `models`. `from`: the variable
 * or setting that names the address; `parts`: the variables in the usual one; `missing`: those that are not set; `apiKey`:
 * the key for a package that demands one; `isBearer`: it is a bearer token where the provider has a header of its own.
 */
export function resolveConnection(provider: string, env: Environment, entry?: ModelEntry) {
  const facts = providerFacts(provider);
  const { base, baseVariables = [], bearerKeys = [], keyless } = facts;
  const own = entry?.baseUrl;
  const variableSet = own === undefined ? baseVariables.find(isSetIn(env)) : undefined;
  const from = own === undefined ? variableSet : "`baseUrl` in `models`";
  const given = own ?? (variableSet && variable(env, variableSet));
  const filled = filledIn(base ?? "", env, (value) => trimEndOf(value, "/"));
  const usual = base === undefined || hasScheme(filled.text) ? filled.text : `https://${filled.text}`;
  // `OLLAMA_HOST` is often an address to listen at, without a scheme and a port.
  const isBare = facts.local === true && given !== undefined && !hasScheme(given);
  const bare = isBare ? parsedUrl(`http://${given}`) : undefined;
  if (bare?.hostname === "0.0.0.0") bare.hostname = "127.0.0.1";
  if (bare?.port === "") bare.port = new URL(usual).port;
  const whole = bare?.href ?? given;
  const set = whole === undefined ? undefined : baseUrl(whole, base ?? whole, facts.local);
  const url = set ?? (base === undefined ? undefined : usual);
  // A provider's key is sent to the provider, and to an address in its own variable; others name their key.
  const host = parsedUrl(own ?? "")?.hostname;
  const isElsewhere = host !== undefined && !facts.hosts?.some((end) => `.${host}`.endsWith(`.${end}`));
  const named = entry?.keyVariable;
  const keys = named !== undefined ? [named] : isElsewhere ? [] : (facts.keys ?? []);
  const keyName = keys.find(isSetIn(env));
  const bearer = named === undefined && !isElsewhere ? bearerKeys.find(isSetIn(env)) : undefined;
  const key = variable(env, keyName ?? bearer ?? "");
  const isAnywhere = isElsewhere || keyless === "always" || (keyless === "elsewhere" && given !== undefined);
  const apiKey = key ?? (named === undefined && isAnywhere ? "none" : undefined);
  const lines = variable(env, facts.headersVariable ?? "")?.split("\n") ?? [];
  const custom = lines.flatMap((line) => {
    const [, name, value] = /^\s*([\w-]+)\s*:\s*(\S.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value.trim()] as const];
  });
  const headers = Object.entries({ ...facts.headers, ...Object.fromEntries(custom), ...entry?.headers })
    .map(([name, value]) => [name, filledIn(value.replaceAll("${", "{"), env)] as const)
    .filter(([, { missing }]) => missing.length === 0)
    .map(([name, { text }]) => [name, text]);
  const missing = given === undefined && filled.missing.length > 0 ? filled.missing : undefined;
  return {
    keys,
    parts: filled.names,
    isBearer: keyName === undefined && bearer !== undefined,
    headers: Object.fromEntries(headers) as Record<string, string>,
    ...defined({ url, from, key, apiKey, missing, keyVariable: keyName ?? bearer }),
  };
}

const hasScheme = (address: string): boolean => /^https?:\/\//i.test(address);

/** A text with the values of variables in the place of `{NAME}`. */
function filledIn(text: string, env: Environment, tidy = (value: string): string => value) {
  const names: string[] = [];
  const filled = text.replace(/\{([A-Z][A-Z0-9_]*)\}/g, (_whole, name: string) => {
    names.push(name);
    return tidy(variable(env, name) ?? "");
  });
  return { text: filled, names, missing: names.filter((name) => variable(env, name) === undefined) };
}

/** The variables with a key or a bearer token of a provider. */
const allKeys = ({ keys = [], bearerKeys = [] }: Provider): readonly string[] => [...keys, ...bearerKeys];

/** Variables that a key of some provider may be in. */
export const KEY_NAMES: readonly string[] = [...new Set(Object.values(PROVIDERS).flatMap(allKeys))];

export function providerFacts(provider: string): Provider {
  const facts = PROVIDERS[provider];
  if (facts === undefined) throw new Error(`There is no provider ${provider}.`);
  return facts;
}

/** The model used when this provider's key is the only one found, in the order keys are looked for. */
export const DEFAULT_MODELS = [
  { provider: "anthropic", model: "claude-sonnet-4-5-20250929" },
  { provider: "openai", model: "gpt-5.4" },
] as const;

export const DEFAULT_MODEL = `${DEFAULT_MODELS[0].provider}:${DEFAULT_MODELS[0].model}`;

const DEFAULT_KEYS = DEFAULT_MODELS.flatMap(({ provider }) => providerFacts(provider).keys ?? []);

/**
 * A variable's value without surrounding blanks; undefined when it is unset or blank, or holds a placeholder that a
 * client was to replace, such as `${ANTHROPIC_API_KEY}`.
 */
export const variable = (env: Environment, name: string): string | undefined =>
  isPlaceholder(env[name]) ? undefined : variableText(env[name] ?? "") || undefined;

const isSetIn = (env: Environment) => (name: string) => variable(env, name) !== undefined;

const isPlaceholder = (value: string | undefined): boolean =>
  /^(?:\$?\{\{?[\w.:\s-]+\}?\}|%\w+%|\$[A-Z_][A-Z0-9_]*|<[\w\s-]+>)$/.test(variableText(value ?? ""));

const placeholderProblem = (env: Environment) => (name: string) =>
  fill(texts.placeholder, name, variableText(env[name] ?? ""));

/**
 * The address to which a provider's package adds its paths: with `/v1` or without it, as the provider's own address.
 * It is only added for a server of one's own, or with a port; those of other services have versions of their own.
 */
function baseUrl(address: string, own: string, isLocal = false): string {
  if (parsedUrl(address) === undefined) return address;
  // Packages add these paths to an address, and people copy them with it.
  const requestPath = /\/(?:chat\/completions|completions|embeddings|messages|responses)$/;
  const base = trimEndOf(address, "/").replace(requestPath, "");
  if (!own.endsWith("/v1")) return base.replace(/\/v1$/, "");
  const { port, pathname } = new URL(base);
  if (pathname !== "/" || (port === "" && !isLocal)) return base;
  return `${base}${isLocal ? new URL(own).pathname : "/v1"}`;
}
