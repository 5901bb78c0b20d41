/** Calls a model and tries again while its failure may pass; the pieces of a stream are joined in linear time. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  AIMessageChunk,
  type AIMessageChunkFields,
  type BaseMessageChunk,
  _mergeDicts,
  _mergeLists,
  mergeContent,
  mergeUsageMetadata,
} from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { monotonicClock, pause } from "../../core/clock.ts";
import { DeepAgentError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { oneLine } from "../../core/text.ts";
import type { ModelRequest } from "../contracts/middleware.ts";
import type { Step } from "../contracts/step.ts";
import { type FailureFacts, failureFacts, problemOf } from "./failure.ts";
import { isEnd } from "./provider-words.ts";
import {
  LONGEST_REPLY,
  cutPiece,
  finishReasonOf,
  modelName,
  replyOf,
  sizeOfPiece,
  withRefusal,
} from "./reply.ts";
import { ModelStreamBrokenError } from "./silence.ts";

/** Default retry time of a failed call if the agent has no limit of its own, in ms. */
const PATIENCE_MS = 60_000;
/** The same while another model is ready to take over. */
const SPARE_PATIENCE_MS = 5_000;
/** The first pause between two tries, and the longest; each is twice the one before. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;

/** Keeps LangChain's packages from retrying by themselves; some read it here only, not where they are built. */
export interface OneTry {
  maxRetries: 0;
}

/** The work that a model call is part of. */
interface Calling {
  step: Step;
  signal: AbortSignal | undefined;
  log: Logger;
}

/**
 * Calls a model. This is the only place that retries a failed call: after growing pauses, while the failure may pass
 * and the agent's patience lasts (`limits.modelPatienceMs`). Each retry is reported to those who watch, each try to the
 * tracer of the run. Nothing of a broken answer is used.
 *
 * @throws the last error of the model; the reason of the signal, at once, when the run is stopped in a pause.
 */
export async function callModel(
  { model, hasSpare }: Pick<ModelRequest, "model" | "hasSpare">,
  ask: (options: OneTry) => Promise<unknown>,
  { step, signal, log }: Calling,
): Promise<AIMessage> {
  const { modelPatienceMs = PATIENCE_MS } = step.budget.limits;
  const patienceMs = hasSpare ? Math.min(modelPatienceMs, SPARE_PATIENCE_MS) : modelPatienceMs;
  let givenUpAt: number | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callOnce(step, model, ask);
    } catch (error) {
      if (signal?.aborted || error instanceof DeepAgentError) throw error;
      const facts = failureFacts(error);
      const now = monotonicClock();
      givenUpAt ??= now + patienceMs;
      const pauseMs = pauseAfter(facts, { attempt, leftMs: givenUpAt - now, chance: Math.random() });
      if (pauseMs === undefined) throw error;
      const { reason, status } = facts;
      const seconds = Math.ceil(pauseMs / 1000);
      const message = `${problemOf(facts)}, retrying in ${seconds} s (attempt ${attempt})`;
      log.warn("model_call_retried", { model: modelName(model), reason, status, attempt, pauseMs });
      const told = { model: modelName(model), reason, message, attempt, pauseMs };
      step.tell({ kind: "model_retry", ...told });
      await pause(pauseMs, signal);
    }
  }
}

/**
 * Pause before a failed call is retried, in ms; `undefined`: it is given up. `chance`, from 0 to 1, spreads the tries
 * of agents that failed together. The pause that the provider asks for is never cut short.
 */
export function pauseAfter(
  { retryable, retryAfterMs = 0 }: Pick<FailureFacts, "retryable" | "retryAfterMs">,
  { attempt, leftMs, chance }: { attempt: number; leftMs: number; chance: number },
): number | undefined {
  if (!retryable || leftMs <= 0 || retryAfterMs > leftMs) return undefined;
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
  const own = Math.min((longest * (1 + chance)) / 2, leftMs);
  return Math.ceil(Math.max(own, retryAfterMs));
}

async function callOnce(
  step: Step,
  model: BaseChatModel,
  ask: (options: OneTry) => Promise<unknown>,
): Promise<AIMessage> {
  joinStream(model);
  const trace = step.traceModel(model);
  try {
    const reply = await ask({ maxRetries: 0 });
    if (!AIMessage.isInstance(reply)) {
      throw new Error("The model answered with something that is not an assistant message.");
    }
    const reason = finishReasonOf(reply);
    if (reason !== undefined && !isEnd(reason))
      throw new ModelStreamBrokenError(`the provider ended the answer with '${oneLine(reason, 60)}'`);
    trace?.answered(reply);
    return withRefusal(reply);
  } catch (error) {
    trace?.failed(error);
    throw error;
  }
}

/** Models whose streams are joined already. */
const joined = new WeakSet<BaseChatModel>();

/**
 * Makes a model join the pieces of its streamed answers in linear time, up to `longest` bytes. LangChain builds a
 * message of all pieces for each new one, and each message parses the arguments of all its calls again. Listeners, by
 * callbacks or by `stream`, still get the pieces at once.
 */
export function joinStream(model: BaseChatModel, longest = LONGEST_REPLY): void {
  // LangChain sees that a model can stream by this method being overridden.
  if (joined.has(model) || model._streamResponseChunks === BaseChatModel.prototype._streamResponseChunks)
    return;
  joined.add(model);
  const stream = model._streamResponseChunks.bind(model);
  model._streamResponseChunks = async function* (...call) {
    let isFirst = true;
    for await (const piece of stream(...call)) {
      const { message } = piece;
      yield isFirst && AIMessageChunk.isInstance(message) ? new JoinedPieces(piece, message, longest) : piece;
      isFirst = false;
    }
  };
}

/** The first piece of an answer, which takes up those that follow. Their message is made when it is asked for. */
class JoinedPieces extends ChatGenerationChunk {
  #message: BaseMessageChunk | undefined;
  #fields: AIMessageChunkFields;
  /** Number of bytes that it may still add. */
  #room: number;
  #isCut = false;

  constructor(piece: ChatGenerationChunk, first: AIMessageChunk, longest: number) {
    super(piece);
    this.#room = longest;
    this.#fields = merged({ content: "" }, this.#fitting(first));
    Object.defineProperty(this, "message", {
      enumerable: true,
      get: () => (this.#message ??= replyOf(this.#fields, this.#isCut)),
      set: (message: BaseMessageChunk) => (this.#message = message),
    });
  }

  override concat(piece: ChatGenerationChunk): ChatGenerationChunk {
    const next = piece.message;
    if (!AIMessageChunk.isInstance(next)) return super.concat(piece);
    const fitting = this.#fitting(next);
    // LangChain names the first piece after the run.
    const id = this.#message?.id ?? this.#fields.id;
    this.#fields = merged({ ...this.#fields, ...(id === undefined ? {} : { id }) }, fitting);
    this.#message = undefined;
    this.text += fitting === next ? piece.text : fitting.text;
    this.generationInfo = { ...this.generationInfo, ...piece.generationInfo };
    return this;
  }

  #fitting(piece: AIMessageChunk): AIMessageChunk {
    const size = sizeOfPiece(piece);
    const fitting = size <= this.#room ? piece : cutPiece(piece, this.#room);
    this.#isCut ||= fitting !== piece;
    this.#room = Math.max(this.#room - size, 0);
    return fitting;
  }
}

/** Declared for blocks of content, it merges whatever has an index or an id. */
const mergeLists = _mergeLists as <Item>(left?: Item[], right?: Item[]) => Item[] | undefined;

/** Merges like `AIMessageChunk.concat`, but does not parse arguments. */
function merged(before: AIMessageChunkFields, next: AIMessageChunk): AIMessageChunkFields {
  const usage = before.usage_metadata ?? next.usage_metadata;
  const chunks = next.tool_call_chunks ?? [];
  return {
    content: mergeContent(before.content ?? "", next.content),
    additional_kwargs: _mergeDicts(before.additional_kwargs, next.additional_kwargs) ?? {},
    response_metadata: _mergeDicts(before.response_metadata, next.response_metadata) ?? {},
    tool_call_chunks: mergeLists(before.tool_call_chunks, chunks) ?? [],
    // Calls that came in pieces are read from the pieces.
    tool_calls: (chunks.length > 0 ? undefined : mergeLists(before.tool_calls, next.tool_calls)) ?? [],
    ...(usage && { usage_metadata: mergeUsageMetadata(before.usage_metadata, next.usage_metadata) }),
    ...((before.id ?? next.id) !== undefined && { id: before.id ?? next.id }),
  };
}
