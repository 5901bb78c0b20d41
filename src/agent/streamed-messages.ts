import { BaseMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";

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
