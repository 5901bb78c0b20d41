/** Runs nodes and nested graphs without the machinery for observers while nobody observes them, and reports calls. */
import { CallbackManager } from "@langchain/core/callbacks/manager";
import type { ToolCall } from "@langchain/core/messages/tool";
import { Runnable, type RunnableConfig } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { DynamicStructuredTool } from "@langchain/core/tools";
import { Command, END, Send, isCommand, isGraphInterrupt } from "@langchain/langgraph";
import { untilAborted } from "../../core/concurrency.ts";
import type { CallResult } from "../contracts/middleware.ts";
import type { AgentState } from "../contracts/state.ts";
import {
  CONFIG_KEY,
  SEND_KEY,
  STEP_KEY,
  STREAM_KEY,
  TASKS_CHANNEL,
  VARIABLES_KEY,
  branchTo,
} from "./internals.ts";
import { toOutcome } from "./outcome.ts";
import { contextOf, expectFanOut, isResuming, readState, withContext } from "./step-of-task.ts";

/** The node functions of our graphs return a command that changes the state and routes. */
export type NodeFunction = (input: never, config: RunnableConfig) => unknown;

export interface GraphNode {
  triggers: string[];
  getNode(): Runnable | undefined;
  getWriters(): Runnable[];
}

type Write = [channel: string, value: unknown];

/**
 * Lets tasks run without LangChain's sequence of runnables, each with a run for tracing, while nobody observes: it took
 * a third of a step's time. With a callback, a tracer, or such a stream mode, tasks run as LangGraph runs them.
 */
export function runUntraced(node: GraphNode, work: NodeFunction, routes: Routes): void {
  const observed = node.getNode();
  if (!observed) throw new Error(`the node ${routes.name} does nothing`);
  const task = new UntracedNode({ work, observed, writers: node.getWriters(), routes });
  node.getNode = () => task;
}

/** LangGraph's routes for the answers of a node. */
interface Routes {
  name: string;
  /** The node that follows every answer, if one does. */
  edge?: string;
  channels: ReadonlySet<string>;
}

interface Untraced {
  work: NodeFunction;
  /** The node as LangGraph runs it. */
  observed: Runnable;
  writers: readonly Runnable[];
  routes: Routes;
}

class UntracedNode extends Runnable {
  override lc_namespace: string[] = ["deepagent"];
  readonly #node: Untraced;

  constructor(node: Untraced) {
    super();
    this.#node = node;
  }

  override async invoke(input: unknown, config: RunnableConfig = {}): Promise<unknown> {
    try {
      return await this.#invoke(input, config);
    } catch (error) {
      const { progress } = contextOf(config);
      if (progress && isGraphInterrupt(error)) progress.isInterrupted = true;
      throw error;
    }
  }

  async #invoke(input: unknown, config: RunnableConfig): Promise<unknown> {
    if (config.signal) expectFanOut(config.signal);
    const { work, observed, writers, routes } = this.#node;
    // LangGraph stores the results of a task when it has ended. The journal has what led to them by then.
    const journaled = async (answer: unknown): Promise<unknown> => {
      await contextOf(config).events?.stored();
      return answer;
    };
    if (isObserved(config)) return observed.invoke(input, config).then(journaled);
    // Sets the configuration that LangChain's `getConfig` finds. LangGraph passes a node the input of its declared type.
    const working = inContext({ extra: { [CONFIG_KEY]: config } }, async () =>
      journaled(await work(input as never, config)),
    );
    let answer = await untilAborted(working, config.signal); // a task that does not listen is left behind
    if (isCommand(answer) && answer.graph === undefined) {
      const send = config.configurable?.[SEND_KEY] as (writes: Write[]) => void; // set by LangGraph for every task
      send(writesOf(answer, routes));
    } else {
      // Answers that leave the graph, such as commands of LangChain's tools for the graph above.
      for (const writer of writers) answer = await writer.invoke(answer, config);
    }
    return answer;
  }
}

/** Does `work` for a graph inside the running task: the task's configuration is not that of its tasks. */
export const outsideOfTask = <T>(work: () => T): T => inContext({}, work);

function inContext<T>(own: object, work: () => T): T {
  const storage = AsyncLocalStorageProviderSingleton.getInstance();
  const outer = storage.getStore() as Record<symbol, unknown> | undefined; // a run of a tracer, or like ours
  return storage.run({ ...own, [VARIABLES_KEY]: outer?.[VARIABLES_KEY] }, work);
}

function writesOf({ update, goto }: Command, { name, edge, channels }: Routes): Write[] {
  const changes = Array.isArray(update) ? update : Object.entries(update ?? {});
  const targets = [goto ?? []].flat().filter((target) => target !== END);
  return [
    ...changes.filter(([channel]) => channels.has(channel)),
    ...targets.map((target): Write =>
      target instanceof Send ? [TASKS_CHANNEL, target] : [branchTo(target), name],
    ),
    ...(edge === undefined ? [] : [[branchTo(edge), null] satisfies Write]),
  ];
}

/** Progress of a graph. It is read from LangGraph on demand, not reported at every step. */
export class Progress {
  #first: { task: RunnableConfig; step: unknown } | undefined;
  /** True if the first step has finished, so there is any result. */
  hasEndedStep = false;
  /** True if a task was interrupted, also one of a graph inside it. */
  isInterrupted = false;

  /** True if a task has begun, so there is a state. */
  get hasBegun(): boolean {
    return this.#first !== undefined;
  }

  notice(task: RunnableConfig): void {
    const step: unknown = task.metadata?.[STEP_KEY];
    this.#first ??= { task, step };
    this.hasEndedStep ||= step !== this.#first.step;
  }

  /** The state now; empty before the first task. */
  state(channels: string[]): Partial<AgentState> {
    return this.#first ? readState(this.#first.task, channels) : {};
  }
}

/** Runs a graph without a stream of states. Reports the state at its end, or when it fails after a step. */
export async function runWithoutStream(
  start: (options: RunnableConfig & { streamMode: []; outputKeys: [] }) => AsyncIterable<unknown>,
  options: RunnableConfig,
  channels: string[],
  reached: (state: unknown) => void,
): Promise<void> {
  const progress = new Progress();
  const configurable = withContext(options.configurable, { progress });
  try {
    for await (const _ of start({ ...options, configurable, streamMode: [], outputKeys: [] }));
    reached(progress.state(channels));
  } catch (error) {
    if (progress.hasEndedStep) reached(progress.state(channels));
    throw error;
  }
}

/** True if the states of a graph are needed: it is streamed, observed, or resumes and only they show its progress. */
export const isWatched = (config: RunnableConfig): boolean =>
  config.configurable?.[STREAM_KEY] !== undefined || isResuming(config) || isObserved(config);

/**
 * True if a task has observers: callbacks, or tracers that LangChain adds by environment and context. LangChain also
 * looks for those when a graph begins. If it finds none, the tasks of that graph get no callbacks.
 */
function isObserved({ callbacks }: RunnableConfig): boolean {
  if (callbacks === undefined) return false;
  const manager = CallbackManager.configure(callbacks);
  return manager !== undefined && manager.handlers.length > 0;
}

/** Reports a call to observers (tracers, `streamEvents`, stream mode `tools`), as LangChain's own tools do. */
export async function withToolCallbacks(
  call: ToolCall,
  offered: DynamicStructuredTool,
  config: RunnableConfig,
  work: () => Promise<CallResult>,
): Promise<CallResult> {
  if (!isObserved(config)) return work();
  const { name, args, id } = call;
  const { callbacks, tags, metadata } = config;
  const manager = CallbackManager.configure(callbacks, undefined, tags, undefined, metadata);
  if (!manager) return work();
  const tool = offered.toJSON();
  // Tracers take arguments as they are, though LangChain's type is text: its own tools pass them so.
  const input = args as unknown as string;
  const unused = [undefined, undefined, undefined, undefined] as const;
  const told = await manager.handleToolStart(tool, input, ...unused, name, id);
  try {
    const result = await work();
    await told.handleToolEnd(toOutcome(call, result));
    return result;
  } catch (error) {
    await told.handleToolError(error);
    throw error;
  }
}
