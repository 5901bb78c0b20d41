/** The end of a run: with a complete answer, with results of tools that end it, or without an answer. */
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { RunFailure } from "../../core/errors.ts";
import { fill } from "../../core/text.ts";
import { repairHistory } from "../messages/mend.ts";
import { textOf, toBlocks, withEnd } from "../messages/messages.ts";
import { readFinishReason, isCut } from "./reply.ts";
import { type Strategy, answerInText, hasCalls, reminderFor } from "./structured-answer.ts";
import texts from "./texts.json" with { type: "json" };

/** The results that ended a run in place of a reply; empty when a reply did. */
export function directAnswer(thread: readonly BaseMessage[]): string {
  if (!ToolMessage.isInstance(thread.at(-1))) return "";
  const messages = repairHistory([...thread]); // in the order of the calls
  const at = messages.findLastIndex((message) => !ToolMessage.isInstance(message));
  const results = messages.slice(at + 1).map(({ text }) => text);
  return results.join("\n\n");
}

/** Maximum number of repeated requests in one turn, by the defect of the reply. */
export const MOST_ASKED = { cut: 3, paused: 10, empty: 1, unstructured: 3, uncalled: 1, unwritten: 2 };

/**
 * The defect of a reply without calls, and the message that asks the model to complete it; empty for a paused reply,
 * which is sent back as it is. `isIncomplete`: its text ended with an unreadable call. `isForced`: it had to be a call.
 */
export function unfinished(
  reply: AIMessage,
  strategy?: Strategy,
  isIncomplete = false,
  isForced = false,
): { kind: keyof typeof MOST_ASKED; prompt: string } | undefined {
  if (hasCalls(reply)) return undefined;
  const reason = readFinishReason(reply) ?? "";
  if (reason === "pause_turn") return { kind: "paused", prompt: "" };
  if (isIncomplete) return { kind: "uncalled", prompt: isCut(reply) ? texts.cutCall : texts.incompleteCall };
  // LangChain joins repeated reasons.
  if (/^(?:malformed_function_call)+$/i.test(reason) && isEmptyReply(reply))
    return { kind: "unwritten", prompt: texts.malformed };
  if (/^(?:(?:tool_calls?|tool_?use|function_call)+)$/i.test(reason))
    return { kind: "uncalled", prompt: texts.uncalled };
  if (isCut(reply) && !isEmptyReply(reply) && !isForced) return { kind: "cut", prompt: texts.cut };
  if (strategy) {
    if (answerInText(reply, strategy) !== undefined) return undefined;
    return { kind: "unstructured", prompt: reminderFor(strategy) };
  }
  if (!isEmptyReply(reply)) return undefined;
  if (isCut(reply)) return { kind: "unwritten", prompt: texts.unwritten };
  return { kind: "empty", prompt: texts.empty };
}

/** Blocks of a reply that a person does not read. */
const THOUGHTS: ReadonlySet<string> = new Set(["thinking", "redacted_thinking", "reasoning"]);

/** True if a reply has neither a call nor any text for a person. */
export function isEmptyReply(reply: AIMessage): boolean {
  if (hasCalls(reply) || textOf(reply).trim() !== "") return false;
  const { content } = reply;
  return typeof content === "string" || content.every(({ type }) => type === "text" || THOUGHTS.has(type));
}

/** Puts `text`, the beginning of a reply, in front of `next`, its rest. Changes `next`. */
export function continued(text: string, next: AIMessage): void {
  const { content } = next;
  // OpenAI's package would send this copy of the rest instead of the whole message.
  delete next.response_metadata["output"];
  if (typeof content === "string") {
    next.content = text + content;
    return;
  }
  const first = content.findIndex(({ type }) => !THOUGHTS.has(type));
  const at = first < 0 ? content.length : first;
  next.content = [...content.slice(0, at), { type: "text", text }, ...content.slice(at)];
}

/** Puts the content of a paused reply in front of `next`, which continues it. Changes `next`. */
export function resumed({ content }: AIMessage, next: AIMessage): void {
  next.content = [...toBlocks(content), ...toBlocks(next.content)];
}

/** Marks a reply as cut, in its text and as the run's stop reason. Changes `reply`. */
export function markCut(reply: AIMessage): AIMessage {
  reply.content = withEnd(reply.content, texts.cutMark);
  delete reply.response_metadata["output"];
  reply.response_metadata["stop_reason"] = "max_output_tokens";
  return reply;
}

/** Error of a run whose model did not answer, even after reminders. */
export function noAnswer(reply: AIMessage): RunFailure {
  const reason = readFinishReason(reply);
  const told = reason === undefined ? "" : fill(texts.noAnswerReason, reason);
  const remedy = isCut(reply) ? texts.raiseLimit : texts.followUp;
  return new RunFailure("no_answer", fill(texts.noAnswer, told, remedy));
}
