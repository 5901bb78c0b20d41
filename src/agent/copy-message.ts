import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

interface Change {
  content: BaseMessage["content"];
  tool_calls?: NonNullable<AIMessage["tool_calls"]>;
  additional_kwargs?: BaseMessage["additional_kwargs"];
}

/** The same message with another content, other marks and, of a reply, other calls. */
export function copyMessage(message: BaseMessage, change: Change): BaseMessage {
  const { id, name, additional_kwargs, response_metadata } = message;
  const fields = {
    additional_kwargs,
    response_metadata,
    ...(id ? { id } : {}),
    ...(name ? { name } : {}),
    ...change,
  };
  if (AIMessage.isInstance(message)) {
    const { tool_calls = [], invalid_tool_calls, usage_metadata } = message;
    return new AIMessage({
      tool_calls,
      ...(invalid_tool_calls ? { invalid_tool_calls } : {}),
      ...(usage_metadata ? { usage_metadata } : {}),
      ...fields,
    });
  }
  if (!ToolMessage.isInstance(message)) return new HumanMessage(fields);
  const { tool_call_id, status, artifact } = message;
  return new ToolMessage({ ...fields, tool_call_id, ...(status ? { status } : {}), artifact });
}
