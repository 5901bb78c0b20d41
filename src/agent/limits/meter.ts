import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { isReply } from "../message-kind.ts";
import type { AgentState } from "../state.ts";
import { type AgentLimits, currentRun, type Spent, spentBy, type StopReason } from "./limits.ts";

/** What earlier parts of a run used besides its own replies, as the state keeps it. */
export interface Carried extends Spent {
  /** Message that began the run. */
  run: string;
  /** Time at work until now. */
  workedMs: number;
}

/** How many calls of the model a reply took, where it was more than one: a number in `response_metadata`. */
const MODEL_CALLS = "model_calls";

/** Says of a reply that it took this many calls. */
export function countCalls(reply: AIMessage, calls: number): void {
  reply.response_metadata[MODEL_CALLS] = calls;
}

/** Calls of the model in a part of a thread. */
function modelCalls(messages: readonly BaseMessage[]): number {
  const replies = messages.filter(isReply);
  return replies.reduce((sum, { response_metadata: { [MODEL_CALLS]: calls = 1 } }) => {
    return sum + (typeof calls === "number" ? calls : 1);
  }, 0);
}

/** Channel with what subagents used, and the time at work. */
export const SPENT = "_spent";

/** Adds what came later, or begins anew with another run. The time at work is the longest known. */
export function addSpent(
  before: Partial<Carried>,
  writes: ReadonlyArray<Partial<Carried>>,
): Partial<Carried> {
  let sum = before;
  for (const write of writes) {
    const known = sum.run === write.run ? sum : {};
    sum = {
      run: write.run ?? "",
      tokens: (known.tokens ?? 0) + (write.tokens ?? 0),
      costUsd: (known.costUsd ?? 0) + (write.costUsd ?? 0),
      workedMs: Math.max(known.workedMs ?? 0, write.workedMs ?? 0),
    };
  }
  return sum;
}

/**
 * Counts what one agent and its subagents use while a process works on them. What ended with an earlier
 * process is taken from the state, once.
 */
export class Meter {
  readonly limits: AgentLimits;
  readonly #parent: Meter | undefined;
  readonly #startedAt: number;
  readonly #clock: () => number;
  #spent: Spent = { tokens: 0, costUsd: 0 };
  #workedBefore = 0;
  #isLoaded = false;
  #firstStep: number | undefined;

  constructor(limits: AgentLimits, parent?: Meter, clock: () => number = Date.now) {
    this.limits = limits;
    this.#parent = parent;
    this.#clock = clock;
    this.#startedAt = clock();
  }

  /** Takes over what `state` knows of the current run; only the first call does. */
  load(state: Pick<AgentState, "messages"> & { readonly [SPENT]?: unknown }): void {
    if (this.#isLoaded) return;
    this.#isLoaded = true;
    const run = currentRun(state.messages);
    const carried = (state[SPENT] as Partial<Carried> | undefined) ?? {}; // our channel
    if (carried.run === run.id) {
      this.add({ tokens: carried.tokens ?? 0, costUsd: carried.costUsd ?? 0 });
      this.#workedBefore = carried.workedMs ?? 0;
    }
    for (const message of run.messages) this.count(message);
  }

  /** Counts a reply, here and for those who delegated. */
  count(reply: BaseMessage): void {
    if (AIMessage.isInstance(reply)) this.add(spentBy(reply, this.limits));
  }

  /** Counts what was used, here and for those who delegated. */
  add(spent: Spent): void {
    this.#spent = {
      tokens: this.#spent.tokens + spent.tokens,
      costUsd: this.#spent.costUsd + spent.costUsd,
    };
    this.#parent?.add(spent);
  }

  /** Counts one subagent, here too. */
  account(): Meter {
    return new Meter(this.limits.prices ? { prices: this.limits.prices } : {}, this, this.#clock);
  }

  /** Whether a limit asks what subagents use. */
  get countsSubagents(): boolean {
    const { tokens, costUsd } = this.limits;
    return tokens !== undefined || costUsd !== undefined;
  }

  get spent(): Spent {
    return this.#spent;
  }

  get workedMs(): number {
    return this.#workedBefore + this.#clock() - this.#startedAt;
  }

  /** Calls of the model that this agent may make yet. */
  callsLeft(messages: readonly BaseMessage[]): number {
    const { maxIterations } = this.limits;
    return maxIterations === undefined ? Infinity : maxIterations - modelCalls(currentRun(messages).messages);
  }

  /** Takes notice of a graph step; how many were made since the first one. */
  stepsBefore(step: number): number {
    this.#firstStep ??= step;
    return step - this.#firstStep;
  }

  /** The first limit that is reached, of this agent or of those who delegated to it. */
  reached(messages: readonly BaseMessage[]): StopReason | undefined {
    const { toolCalls } = this.limits;
    if (this.callsLeft(messages) <= 0) return "max_iterations";
    if (toolCalls !== undefined && toolCallsOf(messages) > toolCalls) return "max_tool_calls";
    return this.reachedTotals();
  }

  /** The first limit that is reached of those that include subagents. */
  reachedTotals(): StopReason | undefined {
    const { tokens = Infinity, costUsd = Infinity, wallTimeMs = Infinity } = this.limits;
    if (this.#spent.tokens >= tokens) return "max_tokens";
    if (this.#spent.costUsd >= costUsd) return "max_cost";
    if (this.workedMs >= wallTimeMs) return "max_wall_time";
    return this.#parent?.reachedTotals();
  }

  /** Time left for this agent and those who delegated to it; none when nothing limits it. */
  get remainingMs(): number | undefined {
    const { wallTimeMs } = this.limits;
    const own = wallTimeMs === undefined ? Infinity : Math.max(1, wallTimeMs - this.workedMs);
    const least = Math.min(own, this.#parent?.remainingMs ?? Infinity);
    return least === Infinity ? undefined : least;
  }

  /** What the state is to keep after a reply, where a limit needs it. */
  carried(messages: readonly BaseMessage[]): Partial<Carried> | undefined {
    if (this.limits.wallTimeMs === undefined) return undefined;
    return { run: currentRun(messages).id, workedMs: this.workedMs };
  }
}

/** A signal that also ends with the time. */
export interface Deadline {
  readonly signal: AbortSignal | undefined;
  isOver(): boolean;
  /** Waits for work that may not listen to the signal, and not longer than the time. */
  race<T>(work: Promise<T>): Promise<T>;
}

/** `signal`, ended by the time that is left; `isOver` tells the end of the time from other aborts. */
export function withDeadline(signal: AbortSignal | undefined, ms: number | undefined): Deadline {
  if (ms === undefined) return { signal, isOver: () => false, race: (work) => work };
  const deadline = AbortSignal.timeout(Math.ceil(ms));
  const over = new Promise<never>((_resolve, reject) => {
    deadline.addEventListener("abort", () => reject(deadline.reason as Error), { once: true }); // a DOMException
  });
  over.catch(() => undefined); // nobody waits any more when the work was faster
  return {
    signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    isOver: () => deadline.aborted && signal?.aborted !== true,
    race: (work) => Promise.race([work, over]),
  };
}

function toolCallsOf(messages: readonly BaseMessage[]): number {
  const replies = currentRun(messages).messages.filter(isReply);
  return replies.reduce((sum, reply) => sum + (reply.tool_calls ?? []).length, 0);
}
