/** Messages that a person sends to an agent while it works. */
import type { BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { byIdentity } from "../../core/by-identity.ts";
import type { AgentState, Inbox, InboxMessage, StateUpdate } from "../contracts/state.ts";
import { agentPath, contextOf } from "./step-of-task.ts";
import { foldMessages, inboxMessage } from "../messages/messages.ts";

/** The inbox of the main agent. Subagents have none, because they have a task of their own. */
function inboxOf(config: RunnableConfig): Inbox | undefined {
  if (agentPath(config).length > 0) return undefined;
  return contextOf(config).inbox;
}

/** Ids of messages that were found in the thread of an inbox. They stay there, so it is not searched for them again. */
const receivedFrom = byIdentity((_inbox: Inbox) => new Set<string>());

/** The messages that are not yet part of `thread`. */
export async function newMessages(
  inbox: Inbox | undefined,
  thread: readonly BaseMessage[],
): Promise<HumanMessage[]> {
  if (inbox === undefined) return [];
  const known = receivedFrom(inbox);
  const looked = (await inbox.messages()).filter(({ id }) => !known.has(id));
  const missing = unread(looked, thread);
  for (const { id } of looked) if (missing.every((message) => message.id !== id)) known.add(id);
  return missing;
}

/** The messages that are not yet part of `thread`. */
export function unread(told: readonly InboxMessage[], thread: readonly BaseMessage[]): HumanMessage[] {
  if (told.length === 0) return [];
  const known = new Set(thread.map(({ id }) => id));
  return told.filter(({ id }) => !known.has(id)).map(inboxMessage);
}

/** Takes a turn on a thread that ends in the new messages of the inbox, if there are any. */
export function readingInbox<Turned extends { update: StateUpdate }>(
  takeTurn: (state: AgentState, config: RunnableConfig) => Promise<Turned>,
): typeof takeTurn {
  return async (state, config) => {
    const told = await newMessages(inboxOf(config), state.messages);
    if (told.length === 0) return takeTurn(state, config);
    const turned = await takeTurn({ ...state, messages: foldMessages(state.messages, [told]) }, config);
    const { messages = [], ...rest } = turned.update;
    return { ...turned, update: { ...rest, messages: [...told, ...messages] } };
  };
}
