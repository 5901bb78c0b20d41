/** Messages to an agent while it works: of people, and reports of subagents that worked in the background. */
import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { byIdentity } from "../../core/by-identity.ts";
import type { ReadChild } from "../contracts/children.ts";
import type { AgentState, FilesState, Inbox, InboxMessage, StateUpdate } from "../contracts/state.ts";
import { agentPath, contextOf } from "./step-of-task.ts";
import { foldMessages, inboxMessage } from "../messages/messages.ts";
import { type MergedFiles, describeConflict, mergeFiles } from "../step/merge-files.ts";
import { StepFiles } from "../step/files.ts";
import { GIVEN_FILES, mergedUpdate } from "./channels.ts";

/** The inbox of the agent that a run works with. Subagents in it have none, because they have a task of their own. */
function inboxOf(config: RunnableConfig): Inbox | undefined {
  const { inbox, top = 0 } = contextOf(config);
  return agentPath(config).length > top ? undefined : inbox;
}

/** Ids of messages that were found in the thread of an inbox. They stay there, so it is not searched for them again. */
const receivedFrom = byIdentity((_inbox: Inbox) => new Set<string>());

/** The messages that are not yet part of `thread`. */
export async function newMessages(
  inbox: Inbox | undefined,
  thread: readonly BaseMessage[],
): Promise<InboxMessage[]> {
  if (inbox === undefined) return [];
  const known = receivedFrom(inbox);
  const looked = (await inbox.messages()).filter(({ id }) => !known.has(id));
  const missing = unread(looked, thread);
  for (const { id } of looked) if (missing.every((message) => message.id !== id)) known.add(id);
  return missing;
}

export function unread(told: readonly InboxMessage[], thread: readonly BaseMessage[]): InboxMessage[] {
  if (told.length === 0) return [];
  const known = new Set(thread.map(({ id }) => id));
  return told.filter(({ id }) => !known.has(id));
}

/** True if the agent of a task was sent something that its thread does not have. */
export const hasNewMessages = async (config: RunnableConfig, { messages }: AgentState): Promise<boolean> =>
  (await newMessages(inboxOf(config), messages)).length > 0;

/** Changes of a thread that takes messages in. A report comes with the files that its subagent changed. */
export async function received(
  told: readonly InboxMessage[],
  { files: before = {} }: Partial<Pick<AgentState, "files">>,
  readChild: ReadChild | undefined,
): Promise<StateUpdate> {
  const now = new StepFiles(before);
  const merged: MergedFiles = { update: {}, conflicts: [] };
  const messages: BaseMessage[] = [];
  for (const message of told) {
    const { from } = message;
    const state = from && (await readChild?.(from));
    if (!state) {
      messages.push(inboxMessage(message));
      continue;
    }
    const started = new StepFiles((state[GIVEN_FILES] as FilesState | undefined) ?? {}).atStart(); // our channel
    const { update, conflicts } = mergeFiles(state.files ?? {}, started, now, message.id);
    now.apply(update);
    Object.assign(merged.update, update);
    merged.conflicts.push(...conflicts);
    const text = [message.text, ...conflicts.map(describeConflict)].join("\n\n");
    messages.push(inboxMessage({ ...message, text }));
  }
  return { messages, ...mergedUpdate(merged) };
}

/** Takes a turn on a thread that ends in the new messages of the inbox, if there are any. */
export function readingInbox<Turned extends { update: StateUpdate }>(
  takeTurn: (state: AgentState, config: RunnableConfig) => Promise<Turned>,
): typeof takeTurn {
  return async (state, config) => {
    const told = await newMessages(inboxOf(config), state.messages);
    if (told.length === 0) return takeTurn(state, config);
    const { messages: added = [], ...others } = await received(told, state, contextOf(config).readChild);
    const turned = await takeTurn({ ...state, messages: foldMessages(state.messages, [added]) }, config);
    const { messages = [], ...rest } = turned.update;
    return { ...turned, update: { ...others, ...rest, messages: [...added, ...messages] } };
  };
}
