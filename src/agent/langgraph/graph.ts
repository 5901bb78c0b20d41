import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  Annotation,
  type BaseChannel,
  type BaseCheckpointSaver,
  type BaseStore,
  Command,
  END,
  START,
  type Send,
  StateGraph,
} from "@langchain/langgraph";
import type { z } from "zod";
import type { AgentState, JumpTarget } from "../contracts/state.ts";
import type { HookName } from "../contracts/middleware.ts";
import { returnDirect } from "./return-direct.ts";
import { readingInbox } from "./reading-inbox.ts";
import { showMessages } from "./outcome.ts";
import type { AgentDefinition } from "./definition.ts";
import { runHooks } from "../layers/compose.ts";
import { branchTo } from "./internals.ts";
import type { TurnSteps } from "../budget/meter.ts";
import { type AfterReply, createModelNode, jumpFrom, nextTasks } from "./model-node.ts";
import { noteFirstStep } from "./resume.ts";
import { TOOLS } from "./channels.ts";
import { agentRuntime } from "./step-of-task.ts";
import { createToolNode } from "./tool-node.ts";
import { type GraphNode, type NodeFunction, noticeTask, runUntraced } from "./untraced-node.ts";
import { defined } from "../../core/defined.ts";

/** Named as in agents of LangChain: programs that stream tell a model's words from a tool's by these names. */
const MODEL = "model_request";
/** Wakes the model of threads that were stored when its node had another name. */
const FORMER_TRIGGER = branchTo("model");
const BEFORE_AGENT = "before_agent";
const BEFORE_MODEL = "before_model";
const AFTER_MODEL = "after_model";
const AFTER_AGENT = "after_agent";

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

/**
 * The agent's loop as a LangGraph graph: the model, then one task per tool call, then the model again.
 *
 * All hooks of one kind share one node, and a node exists only when the stack has such hooks: every node
 * is a step, and every step a checkpoint.
 */
export function buildGraph(definition: AgentDefinition, options: CompileOptions): CompiledAgentGraph {
  const has = (hook: HookName): boolean => definition.middleware.some((layer) => layer[hook]);
  const loopStart = has("beforeModel") ? BEFORE_MODEL : MODEL;
  const end = has("afterAgent") ? AFTER_AGENT : END;
  const steps = {
    turn: 2 + Number(has("beforeModel")) + Number(has("afterModel")),
    end: Number(has("afterAgent")),
  };
  const after: AfterReply = {
    tools: TOOLS,
    end,
    again: loopStart,
    steps,
    ...(has("afterModel") ? { hooks: AFTER_MODEL } : {}),
  };
  const hookNode = (hook: HookName, next: (state: AgentState) => Send[] | string) =>
    createHookNode(definition, hook, next, (target, messages) =>
      hook === "afterAgent" && target === "end" ? END : jumpFrom(target, messages, after),
    );

  const turn = returnDirect(definition, end);
  const asking = readingInbox(createModelNode(definition, after));
  const nodes: GraphNodes = {
    [MODEL]: {
      work: loopStart === MODEL ? turn(asking) : asking,
      ends: [...new Set([after.hooks ?? TOOLS, TOOLS, loopStart, end])],
    },
    [TOOLS]: { work: createToolNode(definition), edge: loopStart },
  };
  const ends = [MODEL, ...(has("beforeModel") ? [BEFORE_MODEL] : []), TOOLS, end];
  if (has("beforeAgent")) nodes[BEFORE_AGENT] = { work: hookNode("beforeAgent", () => loopStart), ends };
  if (has("beforeModel")) {
    nodes[BEFORE_MODEL] = { work: turn(hookNode("beforeModel", () => MODEL)), ends };
  }
  if (has("afterModel")) {
    nodes[AFTER_MODEL] = { work: hookNode("afterModel", ({ messages }) => nextTasks(messages, after)), ends };
  }
  if (has("afterAgent")) nodes[AFTER_AGENT] = { work: hookNode("afterAgent", () => END), ends: [END] };
  return compile({ nodes, start: has("beforeAgent") ? BEFORE_AGENT : loopStart, steps }, definition, options);
}

type GraphNodes = Record<string, { work: NodeFunction; ends?: string[]; edge?: string }>;

/** Notes the beginning of each task, whichever node it is of. */
const noticing =
  (work: NodeFunction, steps: TurnSteps): NodeFunction =>
  (input, config) => {
    noteFirstStep(config, steps.turn);
    noticeTask(config);
    return work(input, config);
  };

function compile(
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
  const triggers: Record<string, unknown> = compiled.channels;
  triggers[FORMER_TRIGGER] = triggers[branchTo(MODEL)];
  const names = new Set(Object.keys(channels));
  if (visible) {
    Object.assign(compiled, { outputChannels: visible.results, streamChannels: visible.snapshots });
  }
  const byName: Record<string, GraphNode | undefined> = compiled.nodes;
  for (const [name, { work, edge }] of Object.entries(nodes)) {
    const node = byName[name];
    if (name === MODEL) node?.triggers.push(FORMER_TRIGGER);
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

/** The node for all hooks of one kind. */
function createHookNode(
  definition: AgentDefinition,
  hook: HookName,
  next: (state: AgentState) => Send[] | string,
  jump: (target: JumpTarget, messages: readonly BaseMessage[]) => Send[] | string,
): (state: AgentState, config: RunnableConfig) => Promise<Command> {
  const layers = definition.middleware.filter((layer) => layer[hook]);
  return async (before, config) => {
    const { update, state, jumpTo } = await runHooks(layers, hook, before, agentRuntime(config));
    const goto = jumpTo ? jump(jumpTo, state.messages) : next(state);
    return showMessages(new Command({ update, goto }));
  };
}
