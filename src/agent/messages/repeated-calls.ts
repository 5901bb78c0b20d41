/** Finds turns in which an agent only repeats calls whose results it already has. */
import { createHash } from "node:crypto";
import type { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";
import { sanitizeToolCallId } from "../../backends/paths.ts";
import { byIdentity } from "../../core/by-identity.ts";
import { isPerson, isReply, isResult, textOf } from "./messages.ts";

/** Turns of the longest cycle of calls that counts as a repetition. */
const LONGEST_CYCLE = 8;
/** Turns without anything new before the model is told. */
const TOLD_AFTER = 1;

export const REPEATED_NOTE =
  "[You made this call before, and its result is the same. Repeating it gives nothing new: use what you know, try something else, or report the obstacle.]";

interface Turn {
  reply: AIMessage;
  results: ToolMessage[];
}

/**
 * Counts the newest turns of a run in which every call, with its result, stands in an earlier turn too. Looks back
 * at `most` turns and one cycle, so that the cost does not grow with the run.
 */
export function repeatedTurns(messages: readonly BaseMessage[], most: number): number {
  const turns = newestTurns(messages, most + LONGEST_CYCLE).map(exchanges);
  let repeated = 0;
  for (let at = turns.length - 1; at > 0; at -= 1) {
    const earlier = new Set(turns.slice(Math.max(0, at - LONGEST_CYCLE), at).flat());
    if (!turns[at]?.every((exchange) => earlier.has(exchange))) break;
    repeated += 1;
  }
  return repeated;
}

/** True if the model is to be told that `result` of a call in the newest reply repeats earlier turns. */
export function isRepeated(messages: readonly BaseMessage[], result: ToolMessage): boolean {
  const at = messages.findLastIndex(isReply);
  const reply = messages[at];
  const before = messages.slice(0, Math.max(at, 0));
  if (!reply || !isReply(reply) || repeatedTurns(before, TOLD_AFTER) < TOLD_AFTER) return false;
  const earlier = newestTurns(before, LONGEST_CYCLE).flatMap(exchanges);
  return exchanges({ reply, results: [result] }).every((exchange) => earlier.includes(exchange));
}

/** The newest finished turns since a person last said something, oldest first. */
function newestTurns(messages: readonly BaseMessage[], most: number): Turn[] {
  const turns: Turn[] = [];
  let results: ToolMessage[] = [];
  for (let at = messages.length - 1; at >= 0 && turns.length < most; at -= 1) {
    const message = messages[at];
    if (!message || isPerson(message)) break;
    if (isResult(message)) results.unshift(message);
    if (!isReply(message)) continue;
    turns.unshift({ reply: message, results });
    results = [];
  }
  return turns;
}

/** One text for each call of a turn with its result. A turn without calls has a text of its own. */
function exchanges({ reply, results }: Turn): string[] {
  const calls = new Map(reply.tool_calls?.map(({ id, name, args }) => [id, JSON.stringify([name, args])]));
  if (results.length === 0) return [`no calls: ${reply.id ?? ""}`];
  return results.map((result) => `${calls.get(result.tool_call_id) ?? ""} ${digestOf(result)}`);
}

/** Ignores our note, and the call's id in the path of a file that keeps a long result. */
const digestOf = byIdentity((result: ToolMessage): string => {
  const text = textOf(result).replace(REPEATED_NOTE, "").trim();
  const plain = text.replaceAll(sanitizeToolCallId(result.tool_call_id) || "\0", "");
  return createHash("sha256").update(plain).digest("base64url");
});
