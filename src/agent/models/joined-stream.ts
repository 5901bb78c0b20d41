/** Bounds streamed answers, and mends the calls in them once all of their pieces have arrived. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { LONGEST_REPLY, cutPiece, assembleReply, sizeOfPiece } from "./reply.ts";

type Stream = BaseChatModel["_streamResponseChunks"];

/**
 * A delegate of `model` whose streamed answers have `longest` bytes at most, and calls that `assembleReply` has mended.
 * Listeners, by callbacks or by `stream`, still get the pieces at once. The model itself is not changed.
 */
export function joinStreams<Model extends object>(model: Model, longest = LONGEST_REPLY): Model {
  const binding = definingObject(model, "_mergeConfig"); // LangChain's model with further options
  const bound: unknown = Reflect.get(model, "bound");
  if (binding && typeof bound === "object" && bound !== null)
    return delegate(model, binding, "bound", joinStreams(bound, longest));
  const base = definingObject(model, "_generateUncached"); // LangChain's class of all chat models, in any copy of it
  const stream = Reflect.get(model, "_streamResponseChunks") as Stream; // every chat model has it
  // LangChain sees that a model can stream by this method being overridden.
  if (!base || stream === Reflect.get(base, "_streamResponseChunks")) return model;
  return delegate(model, base, "_streamResponseChunks", async function* (...call: Parameters<Stream>) {
    let isFirst = true;
    for await (const piece of stream.apply(model as unknown as BaseChatModel, call)) {
      const { message } = piece;
      yield isFirst && AIMessageChunk.isInstance(message) ? new JoinedPieces(piece, message, longest) : piece;
      isFirst = false;
    }
  });
}

/** The object that defines `method` for `object`. */
const definingObject = (object: object | null, method: string): object | undefined =>
  object === null || Object.hasOwn(object, method)
    ? (object ?? undefined)
    : definingObject(Object.getPrototypeOf(object) as object | null, method);

/**
 * `object` with another `member`, which only the methods of `base` and `invoke` see; all others may read private fields.
 * OpenAI's classes have an `invoke` of their own, which calls that of LangChain.
 */
const delegate = <Type extends object>(object: Type, base: object, member: string, value: unknown): Type =>
  new Proxy(object, {
    get: (target, key) => {
      if (key === member) return value;
      const own: unknown = Reflect.get(target, key);
      const sees = key === "invoke" || (Object.hasOwn(base, key) && own === Reflect.get(base, key));
      return typeof own === "function" && !sees ? (own.bind(target) as unknown) : own;
    },
  });

/** The first piece of an answer, which takes up those that follow. Their message is made when it is asked for. */
class JoinedPieces extends ChatGenerationChunk {
  #message: BaseMessageChunk | undefined;
  #joined: AIMessageChunk;
  /** Number of bytes that it may still add. */
  #room: number;
  #isCut = false;

  constructor(piece: ChatGenerationChunk, first: AIMessageChunk, longest: number) {
    super(piece);
    this.#room = longest;
    this.#joined = this.#fitting(first);
    Object.defineProperty(this, "message", {
      enumerable: true,
      get: () => (this.#message ??= assembleReply(this.#joined, this.#isCut)),
      set: (message: BaseMessageChunk) => (this.#message = message),
    });
  }

  override concat(piece: ChatGenerationChunk): ChatGenerationChunk {
    const next = piece.message;
    if (!AIMessageChunk.isInstance(next)) return super.concat(piece);
    const fitting = this.#fitting(next);
    // LangChain names the first piece after the run.
    const id = this.#message?.id;
    this.#joined = this.#joined.concat(fitting);
    if (id !== undefined) this.#joined.id = id;
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
