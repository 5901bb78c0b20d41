/** Chooses a model from names and variables alone: nothing is loaded and nothing requested. */
import { trimEndOf, variableText } from "../../core/text.ts";

/** The model that needs no key: it follows fixed rules, and its answers state that. */
export const OFFLINE = "offline";

/** The model that an MCP client lends, through sampling. */
export const CLIENT = "client";

export interface ModelOptions {
  /** `provider:model`, a name that implies its provider, `offline` or `client`. Default: by the keys in `env`. */
  model?: string | undefined;
  env: Environment;
  /** True if clients can lend their model here. Default false. */
  lendable?: boolean;
}

type ModelProblem =
  | "model_not_configured"
  | "model_unknown"
  | "model_key_missing"
  | "model_endpoint_invalid"
  | "model_package_missing";

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
  | {
      ok: false;
      code: ModelProblem;
      message: string;
      /** Variables any of which would do, where a key is all that is missing. */
      keys?: readonly string[];
    };

/**
 * The model that would be used and the reason, or the reason why there is none. Reads only names and variables: it
 * loads no provider and makes no request, so it is cheap enough to call before every run.
 */
export function modelChoice({ model, env, lendable = false }: ModelOptions): ModelChoice {
  const wanted = model?.trim();
  if (wanted === CLIENT && !lendable)
    return no(
      "model_not_configured",
      "The model `client` is lent by an MCP client, and none is connected here. Choose a model as provider:model, or `offline`.",
    );
  if (wanted) return specChoice(wanted, env);
  for (const { provider, model: name } of DEFAULT_MODELS) {
    const key = PROVIDERS[provider]?.key;
    if (key !== undefined && variable(env, key) !== undefined)
      return providerChoice(provider, name, `${key} is set and no model was chosen`, env);
  }
  const message = [
    "No model is configured. To fix this, do one of the following:",
    `1. Set ${DEFAULT_KEYS.join(" or ")} in the environment.`,
    `2. Choose a model as provider:model, such as ${DEFAULT_MODEL}: --model, DEEPAGENT_MODEL or "model" in the configuration file.`,
    "3. Choose the model `offline` in the same way. It follows fixed rules instead of using a language model, so it needs no key.",
  ].join("\n");
  return no("model_not_configured", message, DEFAULT_KEYS);
}

const no = (code: ModelProblem, message: string, keys?: readonly string[]): ModelChoice => ({
  ok: false,
  code,
  message,
  ...(keys && { keys }),
});

function specChoice(wanted: string, env: Environment): ModelChoice {
  const why = "it was chosen";
  if (wanted === OFFLINE || wanted === CLIENT)
    return { ok: true, spec: wanted, provider: wanted, name: wanted, why };
  const colon = wanted.indexOf(":");
  const provider =
    colon < 0 ? NAME_BEGINNINGS.find(([beginning]) => beginning.test(wanted))?.[1] : wanted.slice(0, colon);
  const name = wanted.slice(colon + 1).trim();
  if (!provider || name === "") {
    const example = `provider:${wanted.replace(/^:|:$/g, "")}`;
    return no(
      "model_unknown",
      `Model '${wanted}' does not name its provider. Write it as provider:model, such as '${example}', or choose 'offline'.`,
    );
  }
  if (!Object.hasOwn(PROVIDERS, provider)) {
    const known = Object.keys(PROVIDERS).join(", ");
    return no(
      "model_unknown",
      `Model '${wanted}' names the unknown provider '${provider}'. Known providers: ${known}.`,
    );
  }
  return providerChoice(provider, name, why, env);
}

function providerChoice(provider: string, name: string, why: string, env: Environment): ModelChoice {
  const facts = providerFacts(provider);
  const spec = `${provider}:${name}`;
  if (facts.key !== undefined && providerKey(facts, env) === undefined) {
    const message = `Model '${spec}' needs the environment variable ${facts.key}, which is not set. Set it in the environment, or choose another model; 'offline' needs no key.`;
    return no("model_key_missing", message, [facts.key]);
  }
  const endpoint = providerEndpoint(facts, env);
  if (endpoint === undefined) return { ok: true, spec, provider, name, why };
  const url = URL.canParse(endpoint.url) ? new URL(endpoint.url) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    return no(
      "model_endpoint_invalid",
      `${endpoint.from} is not an http or https address. Correct it, or unset it to use ${facts.endpoint?.url}.`,
    );
  // The host is safe to log; the rest of an address may carry credentials.
  return { ok: true, spec, provider, name, endpoint: url.host, why };
}

/** The key for a provider's package, which wants some key. Servers of one's own mostly ask for none. */
export function providerKey(facts: Provider, env: Environment): string | undefined {
  const key = facts.key && variable(env, facts.key);
  return key ?? (facts.keylessElsewhere && providerEndpoint(facts, env)?.from ? "none" : undefined);
}

/** Facts about a model provider that are needed before its package is loaded. */
export interface Provider {
  /** npm package with its chat model. */
  readonly package: string;
  /** Its versions that go with the LangChain of the program; absent when the program has the package in it. */
  readonly versions?: string;
  readonly chatModel: string;
  /** Environment variable that holds its key; absent when it needs none or uses a cloud's own sign-in. */
  readonly key?: string;
  /** At another endpoint it may need none: many servers speak its protocol. */
  readonly keylessElsewhere?: true;
  /** Variables that name another endpoint, the first that is set wins, and the endpoint without them. */
  readonly endpoint?: { readonly variables: readonly string[]; readonly url: string };
}

/** A provider whose package is added to the program. */
const added = (name: string, versions: string, chatModel: string, key?: string): Provider => ({
  package: `@langchain/${name}`,
  versions,
  chatModel,
  ...(key === undefined ? {} : { key }),
});

/** The providers `provider:model` may name, by the name LangChain's `initChatModel` knows them under. */
export const PROVIDERS: Readonly<Record<string, Provider>> = {
  anthropic: {
    package: "@langchain/anthropic",
    chatModel: "ChatAnthropic",
    key: "ANTHROPIC_API_KEY",
    endpoint: { variables: ["ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"], url: "https://api.anthropic.com" },
  },
  openai: {
    package: "@langchain/openai",
    chatModel: "ChatOpenAI",
    key: "OPENAI_API_KEY",
    keylessElsewhere: true,
    endpoint: { variables: ["OPENAI_API_BASE", "OPENAI_BASE_URL"], url: "https://api.openai.com/v1" },
  },
  azure_openai: { package: "@langchain/openai", chatModel: "AzureChatOpenAI", key: "AZURE_OPENAI_API_KEY" },
  bedrock: added("aws", "^1.4.3", "ChatBedrockConverse"),
  cerebras: added("cerebras", "^1.0.4", "ChatCerebras", "CEREBRAS_API_KEY"),
  cohere: added("cohere", "^1.1.0", "ChatCohere", "COHERE_API_KEY"),
  deepseek: added("deepseek", "^1.1.6", "ChatDeepSeek", "DEEPSEEK_API_KEY"),
  fireworks: added("fireworks", "^0.2.6", "ChatFireworks", "FIREWORKS_API_KEY"),
  "google-genai": added("google-genai", "^2.2.0", "ChatGoogleGenerativeAI", "GOOGLE_API_KEY"),
  "google-vertexai": added("google-vertexai", "^2.2.0", "ChatVertexAI"),
  groq: added("groq", "^1.3.1", "ChatGroq", "GROQ_API_KEY"),
  mistralai: added("mistralai", "^1.2.0", "ChatMistralAI", "MISTRAL_API_KEY"),
  ollama: added("ollama", "^1.3.0", "ChatOllama"),
  perplexity: added("perplexity", "^0.3.0", "ChatPerplexity", "PERPLEXITY_API_KEY"),
  together: added("together-ai", "^0.2.6", "ChatTogetherAI", "TOGETHER_AI_API_KEY"),
  xai: added("xai", "^1.4.6", "ChatXAI", "XAI_API_KEY"),
};

export const KEY_NAMES: readonly string[] = [
  ...new Set(Object.values(PROVIDERS).flatMap(({ key }) => key ?? [])),
];

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

/** `provider:model` of the first. */
export const DEFAULT_MODEL = `${DEFAULT_MODELS[0].provider}:${DEFAULT_MODELS[0].model}`;

const DEFAULT_KEYS = DEFAULT_MODELS.flatMap(({ provider }) => PROVIDERS[provider]?.key ?? []);

/** Providers by the beginning of a model's name, as `initChatModel` of LangChain reads it. */
const NAME_BEGINNINGS: readonly (readonly [beginning: RegExp, provider: string])[] = [
  [/^(?:gpt-[345]|o[134])/, "openai"],
  [/^claude/, "anthropic"],
  [/^command/, "cohere"],
  [/^accounts\/fireworks/, "fireworks"],
  [/^gemini/, "google-vertexai"],
  [/^amazon\./, "bedrock"],
  [/^mistral/, "mistralai"],
  [/^(?:sonar|pplx)/, "perplexity"],
];

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable's value without surrounding blanks; undefined when it is unset or blank. */
export const variable = (env: Environment, name: string): string | undefined =>
  variableText(env[name] ?? "") || undefined;

/** Address of a provider's requests, and the variable that sets it, if any. */
export function providerEndpoint(
  provider: Provider,
  env: Environment,
): { url: string; from?: string } | undefined {
  const { variables = [], url } = provider.endpoint ?? {};
  const from = variables.find((name) => variable(env, name) !== undefined);
  const set = from && variable(env, from);
  return set ? { url: baseUrl(set, url ?? set), from } : url === undefined ? undefined : { url };
}

/**
 * The address to which a provider's package adds its paths: with `/v1` or without it, as the provider's own address.
 * It is only added for a server with a port of its own; those of other services have versions of their own.
 */
function baseUrl(address: string, own: string): string {
  if (!URL.canParse(address)) return address;
  const version = own.endsWith("/v1") ? "/v1" : "";
  // Packages add these paths to an address, and people copy them with it.
  const requestPath = /\/(?:chat\/completions|completions|embeddings|messages|responses)$/;
  const base = trimEndOf(address, "/").replace(requestPath, "");
  if (version === "") return base.replace(/\/v1$/, "");
  const { port, pathname } = new URL(base);
  return port !== "" && pathname === "/" ? `${base}${version}` : base;
}
