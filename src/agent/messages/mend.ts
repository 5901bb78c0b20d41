/** Repairs the history that a model sees, so that every provider takes it. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { byGrowth, byIdentity } from "../../core/by-identity.ts";
import { defined } from "../../core/unknown.ts";
import { wellFormed } from "../../core/text.ts";
import { type Block, copyMessage, isReply, isResult } from "./messages.ts";
import classes from "./model-classes.json" with { type: "json" };

/**
 * Facts about a thread: the ids of its calls, those without results, whether all results follow their replies in call
 * order, and whether no message needs to be mended.
 */
export const threadFacts = byGrowth(
  () => ({ ids: new Set<string>(), open: new Array<string>(), isInOrder: true, isClean: true }),
  (facts, message: BaseMessage) => {
    const { ids, open } = facts;
    facts.isClean &&= mendMessage(message) === message;
    facts.isInOrder &&= open.shift() === (isResult(message) ? message.tool_call_id : undefined);
    if (!isReply(message)) return facts;
    const { tool_calls: valid = [], invalid_tool_calls: invalid = [] } = message;
    for (const { id = "" } of [...valid, ...invalid]) {
      facts.isInOrder &&= id !== "" && !ids.has(id);
      ids.add(id);
      open.push(id);
    }
    return facts;
  },
);

/**
 * The history with exactly one result for each call, in call order behind their reply, and no others. Linear in the
 * number of messages; a history that is correct already is returned as the same object.
 */
export function repairHistory(messages: BaseMessage[]): BaseMessage[] {
  const { isInOrder, open } = threadFacts(messages);
  if (isInOrder && open.length === 0) return messages;
  const results = new Map<string, ToolMessage>();
  for (const message of messages) {
    if (isResult(message) && !results.has(message.tool_call_id)) results.set(message.tool_call_id, message);
  }
  const repaired: BaseMessage[] = [];
  const answered = new Set<string>();
  for (const message of messages) {
    if (isResult(message)) continue;
    repaired.push(message);
    if (!isReply(message)) continue;
    // All calls, those with arguments that could not be parsed included.
    const { tool_calls: valid = [], invalid_tool_calls: invalid = [] } = message;
    for (const { id, name = "unknown" } of [...valid, ...invalid]) {
      if (!id || answered.has(id)) continue;
      answered.add(id);
      const content = "Tool call was cancelled or did not complete.";
      const unfinished = { content, name, tool_call_id: id, status: "error" } as const;
      repaired.push(results.get(id) ?? new ToolMessage(unfinished));
    }
  }
  return haveSameItems(repaired, messages) ? messages : repaired;
}

/** Messages without blank texts, empty replies and half characters. A fine history is returned as the same object. */
export function cleanMessages(messages: BaseMessage[]): BaseMessage[] {
  return threadFacts(messages).isClean ? messages : messages.flatMap((message) => mendMessage(message) ?? []);
}

/** `null`: nothing of the message is left. */
const mendMessage = byIdentity((message: BaseMessage): BaseMessage | null => {
  const { content } = message;
  const changed = typeof content === "string" ? mendText(content) : mendBlocks(content);
  if (changed.length > 0) return changed === content ? message : copyMessage(message, { content: changed });
  if (AIMessage.isInstance(message) && (message.tool_calls ?? []).length === 0) return null;
  if (HumanMessage.isInstance(message)) return copyMessage(message, { content: "(no text)" });
  return content === "" ? message : copyMessage(message, { content: "" });
});

const mendText = (text: string): string => (text.trim() === "" ? "" : wellFormed(text));

function mendBlocks(blocks: Block[]): Block[] {
  const mended = blocks.flatMap((given) => {
    // Pieces of streams were joined by it; other providers refuse it.
    const { index: _index, ...plain } = given;
    const block = "index" in given ? plain : given;
    if (block.type !== "text" || typeof block["text"] !== "string") return [block];
    const text = mendText(block["text"]);
    if (text === "") return [];
    return [text === block["text"] ? block : { ...block, text }];
  });
  return haveSameItems(mended, blocks) ? blocks : mended;
}

const haveSameItems = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((item, at) => item === other[at]);

/** Blocks of Anthropic's replies that OpenAI's package would pass on and OpenAI would refuse. */
const ANTHROPIC_ONLY: ReadonlySet<string> = new Set(
  "thinking redacted_thinking tool_use server_tool_use input_json_delta".split(" "),
);

/**
 * Messages for OpenAI: replies without other providers' blocks, results as text, each group followed by its media. A
 * message that needs no change stays the same object.
 */
export function openAiHistory(messages: BaseMessage[]): BaseMessage[] {
  const history: BaseMessage[] = [];
  let media: Block[] = [];
  for (const message of messages) {
    if (!ToolMessage.isInstance(message) && media.length > 0) {
      history.push(mediaMessage(media));
      media = [];
    }
    const { content } = message;
    if (typeof content === "string") history.push(message);
    else if (ToolMessage.isInstance(message)) {
      const text = message.text === "" ? "[See the media below.]" : message.text;
      history.push(content.some(isMedia) ? copyMessage(message, { content: text }) : message);
      media.push(...content.filter(isMedia).map(toOpenAi));
    } else {
      const own = AIMessage.isInstance(message)
        ? content.filter(({ type }) => !ANTHROPIC_ONLY.has(type))
        : content.map((block) => (isMedia(block) ? toOpenAi(block) : block));
      const isSame = haveSameItems(own, content);
      history.push(isSame ? message : copyMessage(message, { content: own.length > 0 ? own : "" }));
    }
  }
  if (media.length > 0) history.push(mediaMessage(media));
  return history;
}

/**
 * Facts about LangChain's class of a model: the first row of the table that has a part of its kind's name; the last fits
 * all. `history`: the form of messages, that of chat completions also for a class with their method. `callBlocks`: the
 * kind that takes calls as blocks. `marks`: the cache marks of requests, `all` or that of the newest turn.
 */
export const modelClass = byIdentity((model: BaseChatModel): Partial<(typeof classes)[number]> => {
  const isOf = (part: string): boolean => model._llmType().includes(part);
  const row = classes.find(({ named }) => named.split("|").some(isOf));
  return (row?.chatMethod ?? "") in model ? { ...row, history: "chat" } : (row ?? {});
});

/** Messages for Google's packages; those for other models are returned as they are. */
export const googleHistory = (messages: BaseMessage[], model: BaseChatModel): BaseMessage[] => {
  const { history, callBlocks } = modelClass(model);
  if (history !== "google") return messages;
  return messages
    .map(withoutName)
    .map(model._llmType() === callBlocks ? withCallBlocks : (message) => message);
};

/** A reply as Google's package takes it, which reads the name of an agent as an unknown role. */
const withoutName = byIdentity((message: BaseMessage): BaseMessage => {
  if (!AIMessage.isInstance(message) || message.name === undefined) return message;
  const { content, additional_kwargs, response_metadata, tool_calls = [], usage_metadata, id } = message;
  const fields = { content, additional_kwargs, response_metadata, tool_calls };
  return new AIMessage({ ...fields, ...defined({ usage_metadata, id }) });
});

/** A reply as `@langchain/google` 0.2.6 sends it with its calls, which it reads from content blocks only. */
const withCallBlocks = byIdentity((message: BaseMessage): BaseMessage => {
  const { content } = message;
  const isOwn = typeof content !== "string" && content.some(({ type }) => type === "functionCall");
  if (!AIMessage.isInstance(message) || isOwn || !message.tool_calls?.length) return message;
  const { additional_kwargs, response_metadata, tool_calls, id } = message;
  const text = message.text === "" ? [] : [{ type: "text", text: message.text }];
  return new AIMessage({
    content: [...text, ...tool_calls.map((call) => ({ ...call, type: "tool_call" }))],
    additional_kwargs,
    response_metadata: { ...response_metadata, output_version: "v1" },
    tool_calls,
    ...defined({ id }),
  });
});

const isMedia = ({ type }: Block): boolean => type !== "text";

const mediaMessage = (media: Block[]): HumanMessage =>
  new HumanMessage({ content: [{ type: "text", text: "[Media of the results above]" }, ...media] });

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
