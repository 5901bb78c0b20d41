/** Finds turns in which an agent only repeats calls whose results it already has. */
import { createHash } from "node:crypto";
import type { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { sanitizeToolCallId } from "../../backends/paths.ts";
import { byIdentity } from "../../core/by-identity.ts";
import { isPerson, isReply, isResult, textOf } from "./messages.ts";

/** Turns of the longest cycle of calls that counts as a repetition. */
const LONGEST_CYCLE = 8;

export const REPEATED_NOTE =
  "[You made this call before, and its result is the same. Repeating it gives nothing new: use what you know, try something else, or report the obstacle.]";

/** Characters of a failure that are compared. */
const COMPARED_CHARS = 300;

export const FAILURES_NOTE =
  "[Your last calls of this tool failed in the same way, although their arguments differ. Find out why before you try again: look at the facts, or take another way.]";

interface FinishedTurn {
  reply: AIMessage;
  results: ToolMessage[];
}

/** Counts the newest turns that only repeat earlier ones. Looks back at `most` turns and one cycle. */
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

/** A note for the model if the newest turn so far, and now a `result`, only repeat earlier turns. */
export function repeatedNote(messages: readonly BaseMessage[], result: ToolMessage): string | undefined {
  const at = messages.findLastIndex(isReply);
  const reply = messages[at];
  const before = messages.slice(0, Math.max(at, 0));
  if (!reply || !isReply(reply) || repeatedTurns(before, 1) === 0) return undefined;
  const earlier = newestTurns(before, LONGEST_CYCLE).flatMap(exchanges);
  const isRepeated = exchanges({ reply, results: [result] }).every((one) => earlier.includes(one));
  return isRepeated ? REPEATED_NOTE : undefined;
}

/** A note for the model if two earlier calls of the same tool failed like this one, each with other arguments. */
export function failuresNote(
  messages: readonly BaseMessage[],
  call: ToolCall,
  result: ToolMessage,
): string | undefined {
  const failure = failureWords(call, result);
  if (failure === undefined) return undefined;
  const tried = new Set([JSON.stringify(call.args)]);
  const turns = newestTurns(messages, LONGEST_CYCLE).filter(({ results }) => results.length > 0);
  for (const { reply, results } of turns.toReversed()) {
    const own = (reply.tool_calls ?? []).filter(({ name }) => name === call.name);
    const failed = own.filter((one) => {
      const answer = results.find(({ tool_call_id: id }) => id === one.id);
      return answer !== undefined && failureWords(one, answer) === failure;
    });
    if (failed.length < own.length) break;
    const [newest] = failed;
    if (newest) tried.add(JSON.stringify(newest.args));
    if (tried.size >= 3) return FAILURES_NOTE;
  }
  return undefined;
}

/** Returns the words of a failure without parts of the arguments; undefined for a success. */
function failureWords({ args }: ToolCall, result: ToolMessage): string | undefined {
  const text = withoutNotes(textOf(result));
  // The last line of a failed command, as `execute` writes it.
  if (result.status !== "error" && !/\[Command failed with exit code \d+\]/.test(text)) return undefined;
  const given = Object.values(args)
    .filter((value): value is string => typeof value === "string" && value.length > 2)
    .flatMap((value) => [value, ...value.split(/[\s/]+/).filter((part) => part.length > 2)]);
  const plain = given.reduce((rest, value) => rest.replaceAll(value, "*"), text.slice(0, COMPARED_CHARS * 4));
  return plain.replace(/'[^']*'|"[^"]*"|`[^`]*`|\d+/g, "*").slice(0, COMPARED_CHARS);
}

const withoutNotes = (text: string): string =>
  text.replace(REPEATED_NOTE, "").replace(FAILURES_NOTE, "").trim();

/** The newest finished turns since a person's last message, oldest first. */
function newestTurns(messages: readonly BaseMessage[], most: number): FinishedTurn[] {
  const turns: FinishedTurn[] = [];
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
function exchanges({ reply, results }: FinishedTurn): string[] {
  if (results.length === 0) return [`no calls: ${reply.id ?? ""}`];
  const calls = callTexts(reply);
  return results.map((result) => `${calls.get(result.tool_call_id) ?? ""} ${resultDigest(result)}`);
}

const callTexts = byIdentity(
  ({ tool_calls: calls = [] }: AIMessage) =>
    new Map(calls.map(({ id, name, args }) => [id, JSON.stringify([name, args])])),
);

/** Ignores our notes, and the call's id in the path of a file that keeps a long result. */
const resultDigest = byIdentity((result: ToolMessage): string => {
  const text = withoutNotes(textOf(result));
  const plain = text.replaceAll(sanitizeToolCallId(result.tool_call_id) || "\0", "");
  return createHash("sha256").update(plain).digest("base64url");
});
