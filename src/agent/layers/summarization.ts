import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";
import type { BackendSource } from "../../backends/backend.ts";
import type { Logger } from "../../core/logger.ts";
import type { Middleware, ModelHandler, ModelRequest } from "../contracts/middleware.ts";
import { CONTEXT_CHANNELS } from "../contracts/state.ts";
import { Measures, inEstimates } from "../compaction/measures.ts";
import type { Compaction, ContextSize } from "../compaction/compacted-view.ts";
import {
  ESTIMATE,
  TokenCounter,
  compactedView,
  defaultLimits,
  exceedsTrigger,
  triggerTokens,
} from "../compaction/compacted-view.ts";
import { type CompactOptions, compact, requestTokens } from "../compaction/compaction.ts";
import { findExchange, contextWindow } from "../models/exchange.ts";
import { failureFacts, fittingPart, modelFailure, toldWindow } from "../models/failure.ts";

export interface SummarizationOptions {
  /** Default: 85 % of the model's window, or 170,000 tokens when that is unknown. */
  trigger?: ContextSize | readonly ContextSize[];
  /** The newest part, which is not compacted. Default: 10 % of the window, or 6 messages. */
  keep?: ContextSize;
  /** Writes the summaries. Default: the agent's model. */
  model?: BaseChatModel;
  /** Replaces the built-in instructions. */
  prompt?: string;
  /** Folder for the full text of summarized messages. Default `/conversation_history`. */
  historyPathPrefix?: string;
  /** Shortens long file contents in old tool arguments before anything is summarized. Default true. */
  truncateArgs?: boolean;
  /** Counts the tokens of a text, each text once. Default: a quarter of its characters, or all in Chinese, Japanese and Korean. */
  countTokens?: (text: string) => number;
}

/**
 * Keeps a conversation within the model's window: old tool arguments are shortened, then all before the newest part is
 * saved and summarized, then the largest texts move into files. A request that the provider finds too long is treated so once.
 * In between, each request begins with the bytes of the one before. The thread's own messages are never changed.
 */
export function summarizationMiddleware(
  setup: SummarizationOptions & { backend: BackendSource; log: Logger },
): Middleware {
  const counter = setup.countTokens ? new TokenCounter(setup.countTokens) : ESTIMATE;
  const measures = new Measures();
  return {
    name: "SummarizationMiddleware",
    channels: { [CONTEXT_CHANNELS.compaction]: { kind: "latest", initial: {} } },
    wrapModelCall: async (request, next) => {
      const known = (request.state[CONTEXT_CHANNELS.compaction] as Compaction | undefined) ?? {}; // our channel
      const measure = measures.of(request);
      const usual = defaultLimits(contextWindow(request.model));
      const { trigger = usual.trigger, keep = usual.keep } = setup;
      const limits = inEstimates({ ...usual, trigger: [trigger].flat(), keep }, measure.scale);
      const options: CompactOptions = { ...setup, limits, counter };
      const view = compactedView(request.messages, known);
      const tokens = requestTokens(request, view, counter);
      const isDue = exceedsTrigger(limits, tokens, view.length) && tokens >= (known.waitUntil ?? 0);
      const first = isDue ? await compact(request, known, options) : known;
      const shown = first === known ? view : compactedView(request.messages, first);
      const size = requestTokens(request, shown, counter);
      const isNear = size >= NEAR * Math.min(limits.maxInputTokens ?? Infinity, triggerTokens(limits));
      const answer = await firstAnswer({ ...request, messages: shown }, next, isNear);
      const { overflow } = answer;
      if (overflow === undefined) return measure.take(answer.end(), size);
      setup.log.warn("context_overflow", { messages: shown.length });
      const window = toldWindow(overflow);
      if (window !== undefined) findExchange(request.model)?.learnWindow(window);
      const refused = { tokens: size, fitting: fittingPart(overflow) };
      const second = await compact(request, first, { ...options, refused });
      if (second === first) return answer.end();
      return next({ ...request, messages: compactedView(request.messages, second) });
    },
  };
}

/** Part of the limit from which on a refusal without a known reason is taken for one of the length, once. */
const NEAR = 0.8;

/**
 * `end` returns the reply, or throws the error in its place. `overflow`: the provider's error, if it found the request
 * too long, whatever layers further in made of it.
 */
async function firstAnswer(
  request: ModelRequest,
  next: ModelHandler,
  isNear: boolean,
): Promise<{ overflow?: unknown; end(): AIMessage }> {
  let last: unknown;
  const overflowIn = (failure: unknown) => {
    if (failure === undefined) return {};
    const { reason, status } = failureFacts(failure);
    const isUnknown = isNear && reason === "model_error" && status === 400;
    return isUnknown || modelFailure(failure).code === "context_overflow" ? { overflow: failure } : {};
  };
  try {
    const reply = await next({ ...request, attempted: (failure) => void (last = failure) });
    return { ...overflowIn(last), end: () => reply };
  } catch (error) {
    const end = (): never => {
      throw error;
    };
    return { ...overflowIn(last), ...overflowIn(error), end };
  }
}
