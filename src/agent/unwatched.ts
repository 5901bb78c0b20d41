import type { RunnableConfig } from "@langchain/core/runnables";
import { isObserved } from "./direct-tasks.ts";
import { STEP_KEY } from "./langgraph-keys.ts";
import type { AgentState } from "./state.ts";
import { isResuming, isStreamed, readState } from "./step.ts";

/** Our key in `configurable`; two underscores keep it out of checkpoint metadata. */
const PROGRESS_KEY = "__deepagent_progress";

/** How far a graph has come, asked of LangGraph when somebody wants to know instead of told at every step. */
class Progress {
  #first: { task: RunnableConfig; step: unknown } | undefined;
  #hasEndedStep = false;

  /** Whether its first step, and so anything at all, was done. */
  get hasEndedStep(): boolean {
    return this.#hasEndedStep;
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

/** How LangGraph is told to stream nothing. */
type Unwatched = RunnableConfig & { streamMode: []; outputKeys: [] };

/**
 * Lets a graph work that nobody watches, so that no states are made for a stream at every step. Tells the state
 * of `channels` when it ends, and when it fails after a step.
 */
export async function workUnwatched(
  start: (options: Unwatched) => AsyncIterable<unknown>,
  options: RunnableConfig,
  channels: string[],
  reached: (state: unknown) => void,
): Promise<void> {
  const progress = new Progress();
  const configurable = { ...options.configurable, [PROGRESS_KEY]: progress };
  try {
    for await (const _ of start({ ...options, configurable, streamMode: [], outputKeys: [] }));
    reached(progress.state(channels));
  } catch (error) {
    if (progress.hasEndedStep) reached(progress.state(channels));
    throw error;
  }
}

/** To be called by each task of a graph of ours when it begins. */
export function noticeTask(config: RunnableConfig): void {
  (config.configurable?.[PROGRESS_KEY] as Progress | undefined)?.notice(config); // set by `workUnwatched` only
}

/** Whether others see the states of a graph; where it goes on, what it had reached is known from them only. */
export const isWatched = (config: RunnableConfig): boolean =>
  isStreamed(config) || isResuming(config) || isObserved(config);
