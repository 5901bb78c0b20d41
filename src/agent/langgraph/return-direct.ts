import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import type { AgentDefinition } from "./definition.ts";
import type { AgentNode } from "./graph.ts";

/**
 * Begins the next turn, unless the run has its answer: LangChain tools marked `returnDirect` end the run with their
 * results. A structured answer is still requested.
 */
export function returnDirect(
  { tools, structured }: AgentDefinition,
  end: string,
): (node: AgentNode) => AgentNode {
  const direct = new Set(
    [...tools.values()].flatMap(({ name, offered }) => (offered.returnDirect ? [name] : [])),
  );
  if (direct.size === 0 || structured) return (node) => node;
  return (node) => async (state, config) =>
    isAnsweredBy(direct, state.messages) ? new Command({ goto: end }) : node(state, config);
}

/** True if the thread ends in a reply that called only such tools, and all of them succeeded. */
function isAnsweredBy(direct: ReadonlySet<string>, messages: readonly BaseMessage[]): boolean {
  const at = messages.findLastIndex((message) => !ToolMessage.isInstance(message));
  const reply = messages[at];
  if (!AIMessage.isInstance(reply)) return false;
  const results = messages.slice(at + 1).filter((message) => ToolMessage.isInstance(message));
  return (
    results.length > 0 &&
    results.length === reply.tool_calls?.length &&
    results.every(({ name = "", status }) => direct.has(name) && status !== "error")
  );
}
