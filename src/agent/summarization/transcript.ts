import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

/** Messages as Markdown, in full: what is kept in a file when they leave the conversation. */
export function transcript(messages: readonly BaseMessage[]): string {
  return messages.map((message) => `## ${titleOf(message)}\n\n${bodyOf(message)}\n`).join("\n");
}

function titleOf(message: BaseMessage): string {
  if (HumanMessage.isInstance(message)) return "Person";
  if (AIMessage.isInstance(message)) return "Agent";
  if (ToolMessage.isInstance(message))
    return `Result of ${message.name ?? "a tool"} (${message.tool_call_id})`;
  return message.getType();
}

function bodyOf(message: BaseMessage): string {
  const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
  const lines = calls.map(({ id, name, args }) => `Call ${name} (${id ?? ""}): ${JSON.stringify(args)}`);
  return [message.text, ...lines].filter((part) => part !== "").join("\n\n");
}
