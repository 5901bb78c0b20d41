import type { RunnableConfig } from "@langchain/core/runnables";
import {
  Annotation,
  type BaseChannel,
  type BaseCheckpointSaver,
  type BaseStore,
  type Command,
  START,
  StateGraph,
} from "@langchain/langgraph";
import type { z } from "zod";
import { defined } from "../../core/defined.ts";
import type { TurnSteps } from "../budget/meter.ts";
import type { AgentState } from "../contracts/state.ts";
import type { AgentDefinition } from "./definition.ts";
import { noteFirstStep } from "./resume.ts";
import { type GraphNode, type NodeFunction, noticeTask, runUntraced } from "./untraced-node.ts";

/** Named as in agents of LangChain: programs that stream tell a model's words from a tool's by these names. */
export const MODEL = "model_request";

/** A node that works on the whole state. */
export type AgentNode = (state: AgentState, config: RunnableConfig) => Promise<Command>;

/** Options of a graph besides its definition. */
export interface CompileOptions {
  channels: Record<string, BaseChannel>;
  /** Channels in results, and those in streams and snapshots. Default: all. */
  visible?: { results: readonly string[]; snapshots: readonly string[] };
  checkpointer?: BaseCheckpointSaver | boolean;
  store?: BaseStore;
  /** Checked against each run's context before it starts. */
  contextSchema?: z.ZodObject;
}

/** The nodes of a graph, by name. */
export type GraphNodes = Record<string, { work: NodeFunction; ends?: string[]; edge?: string }>;

/** Notes the beginning of each task, whichever node it is of. */
const noticing =
  (work: NodeFunction, steps: TurnSteps): NodeFunction =>
  (input, config) => {
    noteFirstStep(config, steps.turn);
    noticeTask(config);
    return work(input, config);
  };

/** Makes LangGraph's graph of these nodes. */
export function compileGraph(
  { nodes: given, start, steps }: { nodes: GraphNodes; start: string; steps: TurnSteps },
  definition: AgentDefinition,
  { channels, visible, contextSchema, checkpointer, store }: CompileOptions,
): CompiledAgentGraph {
  const nodes = Object.fromEntries(
    Object.entries(given).map(([name, node]) => [name, { ...node, work: noticing(node.work, steps) }]),
  );
  // LangGraph tracks node names in the type of the builder, which a graph of optional nodes cannot state.
  const graph = new StateGraph(Annotation.Root(channels), contextSchema) as unknown as GraphBuilder;
  for (const [name, { work, ends }] of Object.entries(nodes)) {
    graph.addNode(name, work, ends ? { ends } : undefined);
  }
  for (const [name, { edge }] of Object.entries(nodes)) if (edge) graph.addEdge(name, edge);
  graph.addEdge(START, start);
  const compiled = graph.compile({ name: definition.name, ...defined({ checkpointer, store }) });
  const names = new Set(Object.keys(channels));
  if (visible) {
    Object.assign(compiled, { outputChannels: visible.results, streamChannels: visible.snapshots });
  }
  const byName: Record<string, GraphNode | undefined> = compiled.nodes;
  for (const [name, { work, edge }] of Object.entries(nodes)) {
    const node = byName[name];
    if (node) runUntraced(node, work, { name, channels: names, ...defined({ edge }) });
  }
  return compiled;
}

/** The compiled graph of an agent. */
export type CompiledAgentGraph = ReturnType<GraphBuilder["compile"]>;

type GraphBuilder = Omit<StateGraph<AgentState>, "addNode" | "addEdge" | "compile"> & {
  addNode(name: string, node: NodeFunction, options?: { ends?: string[] }): void;
  addEdge(from: string, to: string): void;
  compile: StateGraph<AgentState>["compile"];
};
