/** Makes a long conversation shorter: old arguments, then a summary, then the largest texts. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { mergeConfigs } from "@langchain/core/runnables";
import { defined } from "../../core/unknown.ts";
import { errorMessage } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { headOf } from "../../core/text.ts";
import type { ModelRequest } from "../contracts/middleware.ts";
import { CONTEXT_CHANNELS } from "../contracts/state.ts";
import { PROMPTS } from "../messages/prompts.ts";
import { currentRun, spentBy } from "../budget/limits.ts";
import { SPENT } from "../budget/meter.ts";
import { contextWindow } from "../models/exchange.ts";
import { callModel } from "../models/call-model.ts";
import { findWrapping } from "../models/plain-model.ts";
import { joinStreams } from "../models/joined-stream.ts";
import { ModelAwaited } from "../models/client-model.ts";
import { modelFailure } from "../models/failure.ts";
import { readMarkup } from "../models/text-reply.ts";
import { answeredBy, tellModelCalled } from "../models/reply.ts";
import type { Compaction, ContextLimits, KeepOptions, TokenCounter } from "./compacted-view.ts";
import {
  ESTIMATE,
  compactedView,
  cutIndex,
  historyPath,
  exceedsTrigger,
  leaveOutMedia,
  moveTexts,
  splitTranscript,
  saveHistory,
  sinceId,
  transcript,
  triggerTokens,
} from "./compacted-view.ts";
import { messageKey } from "../models/media.ts";
import { isPerson, isReply, textOf, withStartNote } from "../messages/messages.ts";

export interface CompactOptions extends Summarizer, KeepOptions {
  limits: ContextLimits;
  /** The provider found the request too long, whatever the limits. */
  refused?: {
    /** Its estimated size. */
    tokens: number;
    /** Part of the request that would have fitted, if the provider reported it. */
    fitting: number | undefined;
  };
}

/** Growth of a conversation before an attempt that did not help is repeated. */
const GROWTH = 1.1;
/** Part of a refused request that the next one may have: there is no third one. */
const AFTER_REFUSAL = 1 / 2;
/** Part of a known window that is left free, because the estimate is not equally good for all texts. */
const MARGIN = 0.8;

export const requestTokens = (
  { systemPrompt, closingPrompt = "", tools }: ModelRequest,
  messages: readonly BaseMessage[],
  counter: TokenCounter,
): number =>
  counter.ofPrompt(systemPrompt + closingPrompt) + counter.ofTools(tools) + counter.ofAll(messages);

/** Tokens that a reply uses beyond those of its request, if the agent has not replied yet. */
const EXPECTED_OUTPUT = 500;

/** Estimates the tokens of a call: those of the agent's last one, else about the size of its request. */
export function expectedTokens(request: Omit<ModelRequest, "updateState">): number {
  const last = currentRun(request.messages).messages.findLast(isReply)?.usage_metadata?.total_tokens;
  if (last !== undefined && last > 0) return last;
  const { systemPrompt, tools, messages } = request;
  const sent = ESTIMATE.ofPrompt(systemPrompt) + ESTIMATE.ofTools(tools) + ESTIMATE.ofAll(messages);
  return sent + EXPECTED_OUTPUT;
}

/**
 * Shortens the model's view as little as necessary: old arguments, a summary, the largest texts, and media if
 * the provider refused it. The state takes it with the reply. Returns `before` itself when nothing could be done.
 */
export async function compact(
  request: ModelRequest,
  before: Compaction,
  options: CompactOptions,
): Promise<Compaction> {
  const { limits, counter, refused } = options;
  const target = Math.min(triggerTokens(limits), roomAfter(refused));
  const sizeOf = (compaction: Compaction): { tokens: number; messages: number } => {
    const view = compactedView(request.messages, compaction);
    return { tokens: requestTokens(request, view, counter), messages: view.length };
  };
  const isEnough = (compaction: Compaction): boolean => {
    const { tokens, messages } = sizeOf(compaction);
    return refused === undefined ? !exceedsTrigger(limits, tokens, messages) : tokens <= target;
  };
  const { waitUntil: _over, ...known } = before;
  const kept = sinceId(request.messages, known.keptFrom);
  let index = cutIndex(kept, limits, counter, roomAfter(refused) / 2);
  while (index > 0 && !kept[index]?.id) index -= 1; // the cut is stored as a message id
  const { id } = kept[index] ?? {};
  const cut = index === 0 || id === undefined ? undefined : { id, messages: kept.slice(0, index) };
  let after: Compaction = known;
  if (refused === undefined && cut && options.truncateArgs !== false) after = { ...known, fullFrom: cut.id };
  if (refused !== undefined || !isEnough(after)) after = await withSummary(request, known, cut, options);
  const { tokens } = sizeOf(after);
  if (tokens > target) after = await moveTexts(request, after, tokens - target, options);
  if (refused && !isEnough(after)) after = leaveOutMedia(request, after);
  if (refused === undefined && !isEnough(after))
    after = { ...after, waitUntil: Math.ceil(sizeOf(after).tokens * GROWTH) };
  if (JSON.stringify(after) === JSON.stringify(before)) return before;
  request.updateState({ [CONTEXT_CHANNELS.compaction]: after });
  tellCompacted(request, before, after, options);
  return after;
}

function tellCompacted(
  request: ModelRequest,
  before: Compaction,
  after: Compaction,
  options: CompactOptions,
): void {
  const { messages, runtime } = request;
  const { keptFrom, fullFrom, moved = {}, withoutMedia = [] } = after;
  const to = JSON.stringify([keptFrom, fullFrom, Object.keys(moved).length + withoutMedia.length]);
  const told = { kind: "compacted", to } as const;
  if (keptFrom !== before.keptFrom) {
    const summarized = sinceId(messages, before.keptFrom).length - sinceId(messages, keptFrom).length;
    const path = historyPath(request, options);
    return runtime.step.tell({ ...told, how: "summarized", messages: summarized, path });
  }
  const size = (message: BaseMessage | undefined) => (message ? options.counter.ofAll([message]) : 0);
  const shown = compactedView(messages, before);
  const shorter = compactedView(messages, after).filter((message, at) => size(message) < size(shown[at]));
  if (shorter.length > 0) runtime.step.tell({ ...told, how: "shortened", messages: shorter.length });
}

const roomAfter = (refused: CompactOptions["refused"]): number =>
  refused ? refused.tokens * Math.min(AFTER_REFUSAL, (refused.fitting ?? 1) * MARGIN) : Infinity;

/** Saves and summarizes the messages to cut off, up to that with `id`, which stays. If either fails, nothing is cut. */
async function withSummary(
  request: ModelRequest,
  known: Compaction,
  cut: { id: string; messages: readonly BaseMessage[] } | undefined,
  options: CompactOptions,
): Promise<Compaction> {
  if (!cut) return known;
  const saved = cut.messages.findIndex(({ id }) => id !== undefined && id === known.savedUpTo);
  const path = await saveHistory(request, cut.messages.slice(Math.max(saved, 0)), options);
  const summary = path && (await summarize(transcript(cut.messages), known.summary, request, options));
  if (path === undefined || summary === undefined) {
    request.runtime.step.tell({ kind: "warning", message: NOT_SUMMARIZED });
    return path === undefined ? known : { ...known, savedUpTo: cut.id };
  }
  const { fullFrom: _earlier, moved = {}, ...rest } = known;
  const shown = new Set(sinceId(request.messages, cut.id).map(messageKey));
  const stillMoved = Object.entries(moved).filter(([key]) => shown.has(key));
  const { limits, refused } = options;
  const tokens = Math.min(triggerTokens(limits), limits.maxInputTokens ?? Infinity, roomAfter(refused));
  const room = Math.min(MOST_WORDS, Math.floor(tokens * WORDS_PART * CHARS_PER_TOKEN));
  return {
    ...rest,
    ...(known.moved ? { moved: Object.fromEntries(stillMoved) } : {}),
    keptFrom: cut.id,
    savedUpTo: cut.id,
    summary: `[Summary of the conversation so far. Its full text is in ${path}; read the part you need there.]\n\n${summary}`,
    ...defined({ verbatim: verbatimText(request, cut.id, { path, room }) }),
  };
}

/** Part of the limit that messages of people may take up after a summary, and the most characters for them. */
const WORDS_PART = 0.2;
const MOST_WORDS = 20_000;

/** The file with the full text, and the characters that the messages may take up. */
type Words = { path: string; room: number };

/** Keeps the messages of people and the todo list beside the summary. Returns undefined if there are none. */
function verbatimText({ state: { todos }, messages }: ModelRequest, keptFrom: string, words: Words) {
  const end = messages.findIndex(({ id }) => id === keptFrom);
  const said = fittingMessages(messages.slice(0, end).filter(isPerson).map(withStartNote).map(textOf), words);
  const list = todos.map(({ content, status }) => `- [${status}] ${content}`);
  const parts = [
    ...(said.length === 0 ? [] : [["Messages of the person, word for word:", ...said].join("\n\n")]),
    ...(list.length === 0 ? [] : [["Todo list at this point:", ...list].join("\n")]),
  ];
  return parts.length === 0 ? undefined : parts.join("\n\n");
}

/** Chooses the first message, then the newest ones, as far as there is room, and cuts those that fit in part. */
export function fittingMessages(texts: readonly string[], { path, room }: Words): string[] {
  const newestFirst = [...texts.keys()].slice(1).reverse();
  const chosen = new Map<number, string>();
  let left = room;
  for (const at of texts.length === 0 ? [] : [0, ...newestFirst]) {
    const text = texts[at] ?? "";
    // If the task is long, half of the space is kept for the latest messages.
    const most = at === 0 && texts.length > 1 ? left / 2 : left;
    // A shorter beginning of a message is not worth its place.
    if (text.length > most && most < 200) break;
    const cut = text.length > most ? `\n[… cut; the whole message is in ${path}]` : "";
    chosen.set(at, headOf(text, most) + cut);
    left -= Math.min(text.length, most);
  }
  const messages = [...chosen].sort(([a], [b]) => a - b).map(([, text]) => `<message>\n${text}\n</message>`);
  const leftOut = texts.length - chosen.size;
  const note = `[${leftOut} more messages between these are in ${path}]`;
  return leftOut === 0 ? messages : [...messages.slice(0, 1), note, ...messages.slice(1)];
}

const NOT_SUMMARIZED =
  "The conversation is long, and its beginning could not be summarized, so it is kept. The server's log has the reason.";

interface Summarizer {
  /** Default: the model of the request. */
  model?: BaseChatModel;
  prompt?: string;
  log: Logger;
}

/** Maximum number of requests to a model that returns an empty summary. */
const ATTEMPTS = 2;
const CHARS_PER_TOKEN = 4;
/** Part of the window that one piece may fill: characters measure tokens only roughly. */
const PIECE_PART = 0.5;
/** A piece where the window is not known, in tokens. */
const PIECE_TOKENS = 80_000;
/** A piece that is too long for the model even at this many characters is not cut further. */
const SMALLEST_PIECE = 4000;

/** Summarizes a transcript and the summary before it, if need be piece by piece; `undefined`: there is none. */
async function summarize(
  text: string,
  earlier: string | undefined,
  request: ModelRequest,
  { model = request.model, prompt = PROMPTS.summary, log }: Summarizer,
): Promise<string | undefined> {
  const window = contextWindow(model);
  const size = (window === undefined ? PIECE_TOKENS : window * PIECE_PART) * CHARS_PER_TOKEN;
  const pieces = splitTranscript(text, Math.max(Math.floor(size), SMALLEST_PIECE));
  let summary = earlier;
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    const before = summary ? `Summary of what came before:\n\n${summary}\n\n` : "";
    const messages = [new SystemMessage(prompt), new HumanMessage(before + piece)];
    const answer = await askForSummary(messages, request, { model, log });
    if (answer === "too long" && piece.length > SMALLEST_PIECE) {
      pieces.unshift(...splitTranscript(piece, Math.ceil(piece.length / 2)));
      continue;
    }
    if (typeof answer === "string") return undefined;
    summary = answer.text;
  }
  return summary;
}

async function askForSummary(
  messages: BaseMessage[],
  request: ModelRequest,
  { model, log }: { model: BaseChatModel; log: Logger },
): Promise<{ text: string } | "none" | "too long"> {
  const { signal, step } = request.runtime;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    try {
      const ask = (oneTry: { maxRetries: 0 }) => {
        const options = mergeConfigs(findWrapping(model), { ...oneTry, ...defined({ signal }) });
        return joinStreams(model).invoke(messages, options);
      };
      const reply = await callModel({ ...request, model }, ask, { step, signal, log });
      readMarkup(reply, []);
      // Counts the cost of the summary towards the agent's limits, also after a restart.
      const told = answeredBy(reply, model);
      tellModelCalled(told, step, "summary");
      const spent = spentBy(told, step.budget.limits);
      step.budget.add(spent);
      request.updateState({ [SPENT]: { run: currentRun(request.messages).id, ...spent } });
      if (reply.text.trim() !== "") return { text: reply.text.trim() };
    } catch (error) {
      if (signal?.aborted || error instanceof ModelAwaited) throw error;
      if (modelFailure(error).code === "context_overflow") return "too long";
      log.warn("summary_failed", { problem: errorMessage(error) });
      return "none";
    }
  }
  return "none";
}
