/** What there is to know about a model provider before its package is loaded. */
export interface Provider {
  /** npm package with its chat model. */
  readonly package: string;
  /** Environment variable that holds its key; absent when it needs none or uses a cloud's own sign-in. */
  readonly key?: string;
  /** At another endpoint it may need none: many servers speak its protocol. */
  readonly keylessElsewhere?: true;
  /** Variables that name another endpoint, the first that is set wins, and the endpoint without them. */
  readonly endpoint?: { readonly variables: readonly string[]; readonly url: string };
}

/** The providers `provider:model` may name, by the name LangChain's `initChatModel` knows them under. */
export const PROVIDERS: Readonly<Record<string, Provider>> = {
  anthropic: {
    package: "@langchain/anthropic",
    key: "ANTHROPIC_API_KEY",
    endpoint: { variables: ["ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"], url: "https://api.anthropic.com" },
  },
  openai: {
    package: "@langchain/openai",
    key: "OPENAI_API_KEY",
    keylessElsewhere: true,
    endpoint: { variables: ["OPENAI_API_BASE", "OPENAI_BASE_URL"], url: "https://api.openai.com/v1" },
  },
  azure_openai: { package: "@langchain/openai", key: "AZURE_OPENAI_API_KEY" },
  bedrock: { package: "@langchain/aws" },
  cerebras: { package: "@langchain/cerebras", key: "CEREBRAS_API_KEY" },
  cohere: { package: "@langchain/cohere", key: "COHERE_API_KEY" },
  deepseek: { package: "@langchain/deepseek", key: "DEEPSEEK_API_KEY" },
  fireworks: { package: "@langchain/fireworks", key: "FIREWORKS_API_KEY" },
  "google-genai": { package: "@langchain/google-genai", key: "GOOGLE_API_KEY" },
  "google-vertexai": { package: "@langchain/google-vertexai" },
  groq: { package: "@langchain/groq", key: "GROQ_API_KEY" },
  mistralai: { package: "@langchain/mistralai", key: "MISTRAL_API_KEY" },
  ollama: { package: "@langchain/ollama" },
  perplexity: { package: "@langchain/perplexity", key: "PERPLEXITY_API_KEY" },
  together: { package: "@langchain/together-ai", key: "TOGETHER_AI_API_KEY" },
  xai: { package: "@langchain/xai", key: "XAI_API_KEY" },
};

/** The model used when only this provider's key is there, in the order keys are looked for. */
export const DEFAULT_MODELS: readonly { readonly provider: string; readonly model: string }[] = [
  { provider: "anthropic", model: "claude-sonnet-4-5-20250929" },
  { provider: "openai", model: "gpt-5.4" },
];

/** Beginnings of names that tell whose a model is, as `initChatModel` of LangChain reads them. */
const NAMES: readonly (readonly [beginning: RegExp, provider: string])[] = [
  [/^(?:gpt-[345]|o[134])/, "openai"],
  [/^claude/, "anthropic"],
  [/^command/, "cohere"],
  [/^accounts\/fireworks/, "fireworks"],
  [/^gemini/, "google-vertexai"],
  [/^amazon\./, "bedrock"],
  [/^mistral/, "mistralai"],
  [/^(?:sonar|pplx)/, "perplexity"],
];

/** The provider that a model's name tells. */
export const providerOf = (model: string): string | undefined =>
  NAMES.find(([beginning]) => beginning.test(model))?.[1];

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable's value without surrounding blanks; `undefined` when it is unset or blank. */
export function variable(env: Environment, name: string): string | undefined {
  return env[name]?.trim() || undefined;
}

/** Where requests of a provider go, and the variable that says so if one does. */
export function endpointOf(provider: Provider, env: Environment): { url: string; from?: string } | undefined {
  if (provider.endpoint === undefined) return undefined;
  for (const name of provider.endpoint.variables) {
    const url = variable(env, name);
    if (url !== undefined) return { url, from: name };
  }
  return { url: provider.endpoint.url };
}
