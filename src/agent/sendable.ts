import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { wellFormed } from "../core/text.ts";
import { copyMessage } from "./copy-message.ts";

type Content = BaseMessage["content"];

/**
 * Messages without what providers refuse: blank texts, replies that say nothing, half characters. A history
 * that is fine is returned as the same object, and each message is looked at once.
 */
export function sendable(messages: BaseMessage[]): BaseMessage[] {
  if (messages.every((message) => mendedOf(message) === message)) return messages;
  return messages.flatMap((message) => mendedOf(message) ?? []);
}

const known = new WeakMap<BaseMessage, BaseMessage | null>();

/** `null`: nothing of the message is left. */
function mendedOf(message: BaseMessage): BaseMessage | null {
  let mended = known.get(message);
  if (mended === undefined) known.set(message, (mended = mend(message)));
  return mended;
}

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
  const mended = blocks.flatMap((block) => {
    if (block.type !== "text" || typeof block["text"] !== "string") return [block];
    const text = mendText(block["text"]);
    if (text === "") return [];
    return [text === block["text"] ? block : { ...block, text }];
  });
  const isSame = mended.length === blocks.length && mended.every((block, i) => block === blocks[i]);
  return isSame ? blocks : mended;
}
