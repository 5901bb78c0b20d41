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

/** Models whose streams are joined already. */
const joined = new WeakSet<BaseChatModel>();

/**
 * Makes a model join the pieces of its streamed answers in linear time. LangChain makes a message of all pieces
 * at every further one, and each message reads the arguments of all its calls anew. Who listens, by callbacks or
 * by `stream`, has the pieces as they come.
 */
export function joinStream(model: BaseChatModel): void {
  // The method tells LangChain by being another one that the model can stream.
  if (joined.has(model) || model._streamResponseChunks === BaseChatModel.prototype._streamResponseChunks)
    return;
  joined.add(model);
  const stream = model._streamResponseChunks.bind(model);
  model._streamResponseChunks = async function* (...call) {
    let isFirst = true;
    for await (const piece of stream(...call)) {
      yield isFirst && AIMessageChunk.isInstance(piece.message) ? new JoinedPieces(piece) : piece;
      isFirst = false;
    }
  };
}

/** The first piece of an answer, which takes up those that follow. Their message is made when it is asked for. */
class JoinedPieces extends ChatGenerationChunk {
  #message: BaseMessageChunk | undefined;
  #fields: AIMessageChunkFields | undefined;

  constructor(first: ChatGenerationChunk) {
    super(first);
    this.#message = first.message;
    Object.defineProperty(this, "message", {
      enumerable: true,
      get: () => (this.#message ??= new AIMessageChunk({ ...this.#fields })),
      set: (message: BaseMessageChunk) => (this.#message = message),
    });
  }

  override concat(piece: ChatGenerationChunk): ChatGenerationChunk {
    const next = piece.message;
    if (!AIMessageChunk.isInstance(next)) return super.concat(piece);
    this.#fields = merged(this.#fields ?? this.message, next);
    this.#message = undefined;
    this.text += piece.text;
    this.generationInfo = { ...this.generationInfo, ...piece.generationInfo };
    return this;
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
