import { ToolMessage } from "@langchain/core/messages";
import {
  type Agent,
  type AgentEvent,
  type AgentInput,
  type HitlResponse,
  type WorkOptions,
} from "../../src/agent/agent.ts";
import { DeepAgentGraph } from "../../src/agent/langgraph/deep-agent-graph.ts";
import { ThreadAgent } from "../../src/agent/langgraph/thread-agent.ts";
import { repairHistory } from "../../src/agent/messages/mend.ts";

/** Works on a thread until it pauses or ends, and gives everything it told; `told` sees all until then each time. */
export async function collect(
  agent: Agent,
  input: AgentInput,
  { threadId = "t1", ...options }: Partial<WorkOptions> & { threadId?: string } = {},
  told: (events: readonly AgentEvent[]) => void = () => undefined,
): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  const add = (event: AgentEvent): void => {
    events.push(event);
    told(events);
  };
  const sink = { tell: add, stored: async () => undefined };
  add(
    await agent.work(threadId, input, {
      runId: "run_1",
      signal: new AbortController().signal,
      events: sink,
      ...options,
    }),
  );
  return events;
}

/** The input that goes on with the given answers, by interrupt id. */
export const resumeAgentInput = (answers: Readonly<Record<string, HitlResponse>>): AgentInput => ({
  kind: "resume",
  answers,
});

/** The LangGraph graph of an agent, which runs never see. */
export function graphOf(agent: Agent): DeepAgentGraph {
  if (!(agent instanceof ThreadAgent)) throw new Error("not an agent with a graph");
  return agent.graph;
}

/** A copy of a graph whose snapshots have the agent's internal channels, too. */
export function withInternals(graph: DeepAgentGraph): DeepAgentGraph {
  return Object.assign(DeepAgentGraph.from(graph, graph.facts), {
    streamChannels: Object.keys(graph.builder.channels),
  });
}

/** For `told` of `collect`: the pauses between tries of a model call are over as soon as they begin. */
export function skippingPauses(time: { pass(milliseconds: number): void }) {
  return (events: readonly AgentEvent[]): void => {
    const newest = events.at(-1);
    // The event is told before its pause begins.
    if (newest?.kind === "model_retry") setImmediate(() => time.pass(newest.pauseMs));
  };
}

/** The tool messages of a thread as a model sees them: in call order. */
export async function toolMessages(agent: Agent, threadId = "t1"): Promise<ToolMessage[]> {
  const { values } = await graphOf(agent).getState({ configurable: { thread_id: threadId } });
  return repairHistory(values["messages"] ?? []).filter((message) => ToolMessage.isInstance(message));
}

/** The open requests at the end of `events`, which must be a pause. */
export function paused(events: readonly AgentEvent[]): (AgentEvent & { kind: "paused" })["interrupts"] {
  const last = events.at(-1);
  if (last?.kind !== "paused") throw new Error(`expected a pause, got ${JSON.stringify(last)}`);
  return last.interrupts;
}
