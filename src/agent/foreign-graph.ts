import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { AgentState } from "./state.ts";
import { CHECKPOINTER_KEY } from "./step.ts";
import type { SubagentRunnable } from "./subagents.ts";

/** What a subagent's report says of files, when it was not built here and tells nothing before its end. */
export const FILES_NOT_KNOWN =
  "Which files it had changed is not known: it does not tell its state while it works.";

/** A runnable that tells its state while it works, with a graph that reads it from checkpoints. */
interface StatefulRunnable {
  stream(input: Record<string, unknown>, config: RunnableConfig): Promise<AsyncIterable<unknown>>;
}

interface Graph extends StatefulRunnable {
  withConfig(config: RunnableConfig): Graph;
  getState(config: RunnableConfig): Promise<{ values: unknown }>;
}

/** The runnable itself, if it is a graph of LangGraph or an agent of LangChain, which has one inside. */
export function statefulRunnable(runnable: SubagentRunnable): StatefulRunnable | undefined {
  // Both have LangGraph's `stream`.
  return graphIn(runnable) && (runnable as SubagentRunnable & StatefulRunnable);
}

/** The state that a foreign subagent had reached; `undefined`: no checkpoint of ours has it. */
export async function stateReached(
  runnable: SubagentRunnable,
  checkpointer: BaseCheckpointSaver,
  address: Readonly<{ thread_id: unknown; checkpoint_ns: string }>,
): Promise<Partial<AgentState> | undefined> {
  const graph = graphIn(runnable);
  if (!graph || !(await checkpointer.getTuple({ configurable: address }))) return undefined;
  // A copy, because a graph reads parts of its state by a checkpointer of its own.
  const kept = Object.assign(graph.withConfig({}), { checkpointer });
  const configurable = { ...address, [CHECKPOINTER_KEY]: checkpointer };
  const { values } = await kept.getState({ configurable });
  return values as Partial<AgentState>; // what it shares with an agent, as its result does
}

function graphIn(runnable: unknown): Graph | undefined {
  if (isGraph(runnable)) return runnable;
  const inner: unknown =
    typeof runnable === "object" && runnable !== null && "graph" in runnable ? runnable.graph : undefined;
  return isGraph(inner) ? inner : undefined;
}

/** LangGraph marks its graphs: several versions of its package may be installed. */
const isGraph = (value: unknown): value is Graph =>
  typeof value === "object" && value !== null && "lg_is_pregel" in value && value.lg_is_pregel === true;
