/** Finds a call and its result among the messages of a thread. */
import { BaseMessage } from "@langchain/core/messages";
import { defined } from "../../core/defined.ts";
import { callsOf, isResult, textOf } from "./messages.ts";
import { parsePlaceholder } from "./kept-texts.ts";

/** Writes of one task of a thread to the channel `messages`. */
export interface WrittenMessages {
  /** The graph it belongs to, by LangGraph's name of it inside the thread; empty: the thread's own. */
  namespace: string;
  /** When the step before it was stored, in milliseconds since the epoch. */
  time: number;
  messages: unknown;
}

interface FoundCall {
  args: Record<string, unknown>;
  /** Absent as long as there is none. */
  result?: {
    text: string;
    isError: boolean;
    /** File that has the whole text, of which the message has the beginning. */
    keptIn?: string;
  };
}

/**
 * The call as its agent made it, with its result. Ids of calls come from models and may occur again: the newest one
 * before the call began counts. `ambiguous`: several agents made one with this id. `time`: when the call began, `since`:
 * when its run began.
 */
export function findCall(
  written: readonly WrittenMessages[],
  wanted: Record<"callId" | "tool", string> & Record<"time" | "since" | "depth", number>,
): FoundCall | "ambiguous" | undefined {
  const { callId, tool, time, since, depth } = wanted;
  const messages = written
    .filter(({ namespace }) => namespace.split("|").filter(Boolean).length === depth)
    .flatMap(({ messages: given, ...place }) =>
      [given]
        .flat()
        .filter((message) => BaseMessage.isInstance(message))
        .map((message) => ({ ...place, message })),
    );
  const made = messages.flatMap(({ message, ...place }) => {
    const own = callsOf(message).find(({ id, name }) => id === callId && name === tool);
    return own === undefined ? [] : [{ ...place, args: own.args }];
  });
  // Subagents of earlier runs in the thread may have used the id too.
  const calls = countGraphs(made) > 1 ? made.filter((one) => one.time >= since) : made;
  if (countGraphs(calls) > 1) return "ambiguous";
  const call = calls.findLast((one) => one.time <= time) ?? calls[0];
  if (call === undefined) return undefined;
  const results = messages.filter(
    ({ message, ...place }) =>
      isResult(message) &&
      message.tool_call_id === callId &&
      place.namespace === call.namespace &&
      place.time >= call.time,
  );
  // A later message with the same id is more complete than the first.
  const first = results[0]?.message;
  const last = first && results.findLast(({ message }) => message.id === first.id)?.message;
  if (!last || !isResult(last)) return { args: call.args };
  const text = textOf(last);
  const result = { text, isError: last.status === "error", ...defined({ keptIn: parsePlaceholder(text) }) };
  return { args: call.args, result };
}

const countGraphs = (calls: readonly { namespace: string }[]): number =>
  new Set(calls.map(({ namespace }) => namespace)).size;
