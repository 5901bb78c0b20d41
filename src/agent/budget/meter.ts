/** Counts the usage of a run, and ends its work when its time is used up. */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { type Clock, LONGEST_TIMER_MS, monotonicClock } from "../../core/clock.ts";
import type { AgentState, LimitReason } from "../contracts/state.ts";
import { isReply } from "../messages/messages.ts";
import { repeatedTurns } from "../messages/repeated-calls.ts";
import { type Reached, currentRun, describeLimit, spentBy } from "./limits.ts";
import { type Used, passedMark, toldMark, withMark } from "./told-marks.ts";
import type { AgentLimits, Spent } from "../contracts/limits.ts";

/** The use of earlier parts of a run, besides its own replies, as the state has it. */
export interface Carried extends Spent {
  /** Message that began the run. */
  run: string;
  /** Time at work until now. */
  workedMs: number;
  /** The same for the agents above this one, the nearest first. */
  aboveMs: readonly number[];
}

/** Key in `response_metadata`: the number of model calls behind a reply, if more than one. */
const MODEL_CALLS = "model_calls";

/** Says of a reply that it took this many calls. */
export function countCalls(reply: AIMessage, calls: number): void {
  reply.response_metadata[MODEL_CALLS] = calls;
}

/** The model is not told how much of a smaller limit of calls is used: it would be told after each call. */
const FEW_CALLS = 10;

/** Calls of the model in a part of a thread. */
function modelCalls(messages: readonly BaseMessage[]): number {
  const replies = messages.filter(isReply);
  return replies.reduce((sum, { response_metadata: { [MODEL_CALLS]: calls = 1 } }) => {
    return sum + (typeof calls === "number" ? calls : 1);
  }, 0);
}

/** Graph steps of one turn, and of the end of a run. */
export interface TurnSteps {
  turn: number;
  end: number;
}

/** Channel with what subagents used, and the time at work. */
export const SPENT = "_spent";

/** Adds later values, or starts again for another run. The working time is the longest of them. */
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
      aboveMs: write.aboveMs ?? known.aboveMs ?? [],
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
  readonly #clock: Clock;
  #spent: Spent = { tokens: 0, costUsd: 0 };
  /** Use of other runs that count against the limits of this one. */
  #elsewhere: Spent = { tokens: 0, costUsd: 0 };
  #workedBefore = 0;
  #isLoaded = false;
  #firstStep: number | undefined;
  /** Estimated tokens of each model call at work, of this agent and those below it. */
  readonly #atWork: number[] = [];
  /** Wakes the model calls that wait for room. */
  readonly #waiting: Array<() => void> = [];
  #stop: Reached | undefined;
  /** Percent of a limit that the model was last told of. */
  #toldMark = 0;

  constructor(limits: AgentLimits, parent?: Meter, clock: Clock = monotonicClock) {
    this.limits = limits;
    this.#parent = parent;
    this.#clock = clock;
    this.#startedAt = clock();
  }

  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /**
   * Takes over what `state` knows of the current run, and what finished calls of its last step wrote that the
   * state does not have yet; only the first call does.
   */
  load(
    state: Pick<AgentState, "messages"> & { readonly [SPENT]?: unknown },
    unsaved: ReadonlyArray<Partial<Carried>> = [],
  ): void {
    if (this.#isLoaded) return;
    this.#isLoaded = true;
    const run = currentRun(state.messages);
    const carried = addSpent((state[SPENT] as Partial<Carried> | undefined) ?? {}, unsaved); // our channel
    if (carried.run === run.id) {
      this.add({ tokens: carried.tokens ?? 0, costUsd: carried.costUsd ?? 0 });
      this.#hasWorked(carried.workedMs ?? 0);
      this.#above.forEach((meter, index) => meter.#hasWorked(carried.aboveMs?.[index] ?? 0));
    }
    for (const message of run.messages) this.count(message);
    this.#toldMark = toldMark(run.messages);
  }

  /**
   * The newest result of a tool with the note that the model is near a limit, if it has passed a mark since it was last
   * told.
   */
  nearLimit(messages: readonly BaseMessage[]): BaseMessage | undefined {
    const [most] = this.#used(messages).toSorted((one, other) => other.share - one.share);
    const mark = most ? passedMark(most) : 0;
    if (!most || mark <= this.#toldMark) return undefined;
    const told = withMark(messages, most, mark);
    if (told) this.#toldMark = mark;
    return told;
  }

  /** The use of each limit of this agent, and of those above that include it. */
  #used(messages: readonly BaseMessage[]): Used[] {
    const { maxIterations = 0, toolCalls = 0 } = this.limits;
    const ofCalls: Array<[LimitReason, number]> = [
      ["max_iterations", maxIterations < FEW_CALLS ? 0 : 1 - this.callsLeft(messages) / maxIterations],
      ["max_tool_calls", toolCalls < FEW_CALLS ? 0 : toolCallsOf(messages) / toolCalls],
    ];
    const own = ofCalls.map(([reason, share]) => ({ limit: this.#reached(reason), share }));
    const totals = [this, ...this.#above].flatMap((meter) => meter.#usedTotals());
    return [...own, ...totals].filter(({ share }) => share > 0 && share <= 1);
  }

  #usedTotals(): Used[] {
    const { tokens = Infinity, costUsd = Infinity, wallTimeMs = Infinity } = this.limits;
    const total = this.#total;
    const totals: Array<[LimitReason, number]> = [
      ["max_tokens", total.tokens / tokens],
      ["max_cost", total.costUsd / costUsd],
      ["max_wall_time", this.workedMs / wallTimeMs],
    ];
    return totals.map(([reason, share]) => ({ limit: this.#reached(reason), share }));
  }

  /** The meters of the agents that delegated, the nearest first. */
  get #above(): Meter[] {
    return this.#parent ? [this.#parent, ...this.#parent.#above] : [];
  }

  /** Raises the time at work to `ms`, if it is less. */
  #hasWorked(ms: number): void {
    this.#workedBefore += Math.max(0, ms - this.workedMs);
  }

  /** Counts a reply, here and for the agents that delegated. */
  count(reply: BaseMessage): void {
    if (AIMessage.isInstance(reply)) this.add(spentBy(reply, this.limits));
  }

  /** Counts use, here and for the agents that delegated. */
  add(spent: Spent): void {
    this.#spent = {
      tokens: this.#spent.tokens + spent.tokens,
      costUsd: this.#spent.costUsd + spent.costUsd,
    };
    this.#parent?.add(spent);
  }

  /** Learns what other runs have used that count against the same limits. */
  async lookElsewhere(spentElsewhere: (() => Promise<Spent>) | undefined): Promise<void> {
    const top = this.#above.at(-1) ?? this;
    if (spentElsewhere && top.countsSubagents) top.#elsewhere = await spentElsewhere();
  }

  /** Everything that counts against the limits. */
  get #total(): Spent {
    const { tokens, costUsd } = this.#elsewhere;
    return { tokens: this.#spent.tokens + tokens, costUsd: this.#spent.costUsd + costUsd };
  }

  /**
   * Reserves the estimated tokens of a model call, here and for the agents that delegated. Waits while calls at work
   * may use up the rest of a limit. Returns a function that ends the reservation, once the reply is counted.
   *
   * @throws the reason of `signal`, when it aborts first.
   */
  async reserve(estimate: () => number, signal: AbortSignal | undefined): Promise<() => void> {
    const limited = [this, ...this.#above].filter((meter) => meter.countsSubagents);
    const top = limited.at(-1);
    if (!top) return () => undefined;
    const tokens = estimate();
    const waiting = top.#waiting;
    while (limited.some((meter) => !meter.#hasRoom(tokens))) await nextRelease(waiting, signal);
    for (const meter of limited) meter.#atWork.push(tokens);
    return () => {
      for (const meter of limited) meter.#atWork.splice(meter.#atWork.indexOf(tokens), 1);
      for (const wake of waiting.splice(0)) wake();
    };
  }

  /** True if one more call of about `tokens` stays within the limits, or no other call is at work. */
  #hasRoom(tokens: number): boolean {
    if (this.#atWork.length === 0 || this.#reachedTotals()) return true;
    const { tokens: used, costUsd } = this.#total;
    const more = this.#atWork.reduce((sum, reserved) => sum + reserved, tokens);
    const { tokens: most = Infinity, costUsd: mostUsd = Infinity } = this.limits;
    return used + more <= most && costUsd + (more * costUsd) / Math.max(used, 1) <= mostUsd;
  }

  /** Counts one subagent, here too. */
  account(): Meter {
    return new Meter(this.limits.prices ? { prices: this.limits.prices } : {}, this, this.#clock);
  }

  /** True if a limit includes the usage of subagents. */
  get countsSubagents(): boolean {
    const { tokens, costUsd } = this.limits;
    return tokens !== undefined || costUsd !== undefined;
  }

  /** True if a limit includes subagents, so it may be reached while calls wait for a person. */
  get hasTotals(): boolean {
    return this.countsSubagents || this.limits.wallTimeMs !== undefined;
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

  /** True if the first graph step of the run is known. */
  get hasBegun(): boolean {
    return this.#firstStep !== undefined;
  }

  begin(firstStep: number): void {
    this.#firstStep ??= firstStep;
  }

  /** Graph steps of the run before this one. */
  stepsBefore(step: number): number {
    return step - (this.#firstStep ?? step);
  }

  /** The first limit reached, of this agent or of those that delegated to it. This agent must stop then. */
  reached(messages: readonly BaseMessage[]): Reached | undefined {
    const { toolCalls } = this.limits;
    if (this.callsLeft(messages) <= 0) return this.#reached("max_iterations");
    if (toolCalls !== undefined && toolCallsOf(messages) > toolCalls) return this.#reached("max_tool_calls");
    const { repeatedTurns: most = 0 } = this.limits;
    if (most > 0 && repeatedTurns(messages, most) >= most) return this.#reached("repeated_calls");
    return this.#reachedTotals();
  }

  /** True if no tokens, money or time are left for another model call. */
  get isUsedUp(): boolean {
    return this.#reachedTotals() !== undefined;
  }

  /** The first limit that is reached of those that include subagents, the run's before all others. */
  #reachedTotals(): Reached | undefined {
    const { tokens = Infinity, costUsd = Infinity } = this.limits;
    const above = this.#parent && this.#parent.#reachedTotals();
    if (above) return above;
    const total = this.#total;
    if (total.tokens >= tokens) return (this.#stop = this.#reached("max_tokens"));
    if (total.costUsd >= costUsd) return (this.#stop = this.#reached("max_cost"));
    return this.#ownMs <= 0 ? this.#timeOver() : undefined;
  }

  /** True if a limit is reached with a reply that is not counted yet and took this many model calls. */
  wouldReach(messages: readonly BaseMessage[], reply: BaseMessage, calls: number): boolean {
    return this.callsLeft(messages) <= calls || this.#wouldReach(spentBy(reply, this.limits));
  }

  #wouldReach(more: Spent): boolean {
    const { tokens = Infinity, costUsd = Infinity } = this.limits;
    const total = this.#total;
    if (total.tokens + more.tokens >= tokens || total.costUsd + more.costUsd >= costUsd) return true;
    return this.#ownMs <= 0 || (this.#parent ? this.#parent.#wouldReach(more) : false);
  }

  /** The time limit of this agent or of one that delegated, whichever has the least time left, as reached. */
  timeOver(): Reached {
    const least = this.#above.reduce<Meter>(
      (found, meter) => (meter.#ownMs <= found.#ownMs ? meter : found),
      this,
    );
    return least.#timeOver();
  }

  /**
   * The limit of graph steps, if LangGraph would allow no whole turn any more with an end in order. It throws at its
   * limit, and what the run has would be lost. The first turn is always tried.
   */
  outOfSteps(step: number, { turn, end }: TurnSteps, recursionLimit: number): Reached | undefined {
    const made = this.stepsBefore(step);
    // LangGraph counts its own first step too, and asks for one more after the last.
    const isOut = made >= turn && made + turn + end + 2 > recursionLimit;
    return isOut ? this.#reached("max_steps") : undefined;
  }

  #timeOver(): Reached {
    return (this.#stop = this.#reached("max_wall_time"));
  }

  #reached(reason: LimitReason): Reached {
    return { reason, limits: this.limits, whose: this.#parent ? "subagent" : "run" };
  }

  /** The limit of this agent that stopped it or an agent below it; not a limit of an agent above. */
  get stop(): Reached | undefined {
    return this.#stop ?? (this.#ownMs <= 0 ? this.#timeOver() : undefined);
  }

  /** Time left by its own limit. */
  get #ownMs(): number {
    const { wallTimeMs } = this.limits;
    return wallTimeMs === undefined ? Infinity : wallTimeMs - this.workedMs;
  }

  /** Time left for this agent and those who delegated to it; none when nothing limits it. */
  get remainingMs(): number | undefined {
    const least = Math.min(...[this, ...this.#above].map((meter) => meter.#ownMs));
    return least === Infinity ? undefined : Math.max(0, least);
  }

  /** The values that the state keeps after a reply, if a limit needs them. */
  carried(messages: readonly BaseMessage[]): Partial<Carried> | undefined {
    if (this.remainingMs === undefined) return undefined;
    const aboveMs = this.#above.map(({ workedMs }) => workedMs);
    return {
      run: currentRun(messages).id,
      workedMs: this.workedMs,
      ...(aboveMs.length > 0 ? { aboveMs } : {}),
    };
  }
}

function toolCallsOf(messages: readonly BaseMessage[]): number {
  const replies = currentRun(messages).messages.filter(isReply);
  return replies.reduce((sum, reply) => sum + (reply.tool_calls ?? []).length, 0);
}

/** Waits for the end of a model call; rejects when `signal` aborts. */
function nextRelease(waiting: Array<() => void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal?.reason as Error); // an abort error, or the caller's own
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop, { once: true });
    waiting.push(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
  });
}

/** A signal that also ends with the time. */
export interface Deadline {
  readonly signal: AbortSignal | undefined;
  isOver(): boolean;
  /** Waits for work that may not listen to the signal, and not longer than the time. */
  race<T>(work: Promise<T>): Promise<T>;
}

/**
 * `signal`, aborted when the remaining time is used up; `isOver` distinguishes this from other aborts. Timers do not
 * span weeks: longer times set no deadline.
 */
export function withDeadline(signal: AbortSignal | undefined, ms: number | undefined): Deadline {
  if (ms === undefined || ms > LONGEST_TIMER_MS) return { signal, isOver: () => false, race: (work) => work };
  const deadline = AbortSignal.timeout(Math.max(1, Math.ceil(ms)));
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

/** The time of one call, with what to say of a call that was not done by its end. */
export interface CallTime extends Deadline {
  why(): string;
}

/** `meter`: what the run's time is kept by; none for a call that watches it itself. */
export function callTime(
  signal: AbortSignal | undefined,
  meter: Meter | undefined,
  { toolTimeoutMs = Infinity }: AgentLimits,
): CallTime {
  if (!meter) return { ...withDeadline(signal, undefined), why: () => "" };
  const { remainingMs = Infinity } = meter;
  const least = Math.min(toolTimeoutMs, remainingMs);
  const why = (): string =>
    toolTimeoutMs <= remainingMs
      ? "did not finish in the time for one call and was stopped"
      : `was stopped: ${describeLimit(meter.timeOver())} is reached`;
  return { ...withDeadline(signal, least === Infinity ? undefined : least), why };
}
