/** Makes the chat model of a configuration when it is first needed. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import type { LLMResult } from "@langchain/core/outputs";
import { ConfigurationError, errorMessage, codeOf } from "../../core/errors.ts";
import { type Logger, silentLogger } from "../../core/logger.ts";
import { longestMatch } from "../../core/model-names.ts";
import { fill } from "../../core/text.ts";
import { recordOf, defined } from "../../core/unknown.ts";
import type { ModelChoice, ModelOptions } from "./choose.ts";
import {
  DEFAULT_MODEL,
  OFFLINE,
  modelChoice,
  namedModel,
  providerFacts,
  resolveConnection,
} from "./choose.ts";
import { Exchange, exchangeCompletions, exchangeMessages, openAiModel, setExchange } from "./exchange.ts";
import { modelFailure, withoutSecrets } from "./failure.ts";
import { streamingHandler } from "./heard.ts";
import { mediaLimits } from "./media-limits.ts";
import { hasPackage, loadPackage, packageMissing } from "./packages.ts";
import type { Lessons } from "./profiles/learned.ts";
import { plainModel } from "./plain-model.ts";
import { type Profile, PROVIDERS, joinRules, buildProfile } from "./profiles/profile.ts";
import type { EFFORTS, Provider } from "./profiles/schema.ts";
import { askWindow } from "./profiles/windows.ts";
import { type WaitingLimits, guardedFetch, limitSilence } from "./stream-guard.ts";
import texts from "./texts.json" with { type: "json" };

type ChosenModel = Extract<ModelChoice, { ok: true }>;

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
  /** Rules learned from refusals. Default: in memory, for this model only. */
  lessons?: Lessons;
}

/**
 * The chat model of a configuration, and its name: `provider:model`, or `offline`. Loads the provider's package on use,
 * makes no request.
 *
 * @throws {ConfigurationError} for a choice that is not possible, `model_package_missing` or `model_invalid`.
 */
export async function resolveModel(options: ResolveOptions) {
  const choice = modelChoice(options);
  if (!choice.ok) throw new ConfigurationError(choice.code, choice.message);
  const { spec, provider, endpoint, why } = choice;
  const model: BaseChatModel =
    provider === OFFLINE
      ? new (await import("./offline/offline-model.ts")).OfflineModel()
      : await providerModel(choice, options);
  (options.log ?? silentLogger).info("model_selected", { model: spec, ...defined({ endpoint }), why });
  return { model, name: spec, provider };
}

async function providerModel(choice: ChosenModel, options: ResolveOptions) {
  const { packages, requestMs = 120_000, idleMs = 300_000 } = options;
  const plan = planModel(choice, options);
  const { facts, wire, exchange, origin, packageName } = plan;
  const limits = { requestMs, idleMs };
  try {
    const fields = modelFields(plan, limits);
    // The program has the packages of Anthropic and OpenAI in it; others are added to it.
    if (wire === "messages") {
      const { ChatAnthropic } = await import("@langchain/anthropic");
      return setExchange(exchangeMessages(new ChatAnthropic(fields), exchange), exchange);
    }
    if (wire === "chat") return setExchange(await openAiModel(fields, exchange, origin), exchange);
    const isOpenAi = packageName === PACKAGES.chat; // Azure's class
    const loaded = await (isOpenAi ? import("@langchain/openai") : loadPackage(packageName, packages));
    // The table has the name of the class.
    const Model = Reflect.get(loaded, facts.package?.chatModel ?? "") as new (
      options: object,
    ) => BaseChatModel;
    const model = exchangeCompletions(new Model(fields), exchange, { origin });
    limitSilence(model, limits);
    return setExchange(model, exchange);
  } catch (error) {
    const { spec, provider } = choice;
    const text = errorMessage(error);
    const options = { cause: error };
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") {
      const problem = fill(texts.notSetUp, spec, packageName, withoutSecrets(text));
      throw new ConfigurationError("model_invalid", problem, options);
    }
    const name = /Cannot find package '([^'/]+(?:\/[^'/]+)?)'/.exec(text)?.[1] ?? packageName;
    const beside = fill(texts.packageBeside, spec, name, name);
    const missing = packages === undefined ? beside : packageMissing(provider, name);
    throw new ConfigurationError("model_package_missing", missing, options);
  }
}

/** Class, address, profile and settings of a chosen model. */
function planModel(
  { spec, provider, name }: ChosenModel,
  { env, models = {}, parameters = {}, packages, lessons }: ResolveOptions,
) {
  const facts = providerFacts(provider);
  const entry = namedModel(spec, models)?.entry;
  const place = resolveConnection(provider, env, entry);
  const { url = "", key, isBearer } = place;
  const isOwn = facts.package !== undefined && hasPackage(facts, packages);
  const wire = isOwn ? undefined : facts.wire;
  const packageName = (wire === undefined ? facts.package?.name : PACKAGES[wire]) ?? "";
  const { configuration, clientOptions, ...set } = longestMatch(spec, parameters) ?? {};
  const clients = [configuration, clientOptions].map(recordOf);
  const own = clients.map(({ defaultHeaders }) => recordOf(defaultHeaders));
  const headers: Record<string, string> = Object.assign({}, ...own, place.headers);
  const profile = buildProfile(name, { provider, address: url, own: entry?.request });
  if (entry?.reasoning !== undefined)
    profile.rules = joinRules({ put: effortMembers(profile, entry.reasoning, wire) }, profile.rules);
  const isOwnHeader = wire === "messages" && !isBearer;
  const auth = isOwnHeader ? ["x-api-key", key] : ["authorization", key && `Bearer ${key}`];
  const withKey = { ...headers, ...(key && Object.fromEntries([auth])) };
  // Anthropic's base has no version.
  const asked = { url: wire === "messages" ? `${url}/v1` : url, headers: withKey };
  const exchange = new Exchange(profile, {
    lessons,
    window: entry?.window,
    keyVariable: place.keyVariable,
    ...(url !== "" && { askWindow: () => askWindow(profile, asked) }),
  });
  const given = { ...set, ...entry?.parameters, ...(entry?.output && { maxTokens: entry.output }) };
  const origin = `${provider} ${url}`;
  return { facts, wire, packageName, exchange, origin, place: { ...place, headers }, given };
}

/** Fields of LangChain's class for the model. The endpoint is always set, so that the logged one is the used one. */
function modelFields(
  { wire, exchange, place, given }: ReturnType<typeof planModel>,
  { requestMs: timeout, idleMs }: WaitingLimits,
): Record<string, unknown> {
  const { output = OUTPUT_TOKENS, model, provider } = exchange.profile;
  const { url, key, apiKey, isBearer, headers } = place;
  // Failed calls are tried again in one place, around the call.
  const common = { ...given, model, maxRetries: 0, callbacks: [streamAnswers], ...defined({ apiKey }) };
  const fetch = guardedFetch(idleMs);
  // A null takes away the header that the client would add.
  const defaultHeaders = isBearer ? { ...headers, "x-api-key": null } : headers;
  switch (wire) {
    case "messages":
      return {
        maxTokens: Math.min(OUTPUT_TOKENS, output),
        ...common,
        anthropicApiUrl: url,
        clientOptions: { timeout, authToken: isBearer ? key : null, fetch, defaultHeaders },
      };
    case "chat":
      return {
        useResponsesApi: PROVIDERS[provider ?? ""]?.responses === true,
        ...common,
        timeout,
        // Answers are not kept at the provider: a thread may be continued after they would have expired.
        zdrEnabled: true,
        configuration: { baseURL: url, fetch, defaultHeaders },
      };
    default:
      return common;
  }
}

/** Enough for a long file in one tool call, as far as the model writes that much. */
const OUTPUT_TOKENS = 16_384;

function effortMembers(
  { family, provider = "" }: Profile,
  effort: (typeof EFFORTS)[number],
  wire: Provider["wire"],
): Record<string, unknown> {
  const own = PROVIDERS[provider]?.reasoning?.[effort] ?? family?.reasoning?.[effort];
  const isThinking = own !== undefined && "thinking" in own;
  if (wire === "messages" && !isThinking)
    return { thinking: effort === "off" ? { type: "disabled" } : { type: "enabled", budget_tokens: 4096 } };
  const isForeign = isThinking && wire !== "messages" && !family?.open;
  return own === undefined || isForeign ? { reasoning_effort: effort === "off" ? "none" : effort } : own;
}

const PACKAGES = { chat: "@langchain/openai", messages: "@langchain/anthropic" } as const;

/**
 * Asks a model for an answer and stops it after its first words, so that it costs next to nothing. Resolves with the
 * problem as one sentence with its remedy, or with undefined if the model answered.
 */
export async function tryModel({ signal, ...options }: ResolveOptions & { signal: AbortSignal }) {
  try {
    const { model } = await resolveModel(options);
    for await (const _piece of await model.stream("Reply with OK.", { signal })) break;
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
    const given = typeof this.#given === "function" ? await this.#given() : this.#given;
    if (typeof given === "object") return plainModel(given);
    return (await resolveModel({ model: given, env: process.env })).model;
  }
}

/**
 * Limits on waiting apply to the start of a streamed answer and to silence, not to its length. With the option
 * `streaming` instead, OpenAI's package would download a vocabulary from a third party to count tokens.
 */
export const streamAnswers = streamingHandler("deepagent_stream_answers", {
  /** Keeps why the answer ended: of an answer put together from its pieces, LangChain drops it. */
  handleLLMEnd({ generations }: LLMResult): void {
    for (const { generationInfo, ...generation } of generations.flat()) {
      const reason: unknown = generationInfo?.["finish_reason"];
      if (reason === undefined || !("message" in generation)) continue;
      if (AIMessage.isInstance(generation.message))
        generation.message.response_metadata["finish_reason"] ??= reason;
    }
  },
});
