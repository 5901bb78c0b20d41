/** Messages of a thread: their kinds, texts and copies, and how new ones join the thread. */
import { randomUUID } from "node:crypto";
import {
  AIMessage,
  BaseMessage,
  type BaseMessageLike,
  HumanMessage,
  RemoveMessage,
  ToolMessage,
  coerceMessageLikeToMessage,
} from "@langchain/core/messages";
import { type Command, isCommand, messagesDeltaReducer } from "@langchain/langgraph";
import type { InboxMessage } from "../contracts/state.ts";
import { byIdentity } from "../../core/by-identity.ts";
import { defined } from "../../core/defined.ts";

// Whole threads are looked through at every step: LangChain's own `isInstance`, for values of any kind, takes
// ten times as long as the one property that tells messages apart.

export const isReply = (message: BaseMessage): message is AIMessage => message.type === "ai";

export const isResult = (message: BaseMessage): message is ToolMessage => message.type === "tool";

export const isPerson = (message: BaseMessage): message is HumanMessage => message.type === "human";

/** The text of a message: LangChain's `text`, which takes a string through all its content formats each time. */
export const textOf = (message: BaseMessage): string =>
  typeof message.content === "string" ? message.content : message.text;

/** Text of the newest assistant message that has any; empty when there is none. */
export function lastAnswer(messages: readonly BaseMessage[]): string {
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (AIMessage.isInstance(message) && message.text.trim() !== "") return message.text;
  }
  return "";
}

/** Gives each message of an input an id, by which it can be moved into a file or cut off. */
export function withMessageIds<Input>(input: Input): Input {
  if (typeof input !== "object" || input === null || isCommand(input) || !("messages" in input)) return input;
  const messages = [input.messages].flat().map((given) => {
    const message = coerceMessageLikeToMessage(given as BaseMessageLike); // LangGraph refuses what is none
    // A message is stored by the fields that it was made from.
    if (message.id === undefined) message.lc_kwargs["id"] = message.id = randomUUID();
    return message;
  });
  return { ...input, messages };
}

interface Change {
  content: BaseMessage["content"];
  tool_calls?: NonNullable<AIMessage["tool_calls"]>;
  additional_kwargs?: BaseMessage["additional_kwargs"];
}

/** The same message with another content, other marks and, of a reply, other calls. */
export function copyMessage(message: BaseMessage, change: Change): BaseMessage {
  const { id, name, additional_kwargs, response_metadata } = message;
  const named = defined({ id: id || undefined, name: name || undefined });
  const fields = { additional_kwargs, response_metadata, ...named, ...change };
  if (AIMessage.isInstance(message)) {
    const { tool_calls = [], invalid_tool_calls, usage_metadata } = message;
    return new AIMessage({ tool_calls, ...defined({ invalid_tool_calls, usage_metadata }), ...fields });
  }
  if (!ToolMessage.isInstance(message)) return new HumanMessage(fields);
  const { tool_call_id, status, artifact } = message;
  return new ToolMessage({ ...fields, tool_call_id, ...defined({ status }), artifact });
}

type Writes = Parameters<typeof messagesDeltaReducer>[1];

/** More are replayed rather than added. */
const FEW = 32;

/**
 * LangGraph's fold of messages, which makes an index of the whole thread each time. A few new messages, which
 * is nearly all that ever comes, are put at its end without. Results stand in the order of their calls,
 * whichever ended first: LangGraph's order differs from run to run.
 */
export function foldMessages(state: BaseMessage[], writes: Writes): BaseMessage[] {
  const added: unknown[] = writes.flat();
  if (added.length > FEW || (state.length > 0 && !isMessage(state[0])) || !areNew(added, state)) {
    return inCallOrder([...messagesDeltaReducer(state, writes)], 0);
  }
  return inCallOrder([...state, ...added], state.length);
}

/** Sorts the results behind each reply that has some from `start` on. Changes `messages`. */
function inCallOrder(messages: BaseMessage[], start: number): BaseMessage[] {
  for (let end = start; end < messages.length; end += 1) {
    if (!ToolMessage.isInstance(messages[end])) continue;
    let first = end;
    while (ToolMessage.isInstance(messages[first - 1])) first -= 1;
    while (ToolMessage.isInstance(messages[end + 1])) end += 1;
    const reply = messages[first - 1];
    if (end === first || !AIMessage.isInstance(reply)) continue;
    const places = new Map(reply.tool_calls?.map(({ id }, index) => [id, index]));
    const placeOf = (result: BaseMessage): number =>
      (ToolMessage.isInstance(result) ? places.get(result.tool_call_id) : undefined) ?? places.size;
    const results = messages.slice(first, end + 1).sort((a, b) => placeOf(a) - placeOf(b));
    messages.splice(first, results.length, ...results);
  }
  return messages;
}

const isMessage = (value: unknown): value is BaseMessage => BaseMessage.isInstance(value);

function areNew(added: unknown[], state: readonly BaseMessage[]): added is BaseMessage[] {
  const ids = new Set<string>();
  return added.every((message) => {
    if (!isMessage(message) || RemoveMessage.isInstance(message)) return false;
    const { id } = message;
    if (id === undefined) return true;
    const isNew = !ids.has(id) && !state.some((known) => known.id === id);
    ids.add(id);
    return isNew;
  });
}

/**
 * Shows the messages of a node's answer to LangGraph's stream mode `messages`, which looks at the fields of an
 * answer and not into the update of a command. `streamed`: the one that the model has streamed itself.
 */
export function showMessages(answer: Command, streamed?: BaseMessage): Command {
  const { update } = answer;
  const given: unknown = Array.isArray(update)
    ? update.findLast(([channel]) => channel === "messages")?.[1]
    : update?.["messages"];
  const shown = [given].flat().filter((message) => BaseMessage.isInstance(message) && message !== streamed);
  return shown.length === 0 ? answer : Object.assign(answer, { messages: shown });
}

/** The mark of a message from the inbox in a thread, as LangChain's own middleware marks what it adds. */
const SOURCE = "inbox";

export const inboxMessage = ({ id, text }: InboxMessage): HumanMessage =>
  new HumanMessage({ id, content: text, additional_kwargs: { lc_source: SOURCE } });

/** The mark of a task with the note that only the model reads. */
const START_NOTE = "start_note";

/** The message of a task. Its text is the task alone; the model reads the note too. */
export const taskMessage = (
  content: string,
  { id, startNote }: { id?: string; startNote: string | undefined },
): HumanMessage =>
  new HumanMessage({
    content,
    ...defined({ id }),
    ...(startNote === undefined ? {} : { additional_kwargs: { [START_NOTE]: startNote } }),
  });

/** A message as the model reads it: a task is followed by its note. */
export const withStartNote = byIdentity((message: BaseMessage): BaseMessage => {
  const note: unknown = message.additional_kwargs[START_NOTE];
  if (typeof note !== "string") return message;
  const text = `\n\n${note}`;
  const { content } = message;
  return copyMessage(message, {
    content: typeof content === "string" ? content + text : [...content, { type: "text", text }],
    additional_kwargs: {},
  });
});

/** True if a message is a task, not one that arrived during the work on a task. */
export const isTask = (message: BaseMessage): message is HumanMessage =>
  isPerson(message) && message.additional_kwargs["lc_source"] !== SOURCE;
