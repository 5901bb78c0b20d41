import { AIMessageChunk, type AIMessageChunkFields, type MessageContent } from "@langchain/core/messages";
import type { InvalidToolCall, ToolCallChunk } from "@langchain/core/messages/tool";
import { bytesShapeProblem } from "../../core/json-shape.ts";
import { headOf, wellFormed } from "../../core/text.ts";

/**
 * Most bytes of a reply in UTF-8, its text and the JSON of its calls' arguments together. No model writes that many.
 * A longer reply is cut there, as if the model had reached its limit of output tokens.
 */
export const LONGEST_REPLY = 768 * 1024;
/** Most values of a call's arguments, and how deep they may be: each is visited whenever the thread is loaded. */
export const ARGUMENTS_SHAPE = { values: 5000, depth: 200 };
/** Longest name or id that is kept; providers take 64 characters. */
const LONGEST_NAME = 128;

/** `error` of a call whose arguments have too many values. */
export const TOO_MANY_VALUES = "too many values";

/** How many bytes a piece adds to its reply. Packages repeat arguments in the content and elsewhere. */
export function sizeOfPiece({
  content,
  tool_call_chunks: chunks,
  tool_calls: calls,
  additional_kwargs: others,
}: AIMessageChunk): number {
  return Math.max(...[content, chunks?.length ? chunks : calls, others].map(bytesIn));
}

/** Bytes of all strings in `value`, but for those that say what kind of block they are in. */
function bytesIn(value: unknown): number {
  let bytes = 0;
  for (const open = [value]; open.length > 0;) {
    const next = open.pop();
    if (typeof next === "string") bytes += Buffer.byteLength(next);
    if (typeof next !== "object" || next === null) continue;
    for (const [name, inside] of Object.entries(next)) if (name !== "type") open.push(inside);
  }
  return bytes;
}

/** Cuts a piece to `room` characters: it keeps the beginning of its text, and its calls without arguments. */
export function cutPiece(piece: AIMessageChunk, room: number): AIMessageChunk {
  const { content, tool_call_chunks: chunks = [], response_metadata, usage_metadata, id } = piece;
  return new AIMessageChunk({
    content:
      typeof content === "string"
        ? headOf(content, room)
        : content.flatMap((block) =>
            block.type === "text" ? [{ ...block, text: headOf(String(block.text), room) }] : [],
          ),
    tool_call_chunks: room === 0 ? [] : chunks.map((chunk) => ({ ...chunk, args: "" })),
    response_metadata,
    ...(usage_metadata ? { usage_metadata } : {}),
    ...(id === undefined ? {} : { id }),
  });
}

/**
 * Makes the message of a reply's joined pieces. A call whose arguments are no JSON, or have too many values, becomes an
 * invalid call that keeps their beginning; LangChain would read them character by character, to make JSON of them.
 */
export function replyOf(
  {
    content = "",
    tool_call_chunks: chunks = [],
    response_metadata = {},
    id,
    ...fields
  }: AIMessageChunkFields,
  isCut: boolean,
): AIMessageChunk {
  const valid: ToolCallChunk[] = [];
  const invalid: InvalidToolCall[] = [];
  for (const chunk of chunks) {
    const named = { ...short("id", chunk.id), ...short("name", chunk.name) };
    const error = problemOf(chunk);
    const args = headOf(chunk.args ?? "", LONGEST_NAME);
    if (error === undefined) valid.push({ ...chunk, ...named });
    else invalid.push({ type: "invalid_tool_call", ...named, args, error });
  }
  const message = new AIMessageChunk({
    ...fields,
    content: sendable(content),
    ...short("id", id),
    response_metadata: isCut ? asCut(response_metadata) : response_metadata,
    tool_call_chunks: valid,
  });
  message.invalid_tool_calls = [...(message.invalid_tool_calls ?? []), ...invalid];
  return message;
}

/** Text without halves of surrogate pairs: no provider takes them, and to write them as JSON takes long. */
const sendable = (content: MessageContent): MessageContent =>
  typeof content === "string"
    ? wellFormed(content)
    : content.map((block) =>
        block.type === "text" ? { ...block, text: wellFormed(String(block["text"])) } : block,
      );

const short = (key: "id" | "name", word: string | undefined): Record<string, string> =>
  word === undefined ? {} : { [key]: headOf(word, LONGEST_NAME) };

/** Says that the model reached its limit; OpenAI's package would send the copy in `output` in place of the message. */
function asCut({ output: _output, ...metadata }: Record<string, unknown>): Record<string, unknown> {
  return { ...metadata, stop_reason: "max_output_tokens" };
}

function problemOf({ args = "", index }: ToolCallChunk): string | undefined {
  if (args.trim() === "") return undefined;
  if (bytesShapeProblem(Buffer.from(args), ARGUMENTS_SHAPE) !== undefined) return TOO_MANY_VALUES;
  // Without an index, these may be a part of the arguments.
  return index === undefined || isJson(args) ? undefined : "Malformed args.";
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
