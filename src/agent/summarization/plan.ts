import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { ESTIMATE, type TokenCounter } from "./tokens.ts";

/** A size of context: part of the model's window, tokens, or messages. */
export type ContextSize = { fraction: number } | { tokens: number } | { messages: number };

/** When to compact, and how much of the end of a conversation stays as it is. */
export interface ContextLimits {
  /** Any of them is enough. */
  trigger: readonly ContextSize[];
  keep: ContextSize;
  /** The model's window in tokens, when known. */
  maxInputTokens: number | undefined;
}

/** The defaults: 85 % and 10 % of a known window, else 170,000 tokens and 6 messages. */
export function defaultLimits(maxInputTokens: number | undefined): ContextLimits {
  return maxInputTokens === undefined
    ? { trigger: [{ tokens: 170_000 }], keep: { messages: 6 }, maxInputTokens }
    : { trigger: [{ fraction: 0.85 }], keep: { fraction: 0.1 }, maxInputTokens };
}

/** Whether a request of this size is to be compacted. A fraction of an unknown window never triggers. */
export function isOver(limits: ContextLimits, tokens: number, messages: number): boolean {
  return limits.trigger.some((size) => {
    if ("messages" in size) return messages >= size.messages;
    return tokens >= inTokens(size, limits.maxInputTokens);
  });
}

/** The fewest tokens that trigger; infinite where only messages do. */
export const triggerTokens = ({ trigger, maxInputTokens }: ContextLimits): number =>
  Math.min(
    Infinity,
    ...trigger.map((size) => ("messages" in size ? Infinity : inTokens(size, maxInputTokens))),
  );

/**
 * Where to cut: the index of the first message that stays. A reply and its results are never separated.
 * 0: there is nothing to cut off.
 *
 * @param atMost tokens that may stay, whatever `limits` say; the last message stays in any case.
 */
export function cutIndex(
  messages: readonly BaseMessage[],
  limits: ContextLimits,
  counter: TokenCounter = ESTIMATE,
  atMost: number = Infinity,
): number {
  let index = messages.length - keptMessages(messages, limits, counter, atMost);
  while (index > 0 && ToolMessage.isInstance(messages[index])) index -= 1;
  return index;
}

function keptMessages(
  messages: readonly BaseMessage[],
  { keep, maxInputTokens }: ContextLimits,
  counter: TokenCounter,
  atMost: number,
): number {
  const most = "messages" in keep ? keep.messages : Infinity;
  const budget = Math.min(atMost, "messages" in keep ? Infinity : inTokens(keep, maxInputTokens));
  let tokens = 0;
  let kept = 0;
  for (let i = messages.length - 1; i >= 0 && kept < most; i -= 1) {
    const message = messages[i];
    tokens += message ? counter.of(message) : 0;
    if (tokens > budget) break;
    kept += 1;
  }
  return Math.max(kept, 1);
}

function inTokens(size: { fraction: number } | { tokens: number }, window: number | undefined): number {
  if ("tokens" in size) return size.tokens;
  return window === undefined ? Number.POSITIVE_INFINITY : window * size.fraction;
}

/** The messages whose texts are to leave the conversation for it to lose `excess` tokens, largest first. */
export function largestTexts(
  messages: readonly BaseMessage[],
  { excess, leaves }: { excess: number; leaves: (message: BaseMessage) => number },
): BaseMessage[] {
  const gains = messages
    .map((message) => ({ message, gain: leaves(message) }))
    .filter(({ gain }) => gain > 0)
    .sort((a, b) => b.gain - a.gain);
  const chosen: BaseMessage[] = [];
  let left = excess;
  for (const { message, gain } of gains) {
    if (left <= 0) break;
    chosen.push(message);
    left -= gain;
  }
  return chosen;
}
