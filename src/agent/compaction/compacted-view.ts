/** The conversation as the model sees it after compaction: where it is cut, and the files that keep the rest. */
import { createHash } from "node:crypto";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { BackendSource } from "../../backends/backend.ts";
import { sanitizeToolCallId } from "../../backends/paths.ts";
import { byGrowth, byIdentity, byValue } from "../../core/by-identity.ts";
import type { Logger } from "../../core/logger.ts";
import { headOf } from "../../core/text.ts";
import type { ModelRequest } from "../contracts/middleware.ts";
import { isMedia, messageKey, mediaLeftOut, mediaName } from "../models/media.ts";
import { type Block, callsOf, copyMessage, textOf, toolText } from "../messages/messages.ts";
import type { KeepingPlace, MarkedPart } from "../messages/kept-texts.ts";
import {
  HISTORY_FOLDER,
  RESULTS_FOLDER,
  appendParts,
  keepText,
  messagePreview,
  resultPreview,
  withText,
} from "../messages/kept-texts.ts";

/** A size of context: part of the model's window, tokens, or messages. */
export type ContextSize = { fraction: number } | { tokens: number } | { messages: number };

/** Sizes that trigger compaction, and the part at the end of a conversation that is kept. */
export interface ContextLimits {
  /** Any of them is enough. */
  trigger: readonly ContextSize[];
  keep: ContextSize;
  /** The model's window in tokens, when known. */
  maxInputTokens: number | undefined;
}

/** The defaults: 85 % and 10 % of a known window, else 170,000 tokens and 6 messages. */
export const defaultLimits = (maxInputTokens: number | undefined): ContextLimits =>
  maxInputTokens === undefined
    ? { trigger: [{ tokens: 170_000 }], keep: { messages: 6 }, maxInputTokens }
    : { trigger: [{ fraction: 0.85 }], keep: { fraction: 0.1 }, maxInputTokens };

/** True if a request of this size is to be compacted. A fraction of an unknown window never triggers. */
export const exceedsTrigger = (
  { trigger, maxInputTokens }: ContextLimits,
  tokens: number,
  messages: number,
): boolean =>
  trigger.some((size) => {
    const most = sizeBounds(size, maxInputTokens);
    return tokens >= most.tokens || messages >= most.messages;
  });

/** The fewest tokens that trigger; infinite where only messages do. */
export const triggerTokens = ({ trigger, maxInputTokens }: ContextLimits): number =>
  Math.min(Infinity, ...trigger.map((size) => sizeBounds(size, maxInputTokens).tokens));

/** A size in tokens and in messages, one of which has no bound. */
function sizeBounds(size: ContextSize, window: number | undefined): { tokens: number; messages: number } {
  if ("messages" in size) return { tokens: Infinity, messages: size.messages };
  const tokens = "tokens" in size ? size.tokens : window === undefined ? Infinity : window * size.fraction;
  return { tokens, messages: Infinity };
}

/**
 * The index of the first message that stays; 0: nothing is cut off. A reply and its results are never separated.
 *
 * @param atMost tokens that may stay, whatever the `limits`; the last message always stays.
 */
export function cutIndex(
  messages: readonly BaseMessage[],
  limits: ContextLimits,
  counter: TokenCounter = ESTIMATE,
  atMost: number = Infinity,
): number {
  const most = sizeBounds(limits.keep, limits.maxInputTokens);
  let left = Math.min(atMost, most.tokens);
  let index = messages.length;
  for (const message of messages.toReversed()) {
    left -= counter.of(message);
    if (left < 0 || messages.length - index >= most.messages) break;
    index -= 1;
  }
  index = Math.min(index, messages.length - 1);
  while (index > 0 && ToolMessage.isInstance(messages[index])) index -= 1;
  return index;
}

/** Calls in a provider's own form, which the message has in ours too. */
const CALLS: ReadonlySet<string> = new Set(["tool_use", "tool_call", "function_call", "input_json_delta"]);

/** Characters of scripts in which each is about a token. */
function denseChars(text: string): number {
  if (!/[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]/.test(text)) return 0;
  let dense = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 0x2e80 && (code <= 0xd7ff || code >= 0xf900)) dense += 1;
  }
  return dense;
}

/** Counts each message, each tool and each system prompt once, however often it is sent. */
export class TokenCounter {
  readonly #count: (text: string) => number;
  readonly of: (message: BaseMessage) => number;
  readonly ofAll: (messages: readonly BaseMessage[]) => number;
  readonly #ofTool: (tool: StructuredToolInterface) => number;
  #prompt = { text: "", tokens: 0 };

  /** Default: about four characters a token, and one in Chinese, Japanese and Korean. */
  constructor(count = (text: string): number => Math.ceil(text.length / 4 + denseChars(text) * 0.75)) {
    this.#count = count;
    this.of = byIdentity((message) => {
      const { content } = message;
      const calls = callsOf(message);
      const said =
        typeof content === "string"
          ? this.#count(content)
          : content.reduce((sum, block) => sum + this.#ofBlock(block), 0);
      return said + (calls.length === 0 ? 0 : this.#count(JSON.stringify(calls)));
    });
    this.ofAll = byGrowth(
      () => 0,
      (sum, message: BaseMessage) => sum + this.of(message),
    );
    this.#ofTool = byIdentity((tool) => count(toolText(tool)));
  }

  ofTools(tools: readonly StructuredToolInterface[]): number {
    return tools.reduce((sum, tool) => sum + this.#ofTool(tool), 0);
  }

  ofPrompt(text: string): number {
    if (this.#prompt.text !== text) this.#prompt = { text, tokens: this.#count(text) };
    return this.#prompt.tokens;
  }

  #ofBlock(block: Block): number {
    if (CALLS.has(block.type)) return 0;
    // Providers count about as many tokens for an image, however long its data is.
    if (isMedia(block)) return 1600;
    return this.#count(typeof block["text"] === "string" ? block["text"] : JSON.stringify(block));
  }
}

/** Estimates tokens without a tokenizer. */
export const ESTIMATE = new TokenCounter();

/** The compaction of a thread. Its messages stay in the state. */
export interface Compaction {
  /** Id of the first message that the model still sees as it is. */
  keptFrom?: string;
  /** The summary in place of everything before it. */
  summary?: string;
  /** Shown below the summary: messages of people before `keptFrom`, as far as they fit, and the todo list. */
  verbatim?: string;
  /** Id of the first message whose long arguments are shown in full. */
  fullFrom?: string;
  /** Files with the texts of single messages that alone were too long, by `keyOf` the message. */
  moved?: Readonly<Record<string, string>>;
  /** Messages whose images and documents are not shown, by `keyOf` the message. */
  withoutMedia?: readonly string[];
  /** Id of the first message that the history file does not have. */
  savedUpTo?: string;
  /** Tokens from which on it is tried again, after an attempt that did not help enough. */
  waitUntil?: number;
}

const LONG_ARGUMENT = 2000;
/** Longest line in the preview of a moved text, when there is hardly any room. */
const MOVED_LINE_CHARS = 200;

/** The messages as the model sees them after all compactions so far. */
export function compactedView(messages: BaseMessage[], compaction: Compaction): BaseMessage[] {
  const kept = sinceId(messages, compaction.keptFrom);
  const full = kept.findIndex(({ id }) => id !== undefined && id === compaction.fullFrom);
  const shortened =
    full <= 0 ? kept : kept.map((message, i) => (i < full ? shortenArguments(message) : message));
  const { moved, withoutMedia } = compaction;
  const paths = moved && new Map(Object.entries(moved));
  const texts = paths
    ? shortened.map((message) => {
        const path = paths.get(messageKey(message) ?? "");
        return path === undefined ? message : shortMessage(message)(path);
      })
    : shortened;
  const bare = new Set(withoutMedia);
  // Without a compaction it stays the same array: LangChain's middleware for context editing changes it in place.
  const shown = withoutMedia
    ? texts.map((message) => (bare.has(messageKey(message) ?? "") ? omitMedia(message) : message))
    : texts;
  if (compaction.summary === undefined || kept === messages) return shown;
  const content = [compaction.summary, compaction.verbatim ?? []].flat().join("\n\n");
  return [new HumanMessage({ content, additional_kwargs: { lc_source: "summarization" } }), ...shown];
}

/** `messages` from the one with this id on; all of them if it is missing. */
export function sinceId(messages: BaseMessage[], id: string | undefined): BaseMessage[] {
  const index = id === undefined ? -1 : messages.findIndex((message) => message.id === id);
  return index <= 0 ? messages : messages.slice(index);
}

function movedText(message: BaseMessage, path: string): string {
  const text = textOf(message);
  return ToolMessage.isInstance(message)
    ? resultPreview(message.name ?? "tool", text, path, MOVED_LINE_CHARS)
    : messagePreview(text, path, MOVED_LINE_CHARS);
}

/** A message whose text is in a file, by the path of the file. */
const shortMessage = byIdentity((message: BaseMessage) =>
  byValue((path: string) =>
    copyMessage(message, { content: withText(message.content, movedText(message, path)) }),
  ),
);

const omitMedia = byIdentity((message: BaseMessage) =>
  mediaLeftOut(message, "with it the conversation is too long to read"),
);

/** A reply whose long file contents in tool arguments are cut; ids and everything else stay. */
const shortenArguments = byIdentity((message: BaseMessage): BaseMessage => {
  if (!AIMessage.isInstance(message)) return message;
  const made = callsOf(message);
  const calls = made.map((call) => ({ ...call, args: shortArgs(call.args) }));
  if (calls.every((call, i) => call.args === made[i]?.args)) return message;
  // Providers may repeat a call as a content block: the block is cut the same way.
  const inputs = new Map(calls.map(({ id, args }) => [id, args]));
  const short = (block: Block): Block => {
    const input = block.type === "tool_use" ? inputs.get(String(block["id"])) : undefined;
    return input ? { ...block, input } : block;
  };
  const { content } = message;
  return copyMessage(message, {
    content: typeof content === "string" ? content : content.map(short),
    tool_calls: calls,
  });
});

function shortArgs(args: Record<string, unknown>): Record<string, unknown> {
  const long = ["content", "old_string", "new_string"].filter((key) => {
    const value = args[key];
    return typeof value === "string" && value.length > LONG_ARGUMENT;
  });
  if (long.length === 0) return args;
  const cut = long.map((key) => {
    const value = String(args[key]);
    return [key, `${headOf(value, 200)}\n[… shortened here; ${value.length} characters were passed]`];
  });
  return { ...args, ...Object.fromEntries(cut) };
}

export interface KeepOptions {
  backend: BackendSource;
  counter: TokenCounter;
  log: Logger;
  historyPathPrefix?: string;
  truncateArgs?: boolean;
}

/** Moves as many of the largest texts into files as it takes, and shortens all arguments but the newest. */
export async function moveTexts(
  request: ModelRequest,
  known: Compaction,
  excess: number,
  options: KeepOptions,
): Promise<Compaction> {
  const messages = sinceId(request.messages, known.keptFrom);
  const newest = messages.findLast((message) => AIMessage.isInstance(message))?.id;
  const short: Compaction =
    newest === undefined || options.truncateArgs === false ? known : { ...known, fullFrom: newest };
  const shown = (compaction: Compaction) =>
    options.counter.ofAll(compactedView(request.messages, compaction));
  let left = excess - (shown(known) - shown(short));
  const place = await keepingPlace(request, options);
  const moved = new Map(Object.entries(known.moved ?? {}));
  const leaves = (message: BaseMessage) => {
    const key = messageKey(message);
    if (key === undefined || moved.has(key)) return 0;
    // The preview names the file; any path is as good for measuring it.
    return (textOf(message).length - movedText(message, RESULTS_FOLDER).length) / 4;
  };
  const gains = messages.map((message) => ({ message, gain: leaves(message) }));
  for (const { message, gain } of gains.sort((a, b) => b.gain - a.gain)) {
    if (left <= 0 || gain <= 0) break;
    left -= gain;
    const key = messageKey(message) ?? "";
    const { historyPathPrefix = HISTORY_FOLDER } = options;
    const name = sanitizeToolCallId(key);
    const isResult = ToolMessage.isInstance(message);
    const path = isResult ? `${RESULTS_FOLDER}/${name}` : `${historyPathPrefix}/message-${name}.md`;
    const kept = await keepText(path, textOf(message), place);
    if (!kept) continue;
    request.updateState({ files: kept.update });
    moved.set(key, kept.path);
  }
  return moved.size === 0 ? short : { ...short, moved: Object.fromEntries(moved) };
}

/** The tokens of documents and images cannot be estimated: the model continues without them, the thread keeps them. */
export function leaveOutMedia(request: ModelRequest, known: Compaction): Compaction {
  const keys = sinceId(request.messages, known.keptFrom)
    .filter(({ content }) => typeof content !== "string" && content.some(isMedia))
    .flatMap((message) => messageKey(message) ?? []);
  return keys.length === 0 ? known : { ...known, withoutMedia: keys };
}

async function keepingPlace(
  { runtime, state }: ModelRequest,
  { backend, log }: KeepOptions,
): Promise<KeepingPlace> {
  const { step } = runtime;
  return { backend: await step.backend(backend, state, log), files: step.files };
}

/** The file for messages that leave an agent's conversation. Each subagent has a file of its own. */
export function historyPath(
  { runtime }: ModelRequest,
  { historyPathPrefix = HISTORY_FOLDER }: KeepOptions,
): string {
  const owner = [runtime.threadId ?? "thread", ...runtime.step.agent.map(({ callId }) => callId)].join("-");
  return `${historyPathPrefix}/${sanitizeToolCallId(owner)}.md`;
}

/** Adds new messages to the thread's history file; returns its path, or undefined if it could not be written. */
export async function saveHistory(
  request: ModelRequest,
  messages: readonly BaseMessage[],
  options: KeepOptions,
): Promise<string | undefined> {
  const path = historyPath(request, options);
  const parts = markedTranscript(request.messages, messages);
  const kept = await appendParts(path, parts, await keepingPlace(request, options));
  if (kept) request.updateState({ files: kept.update });
  else options.log.warn("history_not_saved", { path });
  return kept && path;
}

/** Messages as Markdown, in full, for the file that keeps them when they leave the conversation. */
export function transcript(messages: readonly BaseMessage[]): string {
  const parts = messages.map((message) => {
    const { content } = message;
    // Markdown cannot show the media of a message. The thread's own messages still have them.
    const media = typeof content === "string" ? [] : content.filter(isMedia);
    const calls = callsOf(message).map(
      ({ id, name, args }) => `Call ${name} (${id ?? ""}): ${JSON.stringify(args)}`,
    );
    const body = [message.text, ...media.map((block) => `[${mediaName(block)}]`), ...calls];
    return `## ${transcriptTitle(message)}\n\n${body.filter((part) => part !== "").join("\n\n")}\n`;
  });
  return parts.join("\n");
}

/**
 * Messages as a file keeps them, each with a mark of its own, always the same. `thread` has the replies whose calls the
 * results belong to.
 */
function markedTranscript(thread: readonly BaseMessage[], messages: readonly BaseMessage[]): MarkedPart[] {
  const wanted = new Set(messages);
  const parts: MarkedPart[] = [];
  let reply = "";
  for (const message of thread) {
    if (AIMessage.isInstance(message)) reply = message.id ?? "";
    if (!wanted.has(message)) continue;
    const id = ToolMessage.isInstance(message) ? [reply, message.tool_call_id] : [message.id];
    const text = transcript([message]);
    const hash = createHash("sha256").update(JSON.stringify([...id, text]));
    parts.push({ text, mark: `<!-- ${hash.digest("hex").slice(0, 16)} -->` });
  }
  return parts;
}

/** A transcript in pieces of at most `size` characters, cut between messages or lines where that is possible. */
export function splitTranscript(text: string, size: number): string[] {
  const pieces: string[] = [];
  let rest = text;
  while (rest.length > size) {
    const head = headOf(rest, size);
    const end = [head.lastIndexOf("\n## "), head.lastIndexOf("\n")].find((at) => at > size / 2);
    const piece = end === undefined ? head : head.slice(0, end + 1);
    pieces.push(piece);
    rest = rest.slice(piece.length);
  }
  return [...pieces, rest];
}

function transcriptTitle(message: BaseMessage): string {
  if (HumanMessage.isInstance(message)) return "Person";
  if (AIMessage.isInstance(message)) return "Agent";
  if (ToolMessage.isInstance(message))
    return `Result of ${message.name ?? "a tool"} (${message.tool_call_id})`;
  return message.getType();
}
