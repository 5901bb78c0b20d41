/** Facts and mending of a model's reply: its name, why it ended, its size, and calls that cannot be read. */
import { randomUUID } from "node:crypto";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage, MessageContent } from "@langchain/core/messages";
import { AIMessage, AIMessageChunk, ToolMessage } from "@langchain/core/messages";
import type { InvalidToolCall, ToolCall } from "@langchain/core/messages/tool";
import { bytesShapeProblem, shapeProblem } from "../../core/json.ts";
import { looseJson } from "../../core/loose-json.ts";
import { fill, headOf, oneLine, wellFormed } from "../../core/text.ts";
import { isRecord, memberOf, parsedJson, defined } from "../../core/unknown.ts";
import { onlyAlike } from "../../tools/mend-arguments.ts";
import { threadFacts } from "../messages/mend.ts";
import { textOf } from "../messages/messages.ts";
import type { Step } from "../contracts/middleware.ts";
import { replyCost, reportedModel } from "../budget/prices.ts";
import texts from "./texts.json" with { type: "json" };

/** Takes the parts of the request, which OpenAI's responses API repeats, out of `reply`: they would be stored each time. */
export function withoutRequest(reply: AIMessage): AIMessage {
  for (const key of ["instructions", "tools", "input"]) delete reply.response_metadata[key];
  return reply;
}

/** The model's name in its provider's package, else its kind. */
export function modelName(model: BaseChatModel): string {
  const name: unknown = Reflect.get(model, "model") ?? Reflect.get(model, "modelName");
  return typeof name === "string" && name !== "" ? name : model._llmType();
}

/** The provider's word for why a reply ended; each names the field in its own way. */
export function readFinishReason({
  response_metadata: told,
  additional_kwargs,
}: AIMessage): string | undefined {
  const { stop_reason, finish_reason, stopReason, finishReason, done_reason, incomplete_details } = told;
  // Anthropic's package keeps the reason of a streamed reply elsewhere, and OpenAI's responses API has an object.
  const others: unknown[] = [additional_kwargs["stop_reason"], memberOf(incomplete_details, "reason")];
  return [stop_reason, finish_reason, ...others, stopReason, finishReason, done_reason].find(
    (word): word is string => typeof word === "string" && word !== "",
  );
}

/** True if a reply ended at the maximum length of an answer, before it was complete. */
export const isCut = (reply: AIMessage): boolean =>
  /^(?:max_?tokens|max_output_tokens|length|model_length|model_context_window_exceeded)$/i.test(
    readFinishReason(reply) ?? "",
  );

/** Adds the model's name to `reply`; streamed answers leave it out. */
export function answeredBy(reply: AIMessage, model: BaseChatModel): AIMessage {
  const { model_name: named, model: told } = reply.response_metadata;
  if (named === undefined && told === undefined) reply.response_metadata["model_name"] = modelName(model);
  return reply;
}

/** Shows a refusal that a package keeps beside an empty text, as it does for OpenAI's responses API. Changes `reply`. */
export function withRefusal(reply: AIMessage): AIMessage {
  const refusal: unknown = reply.additional_kwargs["refusal"];
  if (typeof refusal === "string" && refusal !== "" && reply.text === "") reply.content = refusal;
  return reply;
}

/** Reports a model call to those who watch, with its tokens and, if it is known, its price. */
export function tellModelCalled(reply: AIMessage, step: Step, purpose?: "summary"): void {
  const used = reply.usage_metadata;
  const costUsd = replyCost(reply, step.budget.limits.prices);
  step.tell({
    kind: "model_called",
    model: reportedModel(reply),
    usage: {
      inputTokens: used?.input_tokens ?? 0,
      outputTokens: used?.output_tokens ?? 0,
      cachedInputTokens: used?.input_token_details?.cache_read ?? 0,
    },
    text: purpose === undefined ? oneLine(textOf(reply), 300) : "",
    ...defined({ costUsd, purpose }),
  });
}

/** Most bytes of a reply: its text and its calls' arguments. A longer one is cut, as at the limit of output tokens. */
export const LONGEST_REPLY = 768 * 1024;
/** Most values of a call's arguments, and how deep they may be: each is visited whenever the thread is loaded. */
const ARGUMENTS_SHAPE = { values: 5000, depth: 200 };
/** Longest name or id that is kept; providers take 64 characters. */
const LONGEST_NAME = 128;

const TOO_MANY_VALUES = "too many values";

/** Number of bytes that a piece adds to its reply. Packages repeat arguments in the content and elsewhere. */
export function sizeOfPiece(piece: AIMessageChunk): number {
  const { content, tool_call_chunks: chunks, additional_kwargs: others } = piece;
  // LangChain parses the JSON of a piece as soon as its calls are read.
  const calls: unknown = chunks?.length ? chunks : piece.tool_calls;
  return Math.max(...[content, calls, others].map(countBytes));
}

/** Bytes of all strings in `value`, but for the types of blocks. */
function countBytes(value: unknown): number {
  let bytes = 0;
  for (const open = [value]; open.length > 0;) {
    const next = open.pop();
    if (typeof next === "string") bytes += Buffer.byteLength(next);
    if (typeof next !== "object" || next === null) continue;
    for (const [name, inside] of Object.entries(next)) if (name !== "type") open.push(inside);
  }
  return bytes;
}

/** Cuts a piece to `room` characters of its text, and its calls' arguments. `isFirst`: no piece before was cut. */
export function cutPiece(piece: AIMessageChunk, room: number, isFirst: boolean): AIMessageChunk {
  const { content, tool_call_chunks: chunks = [], usage_metadata, id } = piece;
  // The reason of the end would be joined to ours; OpenAI's package would send `output` in place of the message.
  const { stop_reason: _reason, output: _output, ...metadata } = piece.response_metadata;
  const texts = typeof content === "string" ? content : content.filter(({ type }) => type === "text");
  return new AIMessageChunk({
    content: withTexts(texts, (text) => headOf(text, room)),
    tool_call_chunks: room === 0 ? [] : chunks.map((chunk) => ({ ...chunk, args: "" })),
    response_metadata: isFirst ? { ...metadata, stop_reason: "max_output_tokens" } : metadata,
    ...defined({ usage_metadata, id }),
  });
}

/**
 * Reads the calls of a streamed reply from their pieces again: LangChain completes JSON that is cut, so that half a file
 * would be written. Calls with such arguments, or too many, become invalid calls. Changes `reply`.
 */
export function assembleReply(reply: AIMessageChunk): AIMessageChunk {
  // No provider takes halves of surrogate pairs, and to write them as JSON takes long.
  reply.content = withTexts(reply.content, wellFormed);
  const { tool_call_chunks: chunks = [] } = reply;
  if (chunks.length === 0) return reply;
  const calls: ToolCall[] = [];
  const invalid: InvalidToolCall[] = [];
  for (const { id, name = "", args: written = "" } of chunks) {
    const text = plainArguments(written);
    const isEmpty = text.trim() === "";
    const named = { name: headOf(name, LONGEST_NAME), ...(id && { id: headOf(id, LONGEST_NAME) }) };
    const isTooLarge = bytesShapeProblem(Buffer.from(text), ARGUMENTS_SHAPE) !== undefined && !isEmpty;
    // A call of a cut reply may have been about to have arguments.
    const args = isTooLarge ? undefined : parsedJson(isEmpty && !isCut(reply) ? "{}" : text);
    const error = isTooLarge ? TOO_MANY_VALUES : "Malformed args.";
    if (isRecord(args)) calls.push({ ...named, args, type: "tool_call" });
    else invalid.push({ ...named, type: "invalid_tool_call", args: headOf(text, LONGEST_NAME), error });
  }
  reply.tool_calls = calls;
  reply.invalid_tool_calls = invalid;
  reply.tool_call_chunks = [];
  return reply;
}

/**
 * Arguments as JSON: without an empty object before them, or the quotes of a text, which some servers add, and mended
 * if a model broke the rules of JSON in a way that leaves no doubt.
 */
function plainArguments(args: string): string {
  const text = args.replace(/^\s{0,9}\{\s{0,9}\}(?=\s{0,9}\{)/, "");
  if (/^\s{0,9}\{/.test(text) && parsedJson(text) !== undefined) return text;
  if (bytesShapeProblem(Buffer.from(text), ARGUMENTS_SHAPE) !== undefined) return text;
  const value = looseJson(text);
  if (typeof value === "string") return plainArguments(value);
  return isRecord(value) ? JSON.stringify(value) : text;
}

const withTexts = (content: MessageContent, change: (text: string) => string): MessageContent =>
  typeof content === "string"
    ? change(content)
    : content.map((block) =>
        block.type === "text" ? { ...block, text: change(String(block["text"])) } : block,
      );

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const CALL_BLOCKS: ReadonlySet<string> = new Set(
  "tool_use tool_call tool_call_chunk invalid_tool_call function_call input_json_delta".split(" "),
);

/**
 * Mends a model's mistakes in its calls, so that any provider can read them in the history: ids that are missing, used
 * before or of another form, names that can be none, and arguments that cannot be read; `refused` are the results of the
 * latter. Other ids stay: some providers refer to them. The reply gets the name of the agent, if it has one.
 */
export function safeReply(
  answer: AIMessage,
  thread: readonly BaseMessage[],
  { name: agent, tools = [] }: { name?: string | undefined; tools?: Iterable<string> } = {},
): { reply: AIMessage; refused: ToolMessage[] } {
  const names = [...tools];
  const isStream = AIMessageChunk.isInstance(answer);
  const given = isStream ? assembleReply(answer) : answer;
  const isShort = isCut(given);
  const incomplete = isShort ? texts.cutArguments : texts.incompleteArguments;
  const tooMany = fill(texts.tooManyValues, ARGUMENTS_SHAPE.values, ARGUMENTS_SHAPE.depth);
  const { tool_calls: calls = [], invalid_tool_calls: invalid = [] } = given;
  const read = [
    ...calls.map((call, at) => {
      const isTooLarge = shapeProblem(call.args, ARGUMENTS_SHAPE) !== undefined;
      const problem = isRecord(call.args) ? (isTooLarge ? tooMany : undefined) : texts.incompleteArguments;
      // If a cut answer was not streamed, nobody knows whether its last call is complete.
      return { call, why: isShort && !isStream && at === calls.length - 1 ? incomplete : problem };
    }),
    ...invalid.map(({ id, name = "", error }) => ({
      call: { name, args: {}, type: "tool_call" as const, ...(id && { id }) },
      why: error === TOO_MANY_VALUES ? tooMany : incomplete,
    })),
  ];
  const callIds = { earlier: threadFacts(thread).ids, own: new Set<string>() };
  const refused: ToolMessage[] = [];
  const mended = read.map(({ call, why }) => {
    if (why === undefined) return mendCall(call, callIds, names);
    const empty = mendCall({ ...call, args: {} }, callIds, names);
    const { name, id: tool_call_id = "" } = empty;
    const content = fill(texts.notRun, name, why);
    refused.push(new ToolMessage({ content, name, tool_call_id, status: "error" }));
    return empty;
  });
  const isChanged = mended.some((call, index) => call !== calls[index]);
  const name = agent !== undefined && TOOL_NAME.test(agent) ? agent : given.name;
  const reply = rebuildReply(given, mended, isChanged, name);
  // An id that is only assigned is not stored with the message.
  const isNew = reply.id && reply.id.length <= LONGEST_NAME && thread.every(({ id }) => id !== reply.id);
  reply._updateId(isNew ? reply.id : randomUUID());
  return { reply, refused };
}

function mendCall(
  call: ToolCall,
  { earlier, own }: Readonly<Record<"earlier" | "own", Set<string>>>,
  tools: readonly string[],
): ToolCall {
  const given = call.id && /^[a-zA-Z0-9_-]{1,40}$/.test(call.id) ? call.id : undefined;
  const isNew = given !== undefined && !earlier.has(given) && !own.has(given);
  const id = isNew ? given : `call_${randomUUID().replaceAll("-", "")}`;
  own.add(id);
  const called: unknown = call.name; // whatever the provider's package made of it
  const name = mendName(typeof called === "string" ? called : "", tools);
  // Half of a surrogate pair cannot be sent as text.
  const json = JSON.stringify(call.args);
  const mend = (_key: string, value: unknown): unknown =>
    typeof value === "string" ? wellFormed(value) : value;
  const args = /\\ud[89a-f]/i.test(json) ? (JSON.parse(json, mend) as ToolCall["args"]) : call.args; // it was one before
  return id === call.id && name === call.name && args === call.args ? call : { ...call, id, name, args };
}

/** Some models put blanks around a name, a mark of their training before or after it, or write it in another case. */
export function mendName(given: string, tools: readonly string[]): string {
  if (tools.includes(given)) return given;
  // The end may be the number of a call, or the channel of a message.
  const namespace = /^(?:functions?|tools?|default_api)[.:/]/;
  const named = given.trim().replace(namespace, "");
  const plain = named.replace(/(?::\d{1,4}|<\|[^]*)$/, "");
  const name = tools.includes(plain) ? plain : (onlyAlike(plain, tools) ?? plain);
  return TOOL_NAME.test(name) ? name : headOf(given, 64).replaceAll(/[^a-zA-Z0-9_-]/g, "_") || "unknown";
}

/**
 * The reply as one message with these calls, without the copies that packages keep: long arguments would be stored three
 * times. What OpenAI's package sends in place of the message stays, unless the calls have changed.
 */
function rebuildReply(reply: AIMessage, calls: ToolCall[], isChanged: boolean, name: string | undefined) {
  const { content, additional_kwargs, response_metadata, usage_metadata, id } = reply;
  const { tool_calls: _calls, ...kwargs } = additional_kwargs;
  const metadata = { ...response_metadata };
  if (isChanged) {
    delete kwargs["__openai_function_call_ids__"];
    delete metadata["output"];
  }
  const blocks = typeof content === "string" ? [] : content.filter(({ type }) => !CALL_BLOCKS.has(type));
  // Plain text, which comes in blocks only where it was streamed, is a string.
  const isPlain = blocks.every(
    ({ type, text: _text, index: _index, ...more }) => type === "text" && Object.keys(more).length === 0,
  );
  const others = isPlain ? blocks.map(({ text }) => String(text)).join("") : blocks;
  return new AIMessage({
    content: typeof content === "string" ? content : others,
    tool_calls: calls,
    additional_kwargs: kwargs,
    response_metadata: metadata,
    ...defined({ usage_metadata, id: id || undefined, name: name || undefined }),
  });
}

export const withCalls = (reply: AIMessage, calls: ToolCall[]): AIMessage =>
  rebuildReply(reply, calls, true, reply.name);
