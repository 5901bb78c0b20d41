import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  AIMessageChunk,
  type AIMessageChunkFields,
  _mergeDicts,
  _mergeLists,
  type BaseMessageChunk,
  mergeContent,
  mergeUsageMetadata,
} from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { cutPiece, LONGEST_REPLY, replyOf, sizeOfPiece } from "./reply-bounds.ts";

/** Models whose streams are joined already. */
const joined = new WeakSet<BaseChatModel>();

/**
 * Makes a model join the pieces of its streamed answers in linear time, up to `longest` bytes. LangChain makes
 * a message of all pieces at every further one, and each message reads the arguments of all its calls anew. Who
 * listens, by callbacks or by `stream`, has the pieces as they come.
 */
export function joinStream(model: BaseChatModel, longest = LONGEST_REPLY): void {
  // The method tells LangChain by being another one that the model can stream.
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
  /** How many bytes it may still take up. */
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

/** As `AIMessageChunk.concat` merges, without reading arguments. */
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
