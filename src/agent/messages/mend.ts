/** Repairs the history that a model sees, so that every provider takes it. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { byIdentity } from "../../core/by-identity.ts";
import { wellFormed } from "../../core/text.ts";
import { copyMessage, isReply, isResult } from "./messages.ts";

const UNFINISHED = "Tool call was cancelled or did not complete.";

/**
 * The history as a model may see it: every tool call is followed by exactly one result, results come in
 * call order right after their reply, and results without a call are left out. Linear in the number of
 * messages; a history that is correct already is returned as the same object.
 */
export function repairHistory(messages: BaseMessage[]): BaseMessage[] {
  if (isWhole(messages)) return messages;
  const results = new Map<string, ToolMessage>();
  for (const message of messages) {
    if (isResult(message) && !results.has(message.tool_call_id)) {
      results.set(message.tool_call_id, message);
    }
  }
  const repaired: BaseMessage[] = [];
  const answered = new Set<string>();
  for (const message of messages) {
    if (isResult(message)) continue;
    repaired.push(message);
    for (const call of callsOf(message)) {
      if (answered.has(call.id)) continue;
      answered.add(call.id);
      repaired.push(results.get(call.id) ?? unfinished(call));
    }
  }
  return repaired;
}

/** True if every reply is followed by the results of its calls in their order, and by no other results. */
function isWhole(messages: readonly BaseMessage[]): boolean {
  const made = new Set<string>();
  let due: ReadonlyArray<{ id?: string }> = [];
  let given = 0;
  for (const message of messages) {
    if (isResult(message)) {
      if (message.tool_call_id !== due[given]?.id) return false;
      given += 1;
      continue;
    }
    if (given < due.length) return false;
    given = 0;
    due = isReply(message) ? (message.tool_calls ?? []) : [];
    if (isReply(message) && (message.invalid_tool_calls ?? []).length > 0) return false;
    for (const { id } of due) {
      if (!id || made.has(id)) return false;
      made.add(id);
    }
  }
  return given === due.length;
}

interface CallRef {
  id: string;
  name: string;
}

/** All calls of a reply, those with arguments that could not be parsed included. */
function callsOf(message: BaseMessage): CallRef[] {
  if (!isReply(message)) return [];
  const { tool_calls: valid = [], invalid_tool_calls: invalid = [] } = message;
  const calls = [...valid, ...invalid];
  return calls.flatMap(({ id, name }) => (id ? [{ id, name: name ?? "unknown" }] : []));
}

function unfinished({ id, name }: CallRef): ToolMessage {
  return new ToolMessage({ content: UNFINISHED, name, tool_call_id: id, status: "error" });
}

type Content = BaseMessage["content"];

/**
 * Messages without what providers refuse: blank texts, replies that say nothing, half characters. A history
 * that is fine is returned as the same object, and each message is looked at once.
 */
export function cleanMessages(messages: BaseMessage[]): BaseMessage[] {
  if (messages.every((message) => mendedOf(message) === message)) return messages;
  return messages.flatMap((message) => mendedOf(message) ?? []);
}

/** `null`: nothing of the message is left. */
const mendedOf = byIdentity(mend);

function mend(message: BaseMessage): BaseMessage | null {
  const { content } = message;
  const changed = typeof content === "string" ? mendText(content) : mendBlocks(content);
  if (changed.length > 0) return changed === content ? message : copyMessage(message, { content: changed });
  if (AIMessage.isInstance(message) && (message.tool_calls ?? []).length === 0) return null;
  if (HumanMessage.isInstance(message)) return copyMessage(message, { content: "(no text)" });
  return content === "" ? message : copyMessage(message, { content: "" });
}

const mendText = (text: string): string => (text.trim() === "" ? "" : wellFormed(text));

function mendBlocks(blocks: Exclude<Content, string>): Exclude<Content, string> {
  const mended = blocks.flatMap((given) => {
    // Pieces of streams were joined by it; other providers refuse it.
    const { index: _index, ...plain } = given;
    const block = "index" in given ? plain : given;
    if (block.type !== "text" || typeof block["text"] !== "string") return [block];
    const text = mendText(block["text"]);
    if (text === "") return [];
    return [text === block["text"] ? block : { ...block, text }];
  });
  const isSame = mended.length === blocks.length && mended.every((block, i) => block === blocks[i]);
  return isSame ? blocks : mended;
}

type Blocks = Exclude<BaseMessage["content"], string>;
type Block = Blocks[number];

/** Blocks of Anthropic's replies that OpenAI's package would pass on and OpenAI would refuse. */
const ANTHROPIC_ONLY: ReadonlySet<string> = new Set([
  "thinking",
  "redacted_thinking",
  "tool_use",
  "server_tool_use",
  "input_json_delta",
]);

export const isOpenAi = (model: BaseChatModel): boolean => model._llmType().includes("openai");

/**
 * Messages as OpenAI takes them, whoever made them: replies without another provider's blocks, and tool
 * results as text, each group of them followed by the media that were in it. A message that needs no change
 * stays the same object.
 */
export function openAiHistory(messages: BaseMessage[]): BaseMessage[] {
  const history: BaseMessage[] = [];
  let media: Blocks = [];
  for (const message of messages) {
    if (!ToolMessage.isInstance(message) && media.length > 0) {
      history.push(mediaMessage(media));
      media = [];
    }
    const { content } = message;
    if (typeof content === "string") history.push(message);
    else if (ToolMessage.isInstance(message)) {
      history.push(withoutMedia(message, content));
      media.push(...content.filter(isMedia).map(toOpenAi));
    } else
      history.push(
        AIMessage.isInstance(message) ? withoutForeign(message, content) : ownForm(message, content),
      );
  }
  if (media.length > 0) history.push(mediaMessage(media));
  return history;
}

const isMedia = ({ type }: Block): boolean => type !== "text";

const mediaMessage = (media: Blocks): HumanMessage =>
  new HumanMessage({ content: [{ type: "text", text: "[Media of the results above]" }, ...media] });

function withoutMedia(message: ToolMessage, content: Blocks): BaseMessage {
  if (!content.some(isMedia)) return message;
  return copyMessage(message, { content: message.text === "" ? "[See the media below.]" : message.text });
}

/** The media of a caller's message, in the form of OpenAI's package. */
function ownForm(message: BaseMessage, content: Blocks): BaseMessage {
  const own = content.map((block) => (isMedia(block) ? toOpenAi(block) : block));
  return own.every((block, i) => block === content[i]) ? message : copyMessage(message, { content: own });
}

function withoutForeign(message: AIMessage, content: Blocks): BaseMessage {
  const own = content.filter(({ type }) => !ANTHROPIC_ONLY.has(type));
  return own.length === content.length
    ? message
    : copyMessage(message, { content: own.length > 0 ? own : "" });
}

/** A block of ours in the form that OpenAI's package turns into the provider's, for both of its APIs. */
function toOpenAi(block: Block): Block {
  const { type, data, metadata, mimeType = block["mime_type"] } = block as Record<string, unknown>; // of whichever tool
  if (typeof mimeType !== "string" || typeof data !== "string") return block;
  if (/^image\/(png|jpeg|gif|webp)$/.test(mimeType))
    return { type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } };
  if ("source_type" in block) return block;
  if (mimeType !== "application/pdf")
    return { type: "text", text: `[${String(type)} of type ${mimeType}, which this model does not accept]` };
  const named = { filename: "file.pdf", ...(metadata as object | undefined) };
  return { type: "file", source_type: "base64", mime_type: mimeType, data, metadata: named };
}
