import { createHash } from "node:crypto";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { headOf } from "../../core/text.ts";
import type { MarkedPart } from "../kept-files.ts";
import { isMedia, mediaName } from "./tokens.ts";

/** Messages as Markdown, in full: what is kept in a file when they leave the conversation. */
export function transcript(messages: readonly BaseMessage[]): string {
  return messages.map((message) => `## ${titleOf(message)}\n\n${bodyOf(message)}\n`).join("\n");
}

/**
 * Messages of a thread as they are kept in a file: each with a mark that is its own, and the same whenever it is
 * kept again.
 *
 * @param thread all messages: results have no id of their own, but come after the reply that made their call
 */
export function markedTranscript(
  thread: readonly BaseMessage[],
  messages: readonly BaseMessage[],
): MarkedPart[] {
  const wanted = new Set(messages);
  const parts: MarkedPart[] = [];
  let reply = "";
  for (const message of thread) {
    if (AIMessage.isInstance(message)) reply = message.id ?? "";
    if (!wanted.has(message)) continue;
    const id = ToolMessage.isInstance(message) ? [reply, message.tool_call_id] : [message.id];
    const text = transcript([message]);
    const digest = createHash("sha256")
      .update(JSON.stringify([...id, text]))
      .digest("hex");
    parts.push({ text, mark: `<!-- ${digest.slice(0, 16)} -->` });
  }
  return parts;
}

/** A transcript in pieces of at most `size` characters, cut between messages or lines where that is possible. */
export function piecesOf(text: string, size: number): string[] {
  const pieces: string[] = [];
  let rest = text;
  while (rest.length > size) {
    const head = headOf(rest, size);
    const end = [head.lastIndexOf("\n## "), head.lastIndexOf("\n")].find((at) => at > size / 2);
    const piece = end === undefined ? head : head.slice(0, end + 1);
    pieces.push(piece);
    rest = rest.slice(piece.length);
  }
  return [...pieces, rest];
}

function titleOf(message: BaseMessage): string {
  if (HumanMessage.isInstance(message)) return "Person";
  if (AIMessage.isInstance(message)) return "Agent";
  if (ToolMessage.isInstance(message))
    return `Result of ${message.name ?? "a tool"} (${message.tool_call_id})`;
  return message.getType();
}

function bodyOf(message: BaseMessage): string {
  const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
  const lines = calls.map(({ id, name, args }) => `Call ${name} (${id ?? ""}): ${JSON.stringify(args)}`);
  return [message.text, ...mediaOf(message), ...lines].filter((part) => part !== "").join("\n\n");
}

/** What cannot be written here is named: the thread's own messages still have it. */
function mediaOf({ content }: BaseMessage): string[] {
  if (typeof content === "string") return [];
  return content.filter(isMedia).map((block) => `[${mediaName(block)}]`);
}
