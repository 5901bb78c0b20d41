/** Counts the usage of a run, reports to the model how much of a limit is used, and ends work when its time is used up. */
import { type AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, LONGEST_TIMER_MS, monotonicClock } from "../../core/clock.ts";
import { untilAborted } from "../../core/concurrency.ts";
import type { AgentState, LimitReason, StateUpdate } from "../contracts/state.ts";
import { callsOf, copyMessage, isReply, textOf, withEnd } from "../messages/messages.ts";
import { repeatedTurns } from "../messages/repeated-calls.ts";
import { type Reached, currentRun, describeLimit, spentBy } from "./limits.ts";
import type { AgentLimits, SharedBudget, Spent } from "../contracts/limits.ts";

/** The use of earlier parts of a run, besides its own replies, as the state has it. */
export interface Carried extends Spent {
  /** Message that began the run. */
  run: string;
  /** Time at work until now. */
  workedMs: number;
  /** Time at work of the agents above this one, the nearest first. */
  aboveMs: readonly number[];
}

/** Key in `response_metadata`: the number of model calls behind a reply, if more than one. */
const MODEL_CALLS = "model_calls";

/** Records how many model calls a reply took. */
export function countCalls(reply: AIMessage, calls: number): void {
  reply.response_metadata[MODEL_CALLS] = calls;
}

/** Smaller call limits are not reported to the model: it would get a note after each call. */
const FEW_CALLS = 10;

/** Percentages of a limit that are reported to the model, with the advice at each. */
const USE_MARKS: ReadonlyArray<readonly [percent: number, advice: string]> = [
  [50, ""],
  [80, " Do what matters most first."],
  [95, " Finish now, and say what is done, what is not done, and what is not verified."],
];

const NO_USE: Spent = { tokens: 0, costUsd: 0 };

const addUse = (one: Spent, other: Spent): Spent => ({
  tokens: one.tokens + other.tokens,
  costUsd: one.costUsd + other.costUsd,
});

/** Graph steps of one turn and of a run's end. */
export interface TurnSteps {
  turn: number;
  end: number;
}

/** Channel with the use of subagents, and the time at work. */
export const SPENT = "_spent";

/** Adds later values, or starts again for another run. The working time is the longest of them. */
export function addSpent(before: Partial<Carried>, writes: ReadonlyArray<Partial<Carried>>) {
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

/** Several updates as one: messages in order, files by path, use added up, else the last one counts. */
export function mergeUpdates(updates: readonly StateUpdate[]): StateUpdate {
  const messages = updates.flatMap((update) => update.messages ?? []);
  const files: StateUpdate["files"] = Object.assign({}, ...updates.map((update) => update.files ?? {}));
  const merged: StateUpdate = Object.assign({}, ...updates);
  const spent = updates.flatMap((update) => (update[SPENT] ? [update[SPENT] as Partial<Carried>] : [])); // our channel
  return {
    ...merged,
    ...(spent.length > 1 ? { [SPENT]: addSpent({}, spent) } : {}),
    ...(messages.length > 0 ? { messages } : {}),
    ...(Object.keys(files ?? {}).length > 0 ? { files } : {}),
  };
}

/** Counts the use of an agent and its subagents in this process. Earlier use is taken from the state, once. */
export class Meter {
  readonly limits: AgentLimits;
  readonly #parent: Meter | undefined;
  readonly #startedAt: number;
  readonly #clock: Clock;
  spent: Spent = NO_USE;
  /** Use of other runs that count against the limits of this one. */
  #elsewhere: Spent = NO_USE;
  #workedBefore = 0;
  isLoaded = false;
  #firstStep: number | undefined;
  /** Estimated tokens of each model call at work, of this agent and those below it. */
  readonly #atWork: number[] = [];
  /** Wakes the model calls that wait for room. */
  readonly #waiting: Array<() => void> = [];
  #stop: Reached | undefined;
  /** Percentage of a limit that was last reported to the model. */
  #toldMark = 0;

  constructor(limits: AgentLimits, parent?: Meter, clock: Clock = monotonicClock) {
    this.limits = limits;
    this.#parent = parent;
    this.#clock = clock;
    this.#startedAt = clock();
  }

  /** Takes over the use recorded in `state` and by finished calls of its last step (`unsaved`), once. */
  load(
    state: Pick<AgentState, "messages"> & { readonly [SPENT]?: unknown },
    unsaved: ReadonlyArray<Partial<Carried>> = [],
  ): void {
    if (this.isLoaded) return;
    this.isLoaded = true;
    const run = currentRun(state.messages);
    const carried = addSpent((state[SPENT] as Partial<Carried> | undefined) ?? {}, unsaved); // our channel
    if (carried.run === run.id) {
      this.add({ tokens: carried.tokens ?? 0, costUsd: carried.costUsd ?? 0 });
      this.#hasWorked(carried.workedMs ?? 0);
      this.#above.forEach((meter, index) => meter.#hasWorked(carried.aboveMs?.[index] ?? 0));
    }
    for (const message of run.messages) this.count(message);
    const marks = run.messages
      .filter((message) => ToolMessage.isInstance(message))
      .flatMap((message) => [...textOf(message).matchAll(/\n\n\[(\d+) % of the limit of [^\]\n]* used\./g)]);
    this.#toldMark = Math.max(0, ...marks.map(([, percent]) => Number(percent)));
  }

  /** The newest result, with a note that a limit is near if the run has passed another mark. */
  nearLimit(messages: readonly BaseMessage[]): BaseMessage | undefined {
    const [most] = this.#used(messages).toSorted((one, other) => other.share - one.share);
    const [mark, advice] = USE_MARKS.findLast(([percent]) => most && most.share * 100 >= percent) ?? [0];
    const newest = messages.at(-1);
    // After other messages, the model has seen the result.
    if (!most || mark <= this.#toldMark || !ToolMessage.isInstance(newest)) return undefined;
    this.#toldMark = mark;
    const note = `[${mark} % of ${describeLimit(most.limit)} is used.${advice}]`;
    return copyMessage(newest, { content: withEnd(newest.content, note) });
  }

  /** The use of each limit of this agent, and of those above that include it, each from 0 to 1. */
  #used(messages: readonly BaseMessage[]): Array<{ limit: Reached; share: number }> {
    const { maxIterations = 0, toolCalls = 0 } = this.limits;
    const ofCalls: Array<[LimitReason, number]> = [
      ["max_iterations", maxIterations < FEW_CALLS ? 0 : 1 - this.callsLeft(messages) / maxIterations],
      ["max_tool_calls", toolCalls < FEW_CALLS ? 0 : countToolCalls(messages) / toolCalls],
    ];
    const own = ofCalls.map(([reason, share]) => ({ limit: this.#reached(reason), share }));
    const totals = [this, ...this.#above].flatMap((meter) =>
      meter.#totals().map(({ reason, used, most }) => ({
        limit: meter.#reached(reason),
        share: used / most,
      })),
    );
    return [...own, ...totals].filter(({ share }) => share > 0 && share <= 1);
  }

  /** The use of the limits that include subagents, and `more`. */
  #totals(more: Spent = NO_USE): Array<{ reason: LimitReason; used: number; most: number }> {
    const { tokens = Infinity, costUsd = Infinity, wallTimeMs = Infinity } = this.limits;
    const total = this.#total;
    return [
      { reason: "max_tokens", used: total.tokens + more.tokens, most: tokens },
      { reason: "max_cost", used: total.costUsd + more.costUsd, most: costUsd },
      { reason: "max_wall_time", used: this.workedMs, most: wallTimeMs },
    ];
  }

  /** The first of these limits that is reached, by itself or with `more`. */
  #firstReached(more?: Spent): LimitReason | undefined {
    return this.#totals(more).find(({ used, most }) => used >= most)?.reason;
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
    this.add(spentBy(reply, this.limits));
  }

  add(spent: Spent): void {
    this.spent = addUse(this.spent, spent);
    this.#parent?.add(spent);
  }

  /** Updates the use of other runs that count against the same limits. */
  async lookElsewhere(shared: SharedBudget | undefined): Promise<void> {
    const top = this.#above.at(-1) ?? this;
    if (shared && top.countsSubagents) top.#elsewhere = await shared.spent();
  }

  /** Everything that counts against the limits. */
  get #total(): Spent {
    return addUse(this.spent, this.#elsewhere);
  }

  /**
   * Reserves the tokens of a model call, here and for the agents that delegated, until the returned function is called.
   * Waits while calls at work, also of other runs, may use up the rest of a limit. @throws the reason of `signal`, when
   * it aborts first.
   */
  async reserve(
    estimate: () => number,
    signal: AbortSignal | undefined,
    shared?: SharedBudget,
  ): Promise<() => void> {
    const limited = [this, ...this.#above].filter((meter) => meter.countsSubagents);
    const top = limited.at(-1);
    if (!top) return () => undefined;
    const tokens = estimate();
    const waiting = top.#waiting;
    while (limited.some((meter) => !meter.#hasRoom(tokens, meter.#tokensAtWork)))
      await untilAborted(new Promise<void>((resolve) => waiting.push(resolve)), signal);
    for (const meter of limited) meter.#atWork.push(tokens);
    const release = (): void => {
      for (const meter of limited) meter.#atWork.splice(meter.#atWork.indexOf(tokens), 1);
      for (const wake of waiting.splice(0)) wake();
      // A failure leaves more reserved than is at work, until the next call or the end of the lease.
      void shared?.reserve(top.#tokensAtWork, () => true).catch(() => undefined);
    };
    const fits = (others: Spent, reserved: number): boolean => {
      top.#elsewhere = others;
      return top.#hasRoom(tokens, top.#tokensAtWork - tokens + reserved);
    };
    const reserved = async () => shared === undefined || shared.reserve(top.#tokensAtWork, fits);
    try {
      // Waits 50 ms between two looks at the reservations of other runs, then twice as long each time, up to a second.
      for (let pause = 50; !(await reserved()); pause *= 2)
        await delay(Math.min(pause, 1000), undefined, { signal });
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  get #tokensAtWork(): number {
    return this.#atWork.reduce((sum, tokens) => sum + tokens, 0);
  }

  /** True if a call of about `tokens` beside `others` at work stays within the limits, or no other is at work. */
  #hasRoom(tokens: number, others: number): boolean {
    if (others === 0 || this.#reachedTotals()) return true;
    const { tokens: used, costUsd } = this.#total;
    const more = others + tokens;
    const { tokens: most = Infinity, costUsd: mostUsd = Infinity } = this.limits;
    return used + more <= most && costUsd + (more * costUsd) / Math.max(used, 1) <= mostUsd;
  }

  /** Counts one subagent, here too. */
  account(): Meter {
    return new Meter(this.limits.prices ? { prices: this.limits.prices } : {}, this, this.#clock);
  }

  get countsSubagents(): boolean {
    const { tokens, costUsd } = this.limits;
    return tokens !== undefined || costUsd !== undefined;
  }

  /** True if a limit includes subagents, so it may be reached while calls wait for a person. */
  get hasTotals(): boolean {
    return this.countsSubagents || this.limits.wallTimeMs !== undefined;
  }

  get workedMs(): number {
    return this.#workedBefore + this.#clock() - this.#startedAt;
  }

  /** Calls of the model that this agent may make yet. */
  callsLeft(messages: readonly BaseMessage[]): number {
    const { maxIterations } = this.limits;
    if (maxIterations === undefined) return Infinity;
    const replies = currentRun(messages).messages.filter(isReply);
    return replies.reduce(
      (left, reply) => left - Number(reply.response_metadata[MODEL_CALLS] ?? 1),
      maxIterations,
    );
  }

  /** Takes the step with which the run began, once. */
  begin(firstStep: () => number): void {
    this.#firstStep ??= firstStep();
  }

  /** The first limit reached, of this agent or of those that delegated to it. This agent must stop then. */
  reached(messages: readonly BaseMessage[]): Reached | undefined {
    const { toolCalls } = this.limits;
    if (this.callsLeft(messages) <= 0) return this.#reached("max_iterations");
    if (toolCalls !== undefined && countToolCalls(messages) > toolCalls)
      return this.#reached("max_tool_calls");
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
    const above = this.#parent && this.#parent.#reachedTotals();
    const reason = above ? undefined : this.#firstReached();
    if (reason) this.#stop = this.#reached(reason);
    return reason ? this.#stop : above;
  }

  /** True if a limit is reached with a reply that is not counted yet and took this many model calls. */
  wouldReach(messages: readonly BaseMessage[], reply: BaseMessage, calls: number): boolean {
    if (this.callsLeft(messages) <= calls) return true;
    const more = spentBy(reply, this.limits);
    return [this, ...this.#above].some((meter) => meter.#firstReached(more) !== undefined);
  }

  /** The time limit of this agent or of one that delegated, whichever has the least time left, as reached. */
  timeOver(): Reached {
    const meters: Meter[] = [this, ...this.#above];
    return meters.reduce((least, meter) => (meter.#ownMs <= least.#ownMs ? meter : least)).#timeOver();
  }

  /** The limit of graph steps, if it leaves no room for a turn and an orderly end. The first turn is always tried. */
  outOfSteps(step: number, { turn, end }: TurnSteps, recursionLimit: number): Reached | undefined {
    const made = step - (this.#firstStep ?? step);
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

  get #ownMs(): number {
    const { wallTimeMs } = this.limits;
    return wallTimeMs === undefined ? Infinity : wallTimeMs - this.workedMs;
  }

  /** Time left for this agent and those who delegated to it; none when nothing limits it. */
  get remainingMs(): number | undefined {
    const least = Math.min(...[this, ...this.#above].map((meter) => meter.#ownMs));
    return least === Infinity ? undefined : Math.max(0, least);
  }

  /** The time at work, for the state; undefined if no limit needs it. */
  carried(messages: readonly BaseMessage[]): Partial<Carried> | undefined {
    if (this.remainingMs === undefined) return undefined;
    const aboveMs = this.#above.map(({ workedMs }) => workedMs);
    return { run: currentRun(messages).id, workedMs: this.workedMs, ...(aboveMs.length > 0 && { aboveMs }) };
  }

  spentUpdate(messages: readonly BaseMessage[], update: StateUpdate = {}): StateUpdate {
    const time = this.carried(messages);
    return time ? { [SPENT]: { ...time, ...(update[SPENT] as object | undefined) } } : {}; // our channel
  }
}

const countToolCalls = (messages: readonly BaseMessage[]): number =>
  currentRun(messages).messages.flatMap(callsOf).length;

/** A signal that also ends with the time. */
export interface Deadline {
  readonly signal: AbortSignal | undefined;
  isOver(): boolean;
  /** Waits for work that may not listen to the signal, and not longer than the time. */
  race<T>(work: Promise<T>): Promise<T>;
}

/** `signal`, also aborted when the time is used up (`isOver`). Times too long for a timer set no deadline. */
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

/** Time limit of one call, and the message if the call exceeds it. */
export interface CallTime extends Deadline {
  why(): string;
}

/** `meter`: counts the run's time; absent for a call that watches it itself. */
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
