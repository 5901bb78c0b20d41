/** One look before an agent ends its work: at open todos, and at changes that nothing has checked since. */
import type { BaseMessage, HumanMessage } from "@langchain/core/messages";
import { isAtOrBelow } from "../../backends/paths.ts";
import { displayName, oneLine } from "../../core/text.ts";
import type { AgentTool } from "../contracts/middleware.ts";
import type { AgentState } from "../contracts/state.ts";
import { callsOf, isEndCheck, isResult, isTask, messageFrom } from "./messages.ts";

/** Todos and files that are named. */
const MOST_NAMED = 3;

interface EndChecked {
  tools: ReadonlyMap<string, AgentTool>;
  /** Only changes below this path count. Default: all. */
  below?: string | undefined;
}

/** Returns the message to an agent about to end its run; undefined if nothing is open, or it was sent before. */
export function endCheck(
  { messages, todos }: Pick<AgentState, "messages" | "todos">,
  checked: EndChecked,
  id: string,
): HumanMessage | undefined {
  const run = messages.slice(messages.findLastIndex(isTask) + 1);
  if (run.some(isEndCheck)) return undefined;
  const changed = [...changedUnchecked(run, checked)].map((path) => displayName(path));
  const open = todos
    .filter(({ status }) => status !== "completed")
    .map(({ content }) => `"${oneLine(content, 60)}"`);
  if (open.length === 0 && changed.length === 0) return undefined;
  const todo = open.length === 0 ? "" : ` these todos are open: ${shortList(open)}.`;
  const unchecked = `nothing has checked these files since you changed them: ${shortList(changed)}.`;
  const problems = changed.length === 0 ? todo : `${todo} ${unchecked}`;
  const content = `[Before you finish:${problems} Do that now, or say in your answer why not. Then give your whole answer again: only the last one is passed on.]`;
  return messageFrom("end_check", id, content);
}

/** Paths that were changed, and neither read nor followed by a command or a subagent. */
function changedUnchecked(run: readonly BaseMessage[], { tools, below = "/" }: EndChecked): Set<string> {
  const calls = new Map(run.flatMap(callsOf).map((call) => [call.id, call]));
  const changed = new Set<string>();
  for (const message of run) {
    if (!isResult(message) || message.status === "error") continue;
    const call = calls.get(message.tool_call_id);
    const tool = call && tools.get(call.name);
    if (!call || !tool || tool.kind === "plan") continue;
    const path = tool.pathOf(call.args);
    if (tool.kind === "write" && path !== undefined) {
      if (isAtOrBelow(path, below)) changed.add(path);
    } else if (tool.kind === "read" && path !== undefined) {
      for (const one of changed) if (isAtOrBelow(one, path)) changed.delete(one);
    } else if (tool.kind !== "read") changed.clear();
  }
  return changed;
}

function shortList(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return [...names.slice(0, MOST_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}
