import { AIMessage, type BaseMessage } from "@langchain/core/messages";

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
