/** Subagents in the background, for the tools of the agent that starts them. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { type BaseCheckpointSaver, START, interrupt } from "@langchain/langgraph";
import { namesText } from "../../core/listing.ts";
import { type BackgroundTasks, isOpenTask } from "../../tools/tool.ts";
import type { AgentState } from "../contracts/state.ts";
import { GIVEN_FILES, sharedState } from "./channels.ts";
import type { AgentDefinition, AgentGraph } from "./definition.ts";
import { CHECKPOINTER_KEY } from "./internals.ts";
import { hasNewMessages } from "./reading-inbox.ts";
import { agentSegment } from "../step/child-events.ts";
import { contextOf, threadFiles } from "./step-of-task.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/** Interrupt value for calls that wait for a background subagent. */
export const CHILD_AWAITED = "child_awaited";

/** True if subagents work in the background whose reports will continue the run. */
export const waitsForChildren = async (config: RunnableConfig): Promise<boolean> =>
  (await contextOf(config).children?.hasOpen()) ?? false;

/** Returns undefined where no run can have subagents in the background. */
export function backgroundTasks(
  agent: Pick<AgentDefinition, "subagents">,
  messageId: string,
  callId: string,
  state: AgentState,
  config: RunnableConfig,
): BackgroundTasks | undefined {
  const { children } = contextOf(config);
  if (children === undefined || agent.subagents === undefined) return undefined;
  const call = JSON.stringify([messageId, callId]);
  return {
    problem: (name) => {
      const graph = graphFor(agent, name);
      return typeof graph === "string" ? graph : undefined;
    },
    start: async ({ subagentType: name, description }) => {
      const known = await children.find({ call });
      if (known !== undefined) return { ok: true, id: known.id };
      const graph = graphFor(agent, name);
      if (typeof graph === "string") return { ok: false, problem: graph };
      // Stores the state from which the child begins, if that has something in it, then the child.
      const threadId = await children.newThread();
      const checkpointer = config.configurable?.[CHECKPOINTER_KEY] as BaseCheckpointSaver; // a run has one
      const files = Object.fromEntries(threadFiles(config, callId).entries());
      const hasFiles = Object.keys(files).length > 0;
      const begun = { ...sharedState(state), ...(hasFiles && { [GIVEN_FILES]: files }) };
      if (Object.keys(begun).length > 0)
        await graph.keptBy(checkpointer).updateState({ configurable: { thread_id: threadId } }, begun, START);
      const { task: title = "" } = agentSegment(callId, name, description);
      const started = await children.start({ call, name, description, title, threadId });
      if (started !== "too_many") return { ok: true, id: started.id };
      return { ok: false, problem: "too many background tasks are at work; wait for one of them to end" };
    },
    wait: async (id) => {
      const child = await children.find({ id });
      if (child === undefined || !isOpenTask(child) || (await hasNewMessages(config, state))) return child;
      // The task ends here, and begins again from its top when the run continues.
      return interrupt(CHILD_AWAITED);
    },
    list: () => children.list(),
    tell: (id, text) => children.tell(id, { id: `${id} ${call}`, text }),
    cancel: (id) => children.cancel(id, "Cancelled by the agent that started it."),
  };
}

/** The graph of a subagent that can work by itself, or why there is none. */
function graphFor({ subagents }: Pick<AgentDefinition, "subagents">, name: string): AgentGraph | string {
  const names = (subagents?.subagents ?? []).map((one) => one.name);
  const found = subagents?.find(name);
  if (found === undefined)
    return `the subagent type ${JSON.stringify(name)} is unknown; the types are ${namesText(names)}`;
  if (found.graph && !found.isFork) return found.graph;
  return fill(texts.notInBackground, name, found.isFork ? " continues this conversation and" : "");
}
