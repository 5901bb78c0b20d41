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
import type { AgentState, HookName, JumpTarget, StateUpdate } from "../contracts.ts";
import { returnDirect } from "../conversation/answers.ts";
import { readingInbox } from "../conversation/inbox.ts";
import { foldMessages, showMessages } from "../conversation/messages.ts";
import type { AgentDefinition } from "../definition/agent-definition.ts";
import { mergeUpdates } from "../middleware/middleware.ts";
import { branchTo } from "./langgraph.ts";
import {
  type AfterReply,
  type TurnSteps,
  createModelNode,
  jumpFrom,
  nextTasks,
  noticeStep,
} from "./model-node.ts";
import { TOOLS } from "./state.ts";
import { agentRuntime } from "./task-context.ts";
import { createToolNode } from "./tool-node.ts";
import { type GraphNode, type NodeFunction, noticeTask, runUntraced } from "./untraced-node.ts";

/** As in agents of LangChain: programs that stream tell a model's words from a tool's by these names. */
const MODEL = "model_request";
/** Where threads say that the model is next which were stored when its node had another name. */
const FORMER_TRIGGER = branchTo("model");
const BEFORE_AGENT = "before_agent";
const BEFORE_MODEL = "before_model";
const AFTER_MODEL = "after_model";
const AFTER_AGENT = "after_agent";

/** What a graph is compiled with besides its parts. */
export interface CompileOptions {
  channels: Record<string, BaseChannel>;
  /** Channels that callers are given. Default: all. */
  output?: readonly string[];
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
export function buildGraph(parts: AgentDefinition, options: CompileOptions): CompiledAgentGraph {
  const has = (hook: HookName): boolean => parts.middleware.some((layer) => layer[hook]);
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
    createHookNode(parts, hook, next, (target, messages) =>
      hook === "afterAgent" && target === "end" ? END : jumpFrom(target, messages, after),
    );

  const turn = returnDirect(parts, end);
  const asking = readingInbox(createModelNode(parts, after));
  const nodes: GraphNodes = {
    [MODEL]: {
      work: loopStart === MODEL ? turn(asking) : asking,
      ends: [...new Set([after.hooks ?? TOOLS, TOOLS, loopStart, end])],
    },
    [TOOLS]: { work: createToolNode(parts), edge: loopStart },
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
  return compile({ nodes, start: has("beforeAgent") ? BEFORE_AGENT : loopStart, steps }, parts, options);
}

type GraphNodes = Record<string, { work: NodeFunction; ends?: string[]; edge?: string }>;

/** All nodes tell that they begin, whichever is the first. */
const noticing =
  (work: NodeFunction, steps: TurnSteps): NodeFunction =>
  (input, config) => {
    noticeStep(config, steps);
    noticeTask(config);
    return work(input, config);
  };

interface Loop {
  nodes: GraphNodes;
  start: string;
  steps: TurnSteps;
}

function compile(
  { nodes: given, start, steps }: Loop,
  parts: AgentDefinition,
  { channels, output, contextSchema, checkpointer, store }: CompileOptions,
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
  const compiled = graph.compile({
    name: parts.name,
    ...(checkpointer === undefined ? {} : { checkpointer }),
    ...(store ? { store } : {}),
  });
  const triggers: Record<string, unknown> = compiled.channels;
  triggers[FORMER_TRIGGER] = triggers[branchTo(MODEL)];
  const names = new Set(Object.keys(channels));
  if (output) compiled.outputChannels = [...output];
  const byName: Record<string, GraphNode | undefined> = compiled.nodes;
  for (const [name, { work, edge }] of Object.entries(nodes)) {
    const node = byName[name];
    if (name === MODEL) node?.triggers.push(FORMER_TRIGGER);
    if (node) runUntraced(node, work, { name, channels: names, ...(edge ? { edge } : {}) });
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

/**
 * Runs all hooks of one kind; each sees what those before it changed. `before*` run first to last,
 * `after*` last to first. The first one that jumps decides, and those after it do not run.
 */
function createHookNode(
  parts: AgentDefinition,
  hook: HookName,
  next: (state: AgentState) => Send[] | string,
  jump: (target: JumpTarget, messages: readonly BaseMessage[]) => Send[] | string,
): (state: AgentState, config: RunnableConfig) => Promise<Command> {
  const layers = parts.middleware.filter((layer) => layer[hook]);
  const ordered = hook.startsWith("after") ? layers.toReversed() : layers;
  return async (state, config) => {
    const runtime = agentRuntime(config);
    const updates: StateUpdate[] = [];
    let current = state;
    for (const layer of ordered) {
      const { jumpTo, ...changes } = (await layer[hook]?.(current, runtime)) ?? {};
      const update = withoutEchoes(changes, current);
      updates.push(update);
      current = applyLocally(current, update);
      if (jumpTo) return answer(updates, jump(jumpTo, current.messages));
    }
    return answer(updates, next(current));
  };
}

const answer = (updates: readonly StateUpdate[], goto: Send[] | string): Command =>
  showMessages(new Command({ update: mergeUpdates(updates), goto }));

/** Hooks may answer with the whole state: a value handed back as it was is no change, and is not added twice. */
function withoutEchoes(update: StateUpdate, state: AgentState): StateUpdate {
  const isEcho = ([channel, value]: [string, unknown]): boolean =>
    typeof value === "object" && value !== null && value === state[channel];
  return Object.fromEntries(Object.entries(update).filter((entry) => !isEcho(entry)));
}

/** What later hooks of the same node see; the channels' reducers see the merged update once. */
function applyLocally(state: AgentState, { messages, files, ...rest }: StateUpdate): AgentState {
  return {
    ...state,
    ...rest,
    messages: messages ? foldMessages(state.messages, [messages]) : state.messages,
    files: files ? { ...state.files, ...files } : state.files,
  };
}
