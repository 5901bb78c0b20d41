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
/** Growth of a request, in estimated tokens, that a provider must report. */
const GROWTH = 2000;
/** Part by which the reported tokens of two requests of one size differ. */
const SAME = 0.01;
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

/** Measurements by conversation and model, kept while the process lives. */
export class Measures {
  readonly #measured = new NewestOf<{
    /** Tokens for an estimated one; at least 1. */
    scale: number;
    size: number;
    reported: number;
    /** The model that replied. */
    name: string;
    at: number;
    /** Tokens from the cache in the last request that had any. */
    cached: number;
    /** Requests without any since then. */
    misses: number;
  }>(MOST);

  /** `take` notes the reply to a request of `size` estimated tokens, and returns it. */
  of({ model, messages, runtime }: ModelRequest): {
    scale: number;
    take: (reply: AIMessage, size: number) => AIMessage;
  } {
    const agent = runtime.step.agent.map(({ callId }) => callId);
    const key = [runtime.threadId, ...agent, modelName(model)].join(" ");
    const last = this.#measured.get(key);
    const scale = last?.scale ?? 1;
    const take = (reply: AIMessage, size: number): AIMessage => {
      const reported = reply.usage_metadata?.input_tokens ?? 0;
      if (reported === 0) return reply;
      const measured = Math.min(Math.max(reported / size, 1), LARGEST_SCALE);
      const [name, at] = [reportedModel(reply), monotonicClock()];
      const read = reply.usage_metadata?.input_token_details?.cache_read ?? 0;
      // A shorter request has another beginning: the conversation was compacted.
      const isMiss =
        last?.name === name &&
        at - last.at < CACHE.ms &&
        size >= last.size &&
        reported >= last.reported &&
        read === 0 &&
        last.cached >= CACHE.tokens;
      const misses = isMiss ? last.misses + 1 : 0;
      const cached = isMiss ? last.cached : read;
      const now = { size, reported, name, at, cached, misses };
      this.#measured.keep(key, { scale: size < LARGE ? scale : measured, ...now });
      if (misses === CACHE.misses)
        runtime.step.tell({
          kind: "warning",
          message: `The last ${misses} requests to ${name} had no tokens from the provider's cache, although they begin like an earlier one that had ${cached}. Each costs its full price. A proxy may change the beginning of requests, or send them to servers that do not share a cache.`,
        });
      const hasMedia = messages.some(({ content }) => typeof content !== "string" && content.some(isMedia));
      const isCut =
        last !== undefined &&
        !hasMedia &&
        size - last.size >= GROWTH &&
        Math.abs(reported - last.reported) <= SAME * last.reported &&
        reported < size &&
        // A smaller window would not hold the tools of an agent.
        reported >= LARGE / 2;
      const exchange = findExchange(model);
      if (isCut && (exchange?.window ?? Infinity) > reported * (1 + SAME))
        exchange?.learnWindow(
          reported,
          `The server reads about ${reported} tokens of a request and drops the rest without an error. The conversation is kept below that from now on. If the model can read more, raise the context length of the server and set \`window\` of the model in \`models\`.`,
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
  if (!isCut(reply) || !isEmptyReply(reply)) return;
  if (sent >= 0.95 * window && ESTIMATE.ofAll(messages) > window / 2)
    throw new RunFailure(
      "context_overflow",
      "The model wrote nothing: the request fills its context window.",
    );
}
