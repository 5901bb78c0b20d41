/** Bounds streamed answers. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { LONGEST_REPLY, cutPiece, sizeOfPiece } from "./reply.ts";

type Stream = BaseChatModel["_streamResponseChunks"];

/**
 * A delegate of `model` whose streamed answers have `longest` bytes at most: further pieces have neither text nor
 * arguments. The model itself is not changed.
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
    let room = longest;
    let isCut = false;
    for await (const piece of stream.apply(model as unknown as BaseChatModel, call)) {
      const { message: given, generationInfo } = piece;
      const size = AIMessageChunk.isInstance(given) ? sizeOfPiece(given) : 0;
      const isOver: boolean = isCut || size > room;
      const message = isOver && AIMessageChunk.isInstance(given) ? cutPiece(given, room, !isCut) : given;
      yield isOver ? new ChatGenerationChunk({ generationInfo, text: message.text, message }) : piece;
      isCut = isOver;
      room = Math.max(room - size, 0);
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
