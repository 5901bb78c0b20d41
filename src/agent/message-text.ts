import type { BaseMessage } from "@langchain/core/messages";

/** The text of a message: LangChain's `text`, which takes a string through all its content formats each time. */
export const textOf = (message: BaseMessage): string =>
  typeof message.content === "string" ? message.content : message.text;
