import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { errorMessage } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { currentRun, spentBy } from "../limits/limits.ts";
import { SPENT } from "../limits/meter.ts";
import type { ModelRequest } from "../middleware/middleware.ts";
import { callModel } from "../models/call-model.ts";
import { ModelAwaited } from "../models/client-model.ts";
import { modelFailure } from "../models/failure.ts";
import { answeredBy, emitModelCalled } from "../models/reply.ts";
import { SUMMARY_PROMPT } from "../prompts.ts";
import { meterOf } from "../step.ts";
import { piecesOf } from "./transcript.ts";

export interface Summarizer {
  /** Default: the model of the request. */
  model?: BaseChatModel;
  prompt?: string;
  log: Logger;
}

/** How often a model that gives an empty summary is asked. */
const ATTEMPTS = 2;
const CHARS_PER_TOKEN = 4;
/** Part of the window that one piece may fill: characters are no exact measure of tokens. */
const PIECE_PART = 0.5;
/** A piece where the window is not known, in tokens. */
const PIECE_TOKENS = 80_000;
/** A piece that is too long for the model even at this many characters is not cut further. */
const SMALLEST_PIECE = 4000;

/**
 * A summary of a transcript and of what was summarized before. What does not fit into one request is
 * summarized piece by piece, each with the summary so far.
 *
 * @returns `undefined` when the model gave none.
 */
export async function summarize(
  text: string,
  earlier: string | undefined,
  request: ModelRequest,
  { model = request.model, prompt = SUMMARY_PROMPT, log }: Summarizer,
): Promise<string | undefined> {
  const window = model.profile.maxInputTokens;
  const size = (window === undefined ? PIECE_TOKENS : window * PIECE_PART) * CHARS_PER_TOKEN;
  const pieces = piecesOf(text, Math.max(Math.floor(size), SMALLEST_PIECE));
  let summary = earlier;
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    const before = summary ? `Summary of what came before:\n\n${summary}\n\n` : "";
    const answer = await ask([new SystemMessage(prompt), new HumanMessage(before + piece)], request, {
      model,
      log,
    });
    if (answer === "too long" && piece.length > SMALLEST_PIECE) {
      pieces.unshift(...piecesOf(piece, Math.ceil(piece.length / 2)));
      continue;
    }
    if (typeof answer === "string") return undefined;
    summary = answer.text;
  }
  return summary;
}

type Answer = { text: string } | "none" | "too long";

async function ask(
  messages: [SystemMessage, HumanMessage],
  request: ModelRequest,
  { model, log }: { model: BaseChatModel; log: Logger },
): Promise<Answer> {
  const { signal } = request.runtime;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    try {
      const reply = await callModel(
        { ...request, model },
        (oneTry) => model.invoke(messages, { ...oneTry, ...(signal ? { signal } : {}) }),
        { scope: request.runtime, log },
      );
      count(reply, request, model);
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

/** What the summary cost belongs to the agent: it counts towards its limits, also after a restart. */
function count(reply: AIMessage, request: ModelRequest, model: BaseChatModel): void {
  const { runtime, messages } = request;
  const meter = meterOf(runtime, {});
  const told = answeredBy(reply, model);
  emitModelCalled(told, runtime, { prices: meter.limits.prices, purpose: "summary" });
  const spent = spentBy(told, meter.limits);
  meter.add(spent);
  request.updateState({ [SPENT]: { run: currentRun(messages).id, ...spent } });
}
