import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ConfigurationError, errorMessage } from "../../core/errors.ts";
import { silentLogger, type Logger } from "../../core/logger.ts";
import { type ModelChoice, type ModelOptions, OFFLINE, modelChoice, takesNoKey } from "./choose.ts";
import { withoutSecrets } from "./failure.ts";
import { PROVIDERS, type Provider, endpointOf, variable } from "./providers.ts";
import { streamAnswers } from "./stream-answers.ts";
import { guardedFetch } from "./stream-guard.ts";

/** How long a call may take to begin an answer. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Longest silence inside an answer: reasoning models think for minutes without a word. */
const STREAM_IDLE_MS = 300_000;
/** Room for one reply: enough for a long file in one tool call. */
const ANTHROPIC_MAX_TOKENS = 16_384;

export interface ResolveOptions extends ModelOptions {
  log?: Logger;
  /** How long a call may take to begin an answer, in milliseconds. Default 120,000. */
  requestMs?: number;
  /** Longest silence inside an answer, in milliseconds. Default 300,000. */
  idleMs?: number;
}

export interface ResolvedModel {
  model: BaseChatModel;
  /** `provider:model`, or `offline`. */
  name: string;
  provider: string;
}

/**
 * The chat model of a configuration. Loads the provider's package on use, makes no request.
 *
 * @throws {ConfigurationError} `model_not_configured`, `model_unknown`, `model_key_missing`,
 * `model_endpoint_invalid`, `model_package_missing` or `model_invalid`; the message says what to do.
 */
export async function resolveModel(options: ResolveOptions): Promise<ResolvedModel> {
  const log = options.log ?? silentLogger;
  const choice = modelChoice(options);
  if (!choice.ok) throw new ConfigurationError(choice.code, choice.message);
  const { spec, provider, endpoint, why } = choice;
  const model = provider === OFFLINE ? await offlineModel() : await providerModel(choice, options);
  log.info("model_selected", { model: spec, ...(endpoint === undefined ? {} : { endpoint }), why });
  return { model, name: spec, provider };
}

async function offlineModel(): Promise<BaseChatModel> {
  const { OfflineModel } = await import("./offline.ts");
  return new OfflineModel();
}

async function providerModel(
  { spec, provider, name }: Extract<ModelChoice, { ok: true }>,
  { env, requestMs = REQUEST_TIMEOUT_MS, idleMs = STREAM_IDLE_MS }: ResolveOptions,
): Promise<BaseChatModel> {
  const { initChatModel } = await import("langchain/chat_models/universal");
  const facts = PROVIDERS[provider] ?? { package: "" };
  const given = facts.key === undefined ? undefined : variable(env, facts.key);
  // The package wants some key, whether the server asks for one or not.
  const key = given ?? (takesNoKey(facts, env) ? "none" : undefined);
  try {
    const configurable = await initChatModel(name, {
      modelProvider: provider,
      // Failed calls are tried again in one place, around the call.
      maxRetries: 0,
      callbacks: [streamAnswers],
      ...(key === undefined ? {} : { apiKey: key }),
      ...providerParameters(provider, name, endpointOf(facts, env)?.url, { requestMs, idleMs }),
    });
    // The configurable wrapper keeps one model for every distinct call configuration it ever saw.
    return await configurable._getModelInstance();
  } catch (error) {
    throw loadingFailure(error, spec, facts);
  }
}

/** What only one provider understands. The endpoint is always given: what is logged is what is used. */
function providerParameters(
  provider: string,
  name: string,
  baseURL: string | undefined,
  { requestMs, idleMs }: { requestMs: number; idleMs: number },
): Record<string, unknown> {
  const fetch = guardedFetch(idleMs);
  if (provider === "anthropic") {
    return {
      anthropicApiUrl: baseURL,
      // Models before the fourth generation write less and refuse more; the package knows how much.
      ...(name.startsWith("claude-3") ? {} : { maxTokens: ANTHROPIC_MAX_TOKENS }),
      clientOptions: { timeout: requestMs, authToken: null, fetch },
    };
  }
  if (provider === "openai") {
    return {
      timeout: requestMs,
      // OpenAI's newer models take tools through the responses API only; servers that speak its protocol
      // mostly know chat completions only.
      useResponsesApi: new URL(baseURL ?? "").host.endsWith("api.openai.com"),
      // Answers are not kept at the provider: a thread may be continued after they would have expired.
      zdrEnabled: true,
      configuration: { baseURL, fetch },
    };
  }
  return {};
}

function loadingFailure(error: unknown, spec: string, facts: Provider): ConfigurationError {
  const text = errorMessage(error);
  const missing = /Unable to import (\S+?)\. Please install/.exec(text)?.[1];
  if (missing !== undefined) {
    return new ConfigurationError(
      "model_package_missing",
      `Model '${spec}' needs the package ${missing}, which is not installed. Run \`npm install ${missing}\` beside deepagent-mcp, or choose an anthropic: or openai: model.`,
      { cause: error },
    );
  }
  return new ConfigurationError(
    "model_invalid",
    `Model '${spec}' could not be set up by ${facts.package}: ${withoutSecrets(text)}`,
    { cause: error },
  );
}
