/** Messages of a thread: their kinds, texts and copies, and how new ones join the thread. */
import {
  type BaseMessageLike,
  type MessageContent,
  AIMessage,
  BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
  coerceMessageLikeToMessage,
  isBaseMessageChunk,
} from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { ContentBlock } from "../../tools/tool.ts";
import type { InboxMessage } from "../contracts/state.ts";
import { byIdentity } from "../../core/by-identity.ts";
import { defined } from "../../core/unknown.ts";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { orElse } from "../../core/errors.ts";

/** A part of a message whose content is a list. */
export type Block = Exclude<BaseMessage["content"], string>[number];

/** The content of a message as blocks. A text is one, unless it is empty. */
export const toBlocks = (content: MessageContent): Block[] =>
  typeof content !== "string" ? content : content === "" ? [] : [{ type: "text", text: content }];

// Whole threads are looked through at every step: LangChain's own `isInstance`, for values of any kind, takes
// ten times as long as the one property that distinguishes messages.

export const isReply = (message: BaseMessage): message is AIMessage => message.type === "ai";

export const isResult = (message: BaseMessage): message is ToolMessage => message.type === "tool";

export const isPerson = (message: BaseMessage): message is HumanMessage =>
  isHuman(message) && readSource(message) !== "report";

/** True for words of a person, and for messages in that form. */
export const isHuman = (message: BaseMessage): message is HumanMessage => message.type === "human";

/** The calls of a reply; none of other messages. */
export const callsOf = (message: BaseMessage | undefined): ToolCall[] =>
  message && isReply(message) ? (message.tool_calls ?? []) : [];

/** The newest reply that made a call, its place in the thread, and the call. */
export function replyWith(
  messages: readonly BaseMessage[],
  callId: string | undefined,
): { at: number; reply: AIMessage; call: ToolCall } | undefined {
  const at = messages.findLastIndex((message) => callsOf(message).some(({ id }) => id === callId));
  const reply = messages[at];
  const call = callsOf(reply).find(({ id }) => id === callId);
  return reply && isReply(reply) && call ? { at, reply, call } : undefined;
}

export const beforeReply = (messages: BaseMessage[], callId: string): BaseMessage[] =>
  messages.slice(0, replyWith(messages, callId)?.at ?? 0);

/** The text of a message: LangChain's `text`, which takes a string through all its content formats each time. */
export const textOf = (message: BaseMessage): string =>
  typeof message.content === "string" ? message.content : message.text;

export const textIn = (content: string | readonly ContentBlock[]): string =>
  typeof content === "string"
    ? content
    : content.map(({ type, text }) => (type === "text" ? String(text) : "")).join("");

/** Text of the newest assistant message that has any; empty when there is none. */
export const lastAnswer = (messages: readonly BaseMessage[]): string =>
  messages.findLast((message) => AIMessage.isInstance(message) && message.text.trim() !== "")?.text ?? "";

/** Copies a message with other content, other marks and, for a reply, other calls. */
export function copyMessage(
  message: BaseMessage,
  change: Pick<BaseMessage, "content"> & Partial<Pick<AIMessage, "tool_calls" | "additional_kwargs">>,
): BaseMessage {
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

/**
 * Puts new messages into a thread by LangGraph's rules: one with a known id takes the place of that message, and a
 * `RemoveMessage` takes messages away. Results stand in the order of their calls, whichever ended first.
 */
export function foldMessages(
  state: BaseMessage[],
  writes: ReadonlyArray<BaseMessageLike | readonly BaseMessageLike[]>,
): BaseMessage[] {
  const added = (writes.flat() as BaseMessageLike[]).map(toMessage); // TypeScript also flattens contents
  const isRead = BaseMessage.isInstance(state[0]);
  const messages: Array<BaseMessage | undefined> = isRead ? [...state] : state.map(toMessage);
  // Many are looked up in an index of the whole thread.
  const places = added.length > 32 && new Map(messages.map((message, at) => [message?.id, at]));
  const find = (id: string): number => {
    if (places) return places.get(id) ?? -1;
    // A search with a callback takes many times as long.
    let at = messages.length - 1;
    while (at >= 0 && messages[at]?.id !== id) at -= 1;
    return at;
  };
  let isAppended = true;
  for (const message of added) {
    const { id } = message;
    const at = id ? find(id) : -1;
    const isRemoval = RemoveMessage.isInstance(message);
    isAppended &&= !isRemoval && at < 0;
    // LangGraph removes all messages before this id.
    if (isRemoval && id === "__remove_all__") {
      messages.length = 0;
      if (places) places.clear();
    } else if (isRemoval) {
      if (at >= 0) messages[at] = undefined;
      if (places) places.delete(id);
    } else {
      const place = at >= 0 ? at : messages.length;
      messages[place] = message;
      if (places) places.set(id, place);
    }
  }
  // Nothing was removed from a thread that was only added to.
  const kept = isAppended ? (messages as BaseMessage[]) : messages.filter((message) => message !== undefined);
  return inCallOrder(kept, isAppended ? state.length : 0);
}

const CLASSES: Readonly<Record<string, new (fields: never) => BaseMessage>> = {
  human: HumanMessage,
  ai: AIMessage,
  system: SystemMessage,
  tool: ToolMessage,
  function: FunctionMessage,
  generic: ChatMessage,
};

/** Converts a message-like value to a message; a piece of a stream becomes a whole message. */
function toMessage(given: BaseMessageLike): BaseMessage {
  const message = coerceMessageLikeToMessage(given);
  const Whole = isBaseMessageChunk(message) ? CLASSES[message.type] : undefined;
  if (!Whole) return message;
  const own = Object.entries(message).filter(([key]) => !/^(?:type|tool_call_chunks|lc_.*)$/.test(key));
  return new Whole(Object.fromEntries(own) as never); // the fields that a message of this class has
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

export const inboxMessage = ({ id, text, from }: InboxMessage): HumanMessage =>
  messageFrom(from ? "report" : "inbox", id, text);

/** Marks a message as LangChain's own middleware marks its additions. */
export const messageFrom = (source: (typeof SOURCES)[number], id: string, content: string): HumanMessage =>
  new HumanMessage({ id, content, additional_kwargs: { lc_source: source } });

/**
 * The origins of messages that are not tasks. `report`: a subagent in the background. `goal`: the judge of the goal, or a
 * person who decided about it.
 */
const SOURCES = ["report", "inbox", "goal", "end_check"] as const;

const readSource = ({ additional_kwargs: { lc_source: source } }: BaseMessage): unknown => source;

export const isEndCheck = (message: BaseMessage): boolean => readSource(message) === "end_check";

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

export const withEnd = (content: MessageContent, paragraph: string): MessageContent => {
  const text = `\n\n${paragraph}`;
  return typeof content === "string" ? content + text : [...content, { type: "text", text }];
};

/** The mark of a task with a listing of the workspace, which only the model reads. */
const WORKSPACE_NOTE = "workspace_note";

export const withWorkspaceNote = (message: HumanMessage, note: string): BaseMessage =>
  copyMessage(message, {
    content: message.content,
    additional_kwargs: { ...message.additional_kwargs, [WORKSPACE_NOTE]: note },
  });

/** A message as the model reads it: a task is followed by its notes. */
export const withStartNote = byIdentity((message: BaseMessage): BaseMessage => {
  const { [WORKSPACE_NOTE]: workspace, [START_NOTE]: start } = message.additional_kwargs;
  const notes = [workspace, start].filter((note): note is string => typeof note === "string");
  if (notes.length === 0) return message;
  return copyMessage(message, { content: notes.reduce(withEnd, message.content), additional_kwargs: {} });
});

/** True if a message is a task, not one that arrived during the work on a task. */
export const isTask = (message: BaseMessage): message is HumanMessage =>
  isHuman(message) && !SOURCES.some((source) => source === readSource(message));

/** The definition of a tool, about as providers write it for the model. */
export const toolText = ({ name, description, schema }: StructuredToolInterface): string =>
  `${name}\n${description}\n${JSON.stringify(isInteropZodSchema(schema) ? orElse(() => toJsonSchema(schema), {}) : schema)}`;
