import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";

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

const CHARS_PER_TOKEN = 4;
const counts = new WeakMap<BaseMessage, number>();

/** Estimated tokens of a message, about four characters each. Counted once per message. */
export function tokensOf(message: BaseMessage): number {
  const known = counts.get(message);
  if (known !== undefined) return known;
  const { content } = message;
  const text =
    typeof content === "string" ? content.length : content.reduce((sum, block) => sum + charsOf(block), 0);
  const calls = AIMessage.isInstance(message) ? JSON.stringify(message.tool_calls ?? []) : "";
  const tokens = Math.ceil((text + calls.length) / CHARS_PER_TOKEN);
  counts.set(message, tokens);
  return tokens;
}

/** About what providers count for an image; media are not counted by the length of their data. */
const MEDIA_TOKENS = 1600;
const MEDIA: ReadonlySet<string> = new Set(["image", "image_url", "audio", "video", "file", "document"]);
/** Calls in a provider's own form, which the message has in ours too. */
const CALLS: ReadonlySet<string> = new Set(["tool_use", "tool_call", "function_call", "input_json_delta"]);

function charsOf(block: Exclude<BaseMessage["content"], string>[number]): number {
  if (CALLS.has(block.type)) return 0;
  return MEDIA.has(block.type) ? MEDIA_TOKENS * CHARS_PER_TOKEN : JSON.stringify(block).length;
}

export const tokensOfText = (text: string): number => Math.ceil(text.length / CHARS_PER_TOKEN);

export const tokensOfAll = (messages: readonly BaseMessage[]): number =>
  messages.reduce((sum, message) => sum + tokensOf(message), 0);

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

/**
 * Where to cut: the index of the first message that stays. A reply and its results are never separated.
 * 0: there is nothing to cut off.
 */
export function cutIndex(messages: readonly BaseMessage[], limits: ContextLimits): number {
  let index = messages.length - keptMessages(messages, limits);
  while (index > 0 && ToolMessage.isInstance(messages[index])) index -= 1;
  return index;
}

function keptMessages(messages: readonly BaseMessage[], { keep, maxInputTokens }: ContextLimits): number {
  if ("messages" in keep) return Math.min(keep.messages, messages.length);
  const budget = inTokens(keep, maxInputTokens);
  let tokens = 0;
  let kept = 0;
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    tokens += message ? tokensOf(message) : 0;
    if (tokens > budget) break;
    kept += 1;
  }
  return Math.max(kept, 1);
}

function inTokens(size: { fraction: number } | { tokens: number }, window: number | undefined): number {
  if ("tokens" in size) return size.tokens;
  return window === undefined ? Number.POSITIVE_INFINITY : window * size.fraction;
}
