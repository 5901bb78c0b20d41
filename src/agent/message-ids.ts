import { randomUUID } from "node:crypto";
import { type BaseMessageLike, coerceMessageLikeToMessage } from "@langchain/core/messages";
import { isCommand } from "@langchain/langgraph";

/** Input whose messages can be told apart: what is moved into a file, or cut off, is known by its id. */
export function withMessageIds<Input>(input: Input): Input {
  if (typeof input !== "object" || input === null || isCommand(input) || !("messages" in input)) return input;
  const messages = [input.messages].flat().map((given) => {
    const message = coerceMessageLikeToMessage(given as BaseMessageLike); // LangGraph refuses what is none
    // What is stored of a message is what it was made from.
    if (message.id === undefined) message.lc_kwargs["id"] = message.id = randomUUID();
    return message;
  });
  return { ...input, messages };
}
