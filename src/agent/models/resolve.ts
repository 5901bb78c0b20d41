/** Makes the chat model of a configuration when it is first needed. */
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import type { LLMResult } from "@langchain/core/outputs";
import { defined } from "../../core/defined.ts";
import { ConfigurationError, errorMessage, codeOf } from "../../core/errors.ts";
import { type Logger, silentLogger } from "../../core/logger.ts";
import { longestMatch } from "../../core/longest-match.ts";
import type { ModelChoice, ModelOptions } from "./choose.ts";
import {
  DEFAULT_MODEL,
  OFFLINE,
  providerFacts,
  providerEndpoint,
  providerKey,
  modelChoice,
} from "./choose.ts";
import { modelFailure, withoutSecrets } from "./failure.ts";
import { mediaLimits } from "./media-limits.ts";
import { carryExtras } from "./provider-extras.ts";
import { loadPackage, packageMissing } from "./packages.ts";
import { type WaitingLimits, guardedFetch, limitSilence } from "./stream-guard.ts";
import { readingAnyEvents } from "./strict-chunks.ts";

export interface ResolveOptions extends ModelOptions {
  log?: Logger;
  /** Parameters of LangChain's class, by `provider:model` or its beginning; the longest match applies. */
  parameters?: Readonly<Record<string, Record<string, unknown>>> | undefined;
  /** Maximum time until a call begins to answer, in ms. Default 120,000. */
  requestMs?: number;
  /** Longest silence inside an answer, in ms. Default 300,000: reasoning models may be silent for minutes. */
  idleMs?: number;
  /** Folder of packages that were added. Default: packages are beside the library. */
  packages?: string;
}

/**
 * The chat model of a configuration, and its name: `provider:model`, or `offline`. Loads the provider's package on use,
 * makes no request.
 *
 * @throws {ConfigurationError} `model_not_configured`, `model_unknown`, `model_key_missing`,
 * `model_endpoint_invalid`, `model_package_missing` or `model_invalid`; the message names the remedy.
 */
export async function resolveModel(
  options: ResolveOptions,
): Promise<{ model: BaseChatModel; name: string; provider: string }> {
  const log = options.log ?? silentLogger;
  const choice = modelChoice(options);
  if (!choice.ok) throw new ConfigurationError(choice.code, choice.message);
  const { spec, provider, endpoint, why } = choice;
  const model =
    provider === OFFLINE
      ? new (await import("./offline/offline-model.ts")).OfflineModel()
      : await providerModel(choice, options);
  log.info("model_selected", { model: spec, ...(endpoint === undefined ? {} : { endpoint }), why });
  return { model, name: spec, provider };
}

async function providerModel(
  { spec, provider, name }: Extract<ModelChoice, { ok: true }>,
  { env, parameters = {}, requestMs = 120_000, idleMs = 300_000, packages }: ResolveOptions,
): Promise<BaseChatModel> {
  const facts = providerFacts(provider);
  const apiKey = providerKey(facts, env);
  try {
    // The program has the packages of Anthropic and OpenAI in it; others are added to it.
    const loaded: Record<string, unknown> =
      facts.package === "@langchain/anthropic"
        ? await import("@langchain/anthropic")
        : facts.package === "@langchain/openai"
          ? await import("@langchain/openai")
          : await loadPackage(facts.package, packages);
    const baseURL = providerEndpoint(facts, env)?.url;
    const limits = { requestMs, idleMs };
    const fields = {
      // Enough for a long file in one tool call. Older models write less and refuse more; the package knows how much.
      ...(provider === "anthropic" && !name.startsWith("claude-3") ? { maxTokens: 16_384 } : {}),
      ...longestMatch(spec, parameters),
      model: name,
      // Failed calls are tried again in one place, around the call.
      maxRetries: 0,
      callbacks: [streamAnswers],
      ...defined({ apiKey }),
      ...connection(provider, baseURL, limits),
    };
    const Model = loaded[facts.chatModel] as ChatModelClass; // by its name
    if (provider === "anthropic") return readingAnyEvents(new Model(fields));
    const origin = `${provider} ${baseURL ?? ""}`;
    if (provider === "openai") {
      const Completions = loaded["ChatOpenAICompletions"] as ChatModelClass; // by its name
      // Copies of the model are made from its fields.
      return new Model({ ...fields, completions: carryExtras(new Completions(fields), origin) });
    }
    const model = carryExtras(new Model(fields), origin);
    limitSilence(model, limits);
    return model;
  } catch (error) {
    throw loadingFailure(error, { spec, provider, name: facts.package, ...defined({ packages }) });
  }
}

type ChatModelClass = new (options: Record<string, unknown>) => BaseChatModel;

/** Options that only one provider understands. The endpoint is always set, so that the logged one is the used one. */
function connection(
  provider: string,
  baseURL: string | undefined,
  { requestMs, idleMs }: WaitingLimits,
): Record<string, unknown> {
  const fetch = guardedFetch(idleMs);
  if (provider === "anthropic")
    return { anthropicApiUrl: baseURL, clientOptions: { timeout: requestMs, authToken: null, fetch } };
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

/** `name`: of the provider's package. */
function loadingFailure(
  error: unknown,
  {
    spec,
    provider,
    name,
    packages,
  }: Record<"spec" | "provider" | "name", string> & Pick<ResolveOptions, "packages">,
): ConfigurationError {
  const text = errorMessage(error);
  const isMissing = codeOf(error) === "ERR_MODULE_NOT_FOUND";
  const missing = /Cannot find package '([^'/]+(?:\/[^'/]+)?)'/.exec(text)?.[1] ?? name;
  const message = !isMissing
    ? `Model '${spec}' could not be set up by ${name}: ${withoutSecrets(text)}`
    : packages === undefined
      ? `Model '${spec}' needs the package ${missing}, which is not installed. Run \`npm install ${missing}\` beside deepagent-mcp, or choose an anthropic: or openai: model.`
      : packageMissing(provider, missing);
  return new ConfigurationError(isMissing ? "model_package_missing" : "model_invalid", message, {
    cause: error,
  });
}

/**
 * Asks a model for an answer and stops it after its first words, so that it costs next to nothing. Resolves with the
 * problem as one sentence with its remedy, or with undefined if the model answered.
 */
export async function tryModel({
  signal,
  ...options
}: ResolveOptions & { signal: AbortSignal }): Promise<string | undefined> {
  try {
    const { model } = await resolveModel(options);
    for await (const _piece of await model.stream("Reply with OK.", { signal })) return undefined;
    return undefined;
  } catch (error) {
    return modelFailure(error, options.model).message;
  }
}

/** `provider:model`, an instance, or how to get one. */
export type ModelSource = string | BaseChatModel | (() => Promise<BaseChatModel>);

/** A model that is resolved on its first use: construction loads no provider. */
export class LazyModel {
  readonly #given: ModelSource;
  #resolving: Promise<BaseChatModel> | undefined;
  #resolved: BaseChatModel | undefined;

  constructor(given: ModelSource = DEFAULT_MODEL) {
    this.#given = given;
    if (typeof given === "object") this.#resolved = given;
  }

  async get(): Promise<BaseChatModel> {
    if (this.#resolved) return this.#resolved;
    this.#resolving ??= this.#resolve()
      .then((model) => (this.#resolved = model))
      .finally(() => (this.#resolving = undefined));
    return this.#resolving;
  }

  /** True if the model accepts media of this type; also true if that is not known yet. */
  acceptsMedia(mimeType: string): boolean {
    return this.#resolved === undefined || mediaLimits(this.#resolved).each.accepts(mimeType);
  }

  async #resolve(): Promise<BaseChatModel> {
    if (typeof this.#given === "function") return this.#given();
    if (typeof this.#given === "object") return this.#given;
    return (await resolveModel({ model: this.#given, env: process.env })).model;
  }
}

/**
 * Makes a chat model stream every answer, also one that is asked for in one piece: the limits on waiting
 * then apply to the start of an answer and to silence in it, not to its length.
 *
 * The providers' own `streaming` option is not used: with it, OpenAI's package counts tokens with a
 * vocabulary that it downloads from a third party in the middle of the call.
 */
class StreamAnswers extends BaseCallbackHandler {
  override readonly name: string = "deepagent_stream_answers";
  readonly lc_prefer_streaming: boolean = true;
  override awaitHandlers = true;

  /** Keeps why the answer ended: of an answer put together from its pieces, LangChain drops it. */
  override handleLLMEnd({ generations }: LLMResult): void {
    for (const { generationInfo, ...generation } of generations.flat()) {
      const reason: unknown = generationInfo?.["finish_reason"];
      if (reason === undefined || !("message" in generation)) continue;
      if (AIMessage.isInstance(generation.message))
        generation.message.response_metadata["finish_reason"] ??= reason;
    }
  }
}

export const streamAnswers: BaseCallbackHandler = new StreamAnswers();
