import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command } from "@langchain/langgraph";
import type { AgentParts } from "./agent-parts.ts";
import { repairHistory } from "./middleware/patch-tool-calls.ts";
import type { AgentState } from "./state.ts";

type Node = (state: AgentState, config: RunnableConfig) => Promise<Command>;

/**
 * What begins the next turn, unless the answer is there: LangChain's tools marked `returnDirect` end the
 * run with what they returned. An answer in a given form is still asked for.
 */
export function endingDirectly({ tools, structured }: AgentParts, end: string): (node: Node) => Node {
  const direct = new Set(
    [...tools.values()].flatMap(({ name, offered }) => (offered.returnDirect ? [name] : [])),
  );
  if (direct.size === 0 || structured) return (node) => node;
  return (node) => async (state, config) =>
    isAnsweredBy(direct, state.messages) ? new Command({ goto: end }) : node(state, config);
}

/** Whether the thread ends in a reply that called such tools only, all of which succeeded. */
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

/** The results that ended a run in place of a reply; empty when a reply did. */
export function directAnswer(thread: readonly BaseMessage[]): string {
  if (!ToolMessage.isInstance(thread.at(-1))) return "";
  const messages = repairHistory([...thread]); // in the order of the calls
  const at = messages.findLastIndex((message) => !ToolMessage.isInstance(message));
  return messages
    .slice(at + 1)
    .map(({ text }) => text)
    .join("\n\n");
}
