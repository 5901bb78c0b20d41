/** LangGraph's graph of an agent, and nodes that need no room of their own. */
import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseChannel, BaseCheckpointSaver, BaseStore, Send } from "@langchain/langgraph";
import { Annotation, Command, START, StateGraph } from "@langchain/langgraph";
import type { z } from "zod";
import { defined } from "../../core/unknown.ts";
import type { TurnSteps } from "../budget/meter.ts";
import type { HookName } from "../contracts/middleware.ts";
import type { AgentState, JumpTarget } from "../contracts/state.ts";
import { runHooks } from "../layers/compose.ts";
import { callsOf, isResult } from "../messages/messages.ts";
import type { AgentDefinition } from "./definition.ts";
import { showMessages } from "./outcome.ts";
import { noteFirstStep } from "./unfinished-step.ts";
import { agentRuntime, contextOf } from "./step-of-task.ts";
import { type GraphNode, type NodeFunction, runUntraced } from "./untraced-node.ts";

/** Named as in agents of LangChain: programs that stream distinguish a model's words from a tool's by these names. */
export const MODEL = "model_request";

export type AgentNode = (state: AgentState, config: RunnableConfig) => Promise<Command>;

export interface CompileOptions {
  channels: Record<string, BaseChannel>;
  /** Channels in results, and those in streams and snapshots. Default: all. */
  visible?: { results: readonly string[]; snapshots: readonly string[] };
  checkpointer?: BaseCheckpointSaver | boolean;
  store?: BaseStore;
  /** Checked against each run's context before it starts. */
  contextSchema?: z.ZodObject;
}

export type GraphNodes = Record<string, { work: NodeFunction; ends?: string[]; edge?: string }>;

export function compileGraph(
  { nodes: given, start, steps }: { nodes: GraphNodes; start: string; steps: TurnSteps },
  definition: AgentDefinition,
  { channels, visible, contextSchema, checkpointer, store }: CompileOptions,
): CompiledAgentGraph {
  // Notes the beginning of each task, whichever node it belongs to.
  const nodes = Object.entries(given).map(([name, node]) => {
    const work: NodeFunction = (input, config) => {
      noteFirstStep(config, steps.turn);
      contextOf(config).progress?.notice(config);
      return node.work(input, config);
    };
    return { ...node, name, work };
  });
  // LangGraph tracks node names in the type of the builder, which a graph of optional nodes cannot state.
  const graph = new StateGraph(Annotation.Root(channels), contextSchema) as unknown as GraphBuilder;
  for (const { name, work, ends } of nodes) graph.addNode(name, work, ends ? { ends } : undefined);
  for (const { name, edge } of nodes) if (edge) graph.addEdge(name, edge);
  graph.addEdge(START, start);
  const compiled = graph.compile({ name: definition.name, ...defined({ checkpointer, store }) });
  const names = new Set(Object.keys(channels));
  if (visible)
    Object.assign(compiled, { outputChannels: visible.results, streamChannels: visible.snapshots });
  const byName: Record<string, GraphNode | undefined> = compiled.nodes;
  for (const { name, work, edge } of nodes) {
    const node = byName[name];
    if (node) runUntraced(node, work, { name, channels: names, ...defined({ edge }) });
  }
  return compiled;
}

export type CompiledAgentGraph = ReturnType<GraphBuilder["compile"]>;

type GraphBuilder = Omit<StateGraph<AgentState>, "addNode" | "addEdge" | "compile"> & {
  addNode(name: string, node: NodeFunction, options?: { ends?: string[] }): void;
  addEdge(from: string, to: string): void;
  compile: StateGraph<AgentState>["compile"];
};

export function hookNode(
  definition: AgentDefinition,
  hook: HookName,
  next: (messages: readonly BaseMessage[]) => Send[] | string,
  jump: (target: JumpTarget, messages: readonly BaseMessage[]) => Send[] | string,
): AgentNode {
  const layers = definition.middleware.filter((layer) => layer[hook]);
  return async (before, config) => {
    const { update, state, jumpTo } = await runHooks(layers, hook, before, agentRuntime(config));
    const goto = jumpTo ? jump(jumpTo, state.messages) : next(state.messages);
    return showMessages(new Command({ update, goto }));
  };
}

/** Begins the next turn, unless results of tools marked `returnDirect` are the answer of the run. */
export function returnDirect(
  { tools, structured }: AgentDefinition,
  end: string,
): (node: AgentNode) => AgentNode {
  const direct = new Set(
    [...tools.values()].flatMap(({ name, offered }) => (offered.returnDirect ? [name] : [])),
  );
  if (direct.size === 0 || structured) return (node) => node;
  return (node) => async (state, config) => {
    const { messages } = state;
    const at = messages.findLastIndex((message) => !isResult(message));
    const calls = callsOf(messages[at]);
    const results = messages.slice(at + 1).filter(isResult);
    // The thread ends in a reply that called only such tools, and all of them succeeded.
    const isAnswered =
      results.length > 0 &&
      results.length === calls.length &&
      results.every(({ name = "", status }) => direct.has(name) && status !== "error");
    return isAnswered ? new Command({ goto: end }) : node(state, config);
  };
}
