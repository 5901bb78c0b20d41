/** Compares each request with the tokens that its provider reports: their number, and those read from its cache. */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { isStructuredTool } from "@langchain/core/utils/function_calling";
import { monotonicClock } from "../../core/clock.ts";
import { RunFailure } from "../../core/errors.ts";
import { NewestOf } from "../../core/newest-of.ts";
import type { ModelRequest } from "../contracts/middleware.ts";
import { isEmptyReply } from "../models/answers.ts";
import { contextWindow, findExchange } from "../models/exchange.ts";
import { isMedia } from "../models/media.ts";
import { reportedModel } from "../budget/prices.ts";
import { answeredBy, isCut, modelName } from "../models/reply.ts";
import type { ToolBinding } from "../models/tool-binder.ts";
import { type ContextLimits, type ContextSize, ESTIMATE } from "./compacted-view.ts";

/** Conversations that are measured at the same time. */
const MOST = 200;
/** Estimated tokens below which a request is not measured: providers count tool definitions differently. */
const LARGE = 8000;
/** Largest number of tokens that stands for an estimated one. */
const LARGEST_SCALE = 8;
/** Growth of a request that a provider must report: in estimated tokens, and as a part of those reported before. */
const GROWTH = { tokens: 2000, part: 0.04 };
/** Part by which the reported tokens of two requests of one size differ. */
const SAME = 0.01;
/** Larger requests in a row that are reported as smaller ones: a server that drops whole messages counts up and down. */
const MOST_SMALLER = 2;
/** The fewest tokens that providers cache, their lifetime in ms, and misses in a row that are reported: single ones are normal. */
const CACHE = { tokens: 1024, ms: 300_000, misses: 2 };

/** Limits for a conversation whose tokens are `scale` times as many as estimated, in estimated tokens. */
export function inEstimates(limits: ContextLimits, scale: number): ContextLimits {
  if (scale === 1) return limits;
  const divided = (size: ContextSize): ContextSize =>
    "tokens" in size ? { tokens: Math.floor(size.tokens / scale) } : size;
  const { trigger, keep, maxInputTokens: window } = limits;
  return {
    trigger: trigger.map(divided),
    keep: divided(keep),
    maxInputTokens: window === undefined ? undefined : Math.floor(window / scale),
  };
}

/** A request and the tokens that its provider reports. */
interface Measured {
  /** Estimated tokens. */
  size: number;
  reported: number;
  /** Those read from the provider's cache. */
  read: number;
  /** The model that replied. */
  name: string;
  at: number;
  /** Tokens for an estimated one; at least 1. */
  scale: number;
  /** Tokens from the cache in the last request that had them. */
  cached: number;
  /** Requests with less than half of them since then. */
  misses: number;
  /** The request with the largest report, and larger ones since then with no larger report. */
  top: { size: number; reported: number };
  smaller: number;
  /** The largest report of all. */
  most: number;
}

/** Compares the growth of requests with that of their reports. `window`: the server reads no more than that. */
function readGrowth(
  { name, size, reported }: Pick<Measured, "name" | "size" | "reported">,
  last: Measured | undefined,
): Pick<Measured, "top" | "smaller" | "most"> & { window?: number } {
  const most = Math.max(last?.most ?? 0, reported);
  const isNext = last?.name === name && size >= last.size;
  const isNoMore = isNext && reported <= last.top.reported * (1 + SAME) && reported >= last.top.reported / 2;
  const top = isNoMore ? last.top : { size, reported };
  const hasStopped =
    size - top.size >= Math.max(GROWTH.tokens, GROWTH.part * top.reported) &&
    reported < size &&
    // A smaller window would not hold an agent's tools, or the earlier requests.
    reported >= Math.max(LARGE, most) / 2;
  const smaller = hasStopped ? (last?.smaller ?? 0) + 1 : 0;
  if (hasStopped && reported >= top.reported * (1 - SAME)) return { top, smaller, most, window: reported };
  return { top, smaller, most, ...(smaller >= MOST_SMALLER && { window: top.reported }) };
}

/** Measurements by conversation and model, kept while the process lives. */
export class Measures {
  readonly #measured = new NewestOf<Measured>(MOST);

  /** `take` notes the reply to a request of `size` estimated tokens, and returns it. */
  of({ model, messages, runtime }: ModelRequest) {
    const agent = runtime.step.agent.map(({ callId }) => callId);
    const key = [runtime.threadId, ...agent, modelName(model)].join(" ");
    const last = this.#measured.get(key);
    const scale = last?.scale ?? 1;
    const take = (reply: AIMessage, size: number): AIMessage => {
      const { input_tokens: reported = 0, input_token_details: details } = reply.usage_metadata ?? {};
      if (reported === 0) return reply;
      const read = details?.cache_read ?? 0;
      const now = { size, reported, read, name: reportedModel(reply), at: monotonicClock() };
      // A shorter request has another beginning: the conversation was compacted.
      const isMiss =
        last?.name === now.name &&
        now.at - last.at < CACHE.ms &&
        size >= last.size &&
        reported >= last.reported &&
        read < last.cached / 2 &&
        last.cached >= CACHE.tokens;
      const [misses, cached] = isMiss ? [last.misses + 1, last.cached] : [0, read];
      const { window, ...grown } = readGrowth(now, last);
      const measured = Math.min(Math.max(reported / size, 1), LARGEST_SCALE);
      const rescaled = size < LARGE ? scale : measured;
      this.#measured.keep(key, { ...now, ...grown, scale: rescaled, cached, misses });
      if (misses === CACHE.misses)
        runtime.step.tell({
          kind: "warning",
          message: `The last ${misses} requests to ${now.name} had ${read === 0 ? "no" : `only ${read}`} tokens from the provider's cache, although they begin like an earlier one that had ${cached}. Each costs its full price. A proxy may change the beginning of requests, or send them to servers that do not share a cache.`,
        });
      // The tokens of pictures are a guess.
      const hasMedia = messages.some(({ content }) => typeof content !== "string" && content.some(isMedia));
      const exchange = findExchange(model);
      if (window !== undefined && !hasMedia && (exchange?.window ?? Infinity) > window * (1 + SAME))
        exchange?.learnWindow(
          window,
          `The server reads about ${window} tokens of a request and drops the rest without an error. The conversation is kept below that from now on. If the model can read more, raise the context length of the server and set \`window\` of the model in \`models\`.`,
        );
      return reply;
    };
    return { scale, take };
  }
}

/** A reply with its model, and its tokens: estimated where the provider reports none. Changes `reply`. */
export function estimateUsage(
  reply: unknown,
  input: readonly BaseMessage[],
  { model, tools }: ToolBinding,
): unknown {
  if (!AIMessage.isInstance(reply)) return reply;
  answeredBy(reply, model);
  const exchange = findExchange(model);
  if (exchange === undefined || (reply.usage_metadata?.total_tokens ?? 0) > 0) return reply;
  const ofTools = tools.filter(isStructuredTool);
  const input_tokens = ESTIMATE.ofAll(input) + ESTIMATE.ofTools(ofTools);
  const output_tokens = Math.max(1, ESTIMATE.of(reply));
  reply.usage_metadata = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
  exchange.note(
    `The server of the model ${exchange.profile.model} reports no tokens. They are estimated from the texts.`,
  );
  return reply;
}

/** Some providers answer nothing if the request fills the window. @throws RunFailure `context_overflow` then. */
export function checkRoom(reply: AIMessage, { model, messages }: ModelRequest): void {
  const window = contextWindow(model) ?? Infinity;
  const sent = reply.usage_metadata?.input_tokens ?? 0;
  if (!isCut(reply) || !isEmptyReply(reply) || sent < 0.95 * window) return;
  const problem = "The model wrote nothing: the request fills its context window.";
  if (ESTIMATE.ofAll(messages) > window / 2) throw new RunFailure("context_overflow", problem);
}
