/** Estimates the tokens of a conversation and plans where to cut it. */
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { byIdentity } from "../../core/by-identity.ts";

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

const CHARS_PER_TOKEN = 4;

/** About what providers count for an image; media are not counted by the length of their data. */
const MEDIA_TOKENS = 1600;
const MEDIA: ReadonlySet<string> = new Set(["image", "image_url", "audio", "video", "file", "document"]);
type Block = Exclude<BaseMessage["content"], string>[number];

export const isMedia = ({ type }: Block): boolean => MEDIA.has(type);

/** The name of a block of media that cannot be shown: its MIME type, or its kind. */
export function mediaName(block: Block): string {
  const type: unknown = block["mimeType"] ?? block["mime_type"];
  return typeof type === "string" ? type : block.type;
}

/** Calls in a provider's own form, which the message has in ours too. */
const CALLS: ReadonlySet<string> = new Set(["tool_use", "tool_call", "function_call", "input_json_delta"]);

/** Counts each message, each tool and each system prompt once, however often it is sent. */
export class TokenCounter {
  readonly #count: (text: string) => number;
  readonly of: (message: BaseMessage) => number;
  readonly #ofTool: (tool: StructuredToolInterface) => number;
  #prompt = { text: "", tokens: 0 };

  /** Default: about four characters a token. */
  constructor(count: (text: string) => number = (text) => Math.ceil(text.length / CHARS_PER_TOKEN)) {
    this.#count = count;
    this.of = byIdentity((message) => this.#ofMessage(message));
    this.#ofTool = byIdentity((tool) => count(toolText(tool)));
  }

  ofAll(messages: readonly BaseMessage[]): number {
    return messages.reduce((sum, message) => sum + this.of(message), 0);
  }

  ofTools(tools: readonly StructuredToolInterface[]): number {
    return tools.reduce((sum, tool) => sum + this.#ofTool(tool), 0);
  }

  ofPrompt(text: string): number {
    if (this.#prompt.text !== text) this.#prompt = { text, tokens: this.#count(text) };
    return this.#prompt.tokens;
  }

  #ofMessage(message: BaseMessage): number {
    const { content } = message;
    const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
    const said =
      typeof content === "string"
        ? this.#count(content)
        : content.reduce((sum, block) => sum + this.#ofBlock(block), 0);
    return said + (calls.length === 0 ? 0 : this.#count(JSON.stringify(calls)));
  }

  #ofBlock(block: Block): number {
    if (CALLS.has(block.type)) return 0;
    if (isMedia(block)) return MEDIA_TOKENS;
    return this.#count(typeof block["text"] === "string" ? block["text"] : JSON.stringify(block));
  }
}

/** The definition of a tool, about as providers write it for the model. */
export function toolText({ name, description, schema }: StructuredToolInterface): string {
  return `${name}\n${description}\n${JSON.stringify(parametersOf(schema))}`;
}

function parametersOf(schema: StructuredToolInterface["schema"]): unknown {
  if (!isInteropZodSchema(schema)) return schema;
  try {
    return toJsonSchema(schema);
  } catch {
    return {}; // a schema that has no such form is for whoever binds the tool to refuse
  }
}

/** Estimates tokens where no tokenizer is given. */
export const ESTIMATE = new TokenCounter();

export const tokensOf = (message: BaseMessage): number => ESTIMATE.of(message);
