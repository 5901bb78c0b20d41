/** Runs nodes and nested graphs without the machinery for observers while nobody observes them. */
import { isObserved } from "./callbacks.ts";
import { Runnable, type RunnableConfig } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { Command, END, Send, isCommand, isGraphInterrupt } from "@langchain/langgraph";
import type { AgentState } from "../contracts/state.ts";
import { CONFIG_KEY, SEND_KEY, STEP_KEY, TASKS_CHANNEL, VARIABLES_KEY, branchTo } from "./internals.ts";
import { contextOf, expectFanOut, isResuming, isStreamed, readState, withContext } from "./step-of-task.ts";

/** The function of a node of our graphs. It returns a command that changes the state and routes. */
export type NodeFunction = (input: never, config: RunnableConfig) => unknown;

/** The part of LangGraph's node that is used here. */
export interface GraphNode {
  triggers: string[];
  getNode(): Runnable | undefined;
  getWriters(): Runnable[];
}

type Write = [channel: string, value: unknown];

/**
 * Lets tasks of `node` run without LangChain's machinery for observers (a sequence of runnables, each with
 * a run of its own for tracing) while nobody observes: it took a third of the time of a step. With a
 * callback, a tracer, or a stream mode that works through callbacks, tasks run as LangGraph runs them.
 */
export function runUntraced(node: GraphNode, work: NodeFunction, routes: Routes): void {
  const observed = node.getNode();
  if (!observed) throw new Error(`the node ${routes.name} does nothing`);
  const task = new UntracedNode(work, observed, node.getWriters(), routes);
  node.getNode = () => task;
}

/** LangGraph's routes for the answers of a node. */
interface Routes {
  name: string;
  /** The node that follows every answer, if one does. */
  edge?: string;
  /** Channels that answers can change. */
  channels: ReadonlySet<string>;
}

class UntracedNode extends Runnable {
  override lc_namespace: string[] = ["deepagent"];
  readonly #work: NodeFunction;
  readonly #observed: Runnable;
  readonly #writers: readonly Runnable[];
  readonly #routes: Routes;

  constructor(work: NodeFunction, observed: Runnable, writers: readonly Runnable[], routes: Routes) {
    super();
    this.#work = work;
    this.#observed = observed;
    this.#writers = writers;
    this.#routes = routes;
  }

  override async invoke(input: unknown, config: RunnableConfig = {}): Promise<unknown> {
    try {
      return await this.#invoke(input, config);
    } catch (error) {
      if (isGraphInterrupt(error)) contextOf(config).progress?.noticeInterrupt();
      throw error;
    }
  }

  async #invoke(input: unknown, config: RunnableConfig): Promise<unknown> {
    if (config.signal) expectFanOut(config.signal);
    if (isObserved(config)) return this.#observed.invoke(input, config);
    // LangGraph gives a node the input of its declared type.
    const working = inContextOf(config, async () => this.#work(input as never, config));
    const answer = await untilAborted(working, config.signal);
    if (!isCommand(answer) || answer.graph !== undefined) return this.#writeAsLangGraph(answer, config);
    const send = config.configurable?.[SEND_KEY] as (writes: Write[]) => void; // set by LangGraph for every task
    send(writesOf(answer, this.#routes));
    return answer;
  }

  /** Writes answers that leave the graph, such as commands of LangChain's tools for the graph above. */
  async #writeAsLangGraph(answer: unknown, config: RunnableConfig): Promise<unknown> {
    let written = answer;
    for (const writer of this.#writers) written = await writer.invoke(written, config);
    return written;
  }
}

/** Sets the configuration that LangChain's `getConfig` finds inside the task. */
const inContextOf = <T>(config: RunnableConfig, work: () => T): T =>
  inContext({ extra: { [CONFIG_KEY]: config } }, work);

/** Does `work` for a graph inside the running task: the task's configuration is not that of its tasks. */
export const outsideOfTask = <T>(work: () => T): T => inContext({}, work);

function inContext<T>(own: object, work: () => T): T {
  const storage = AsyncLocalStorageProviderSingleton.getInstance();
  const outer = storage.getStore() as Record<symbol, unknown> | undefined; // a run of a tracer, or like ours
  return storage.run({ ...own, [VARIABLES_KEY]: outer?.[VARIABLES_KEY] }, work);
}

/** A task that does not listen to the signal is left behind. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error); // LangGraph aborts with errors
    signal.addEventListener("abort", stop, { once: true });
    const settled =
      <Given>(settle: (given: Given) => void) =>
      (given: Given): void => {
        signal.removeEventListener("abort", stop);
        settle(given);
      };
    work.then(settled(resolve), settled(reject));
  });
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
  #hasEndedStep = false;
  #isInterrupted = false;

  /** True if a task has begun, so there is a state. */
  get hasBegun(): boolean {
    return this.#first !== undefined;
  }

  /** True if the first step has finished, so there is any result. */
  get hasEndedStep(): boolean {
    return this.#hasEndedStep;
  }

  /** True if a task was interrupted, also one of a graph inside it. */
  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  noticeInterrupt(): void {
    this.#isInterrupted = true;
  }

  /** Takes notice of a task of the graph that begins. */
  notice(task: RunnableConfig): void {
    const step: unknown = task.metadata?.[STEP_KEY];
    this.#first ??= { task, step };
    this.#hasEndedStep ||= step !== this.#first.step;
  }

  /** The state now; empty before the first task. */
  state(channels: string[]): Partial<AgentState> {
    return this.#first ? readState(this.#first.task, channels) : {};
  }
}

/** Options that make LangGraph stream nothing. */
type Unwatched = RunnableConfig & { streamMode: []; outputKeys: [] };

/**
 * Lets a graph work that nobody watches, so that no states are made for a stream at every step. Tells the state
 * of `channels` when it ends, and when it fails after a step.
 */
export async function runWithoutStream(
  start: (options: Unwatched) => AsyncIterable<unknown>,
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

/** To be called by each task of a graph of ours when it begins. */
export const noticeTask = (config: RunnableConfig): void => contextOf(config).progress?.notice(config);

/**
 * True if the states of a graph are needed: it is streamed or observed, or it resumes and only they show its progress.
 */
export const isWatched = (config: RunnableConfig): boolean =>
  isStreamed(config) || isResuming(config) || isObserved(config);
