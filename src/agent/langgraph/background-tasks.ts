/** Subagents in the background, for the tools of the agent that starts them. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { type BaseCheckpointSaver, START, interrupt } from "@langchain/langgraph";
import { namesText } from "../../core/listing.ts";
import type { BackgroundTask, BackgroundTasks } from "../../tools/tool.ts";
import { type ChildRun, type ChildRuns, hasEnded } from "../contracts/children.ts";
import type { AgentState } from "../contracts/state.ts";
import { GIVEN_FILES, sharedState } from "./channels.ts";
import type { AgentDefinition, AgentGraph } from "./definition.ts";
import { CHECKPOINTER_KEY } from "./internals.ts";
import { hasNewMessages } from "./reading-inbox.ts";
import { contextOf, threadFiles } from "./step-of-task.ts";

/** Value of the interrupt of a call that waits for a background subagent. */
export const CHILD_AWAITED = "child_awaited";

/** True if subagents work in the background whose reports will continue the run. */
export async function waitsForChildren(config: RunnableConfig): Promise<boolean> {
  const children = await contextOf(config).children?.list();
  return children?.some((child) => !hasEnded(child)) ?? false;
}

/** The place of the call that uses them. */
interface Caller {
  messageId: string;
  callId: string;
  state: AgentState;
  config: RunnableConfig;
}

/** `undefined` where no run can have subagents in the background. */
export function backgroundTasks(
  agent: Pick<AgentDefinition, "subagents">,
  caller: Caller,
): BackgroundTasks | undefined {
  const { config, messageId, callId, state } = caller;
  const { children } = contextOf(config);
  if (children === undefined || agent.subagents === undefined) return undefined;
  const call = JSON.stringify([messageId, callId]);
  const find = async (id: string) => (await children.list()).find((child) => child.id === id);
  return {
    start: async ({ subagentType: name, description }) => {
      const known = await children.find(call);
      if (known !== undefined) return { ok: true, id: known.id };
      const graph = graphFor(agent, name);
      if (typeof graph === "string") return { ok: false, problem: graph };
      return startChild(children, graph, { call, name, description }, caller);
    },
    wait: async (id) => {
      const child = await find(id);
      if (child === undefined || hasEnded(child) || (await hasNewMessages(config, state)))
        return child && shown(child);
      // The task ends here, and begins again from its top when the run continues.
      return interrupt(CHILD_AWAITED);
    },
    list: async () => (await children.list()).map(shown),
    tell: async (id, text) => {
      const child = await children.tell(id, { id: `${id} ${call}`, text });
      return child && shown(child);
    },
    cancel: async (id) => {
      const child = await children.cancel(id, "Cancelled by the agent that started it.");
      return child && shown(child);
    },
  };
}

const shown = ({ id, name, description, status, step, startedAt, endedAt }: ChildRun): BackgroundTask => ({
  id,
  subagentType: name,
  description,
  status,
  step,
  startedAt,
  ...(endedAt === undefined ? {} : { endedAt }),
});

/** The graph of a subagent that can work by itself, or why there is none. */
function graphFor({ subagents }: Pick<AgentDefinition, "subagents">, name: string): AgentGraph | string {
  const known = subagents?.subagents ?? [];
  const found = known.find((subagent) => subagent.name === name);
  if (found === undefined) {
    return `the subagent type ${JSON.stringify(name)} is unknown; the types are ${namesText(known.map((one) => one.name))}`;
  }
  if (subagents?.isFork(name)) {
    return `the subagent '${name}' continues this conversation and cannot work in the background; start it with task`;
  }
  return (
    subagents?.graphOf(name) ?? `the subagent '${name}' cannot work in the background; start it with task`
  );
}

/** Stores the state from which a child begins, then the child. */
async function startChild(
  children: ChildRuns,
  graph: AgentGraph,
  child: { call: string; name: string; description: string },
  { config, state, callId }: Caller,
): ReturnType<BackgroundTasks["start"]> {
  const threadId = await children.newThread();
  const checkpointer = config.configurable?.[CHECKPOINTER_KEY] as BaseCheckpointSaver; // a run has one
  const files = Object.fromEntries(threadFiles(config, callId).entries());
  const begun = { ...sharedState(state), [GIVEN_FILES]: files };
  await graph.keptBy(checkpointer).updateState({ configurable: { thread_id: threadId } }, begun, START);
  const started = await children.start({ ...child, threadId });
  if (started !== "too_many") return { ok: true, id: started.id };
  return { ok: false, problem: "too many background tasks are at work; wait for one of them to end" };
}
