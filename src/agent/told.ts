import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { isPerson } from "./message-kind.ts";

/** What a person tells an agent that is at work. */
export interface InboxMessage {
  /** Becomes the id of the message in the thread, by which the agent knows that it has it. */
  id: string;
  text: string;
}

/** The mark of such a message in a thread, as LangChain's own middleware marks what it adds. */
const SOURCE = "inbox";

export const toldMessage = ({ id, text }: InboxMessage): HumanMessage =>
  new HumanMessage({ id, content: text, additional_kwargs: { lc_source: SOURCE } });

/** Whether a message is a task, and not something that the agent was told while it worked on one. */
export const isTask = (message: BaseMessage): message is HumanMessage =>
  isPerson(message) && message.additional_kwargs["lc_source"] !== SOURCE;
