/** Delivers news: claims messages in the outbox and sends them through their channels. */
import { type Clock, isDoneWithin } from "../core/clock.ts";
import { coalesced, untilAborted } from "../core/concurrency.ts";
import { errorMessage } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import { oneLine } from "../core/text.ts";
import type { RunRepository } from "./sql/repository.ts";
import type { NewsRule, Outgoing, Send, SendResult, Settled } from "./news.ts";
import { subscriptionIn } from "./news.ts";
import { warnUnlessLocked } from "./worker.ts";

export interface Channel extends NewsRule {
  send: Send;
}

const MINUTE = 60_000;
/** Pauses after failed attempts: about a day in all. */
const PAUSES_MS = [5, 30, 120, 600, 1800, 7200, 21_600, 54_000].map((seconds) => seconds * 1000);
/** An attempt takes no longer. */
const ATTEMPT_MS = 30_000;
/** From then on another server makes the attempt again. */
const CLAIM_MS = 2 * ATTEMPT_MS;
/** Longest pause of a receiver that nobody answers for: it may be back, and a new message finds that out. */
const RECEIVER_MS = MINUTE;
const PROBLEM = 300;

export interface CourierOptions {
  news: RunRepository["news"];
  channels: readonly Channel[];
  /** Returns the sender for a subscription ID. Default: messages to subscriptions are left to others. */
  subscriber?: (id: string) => Send;
  environment: string;
  clock: Clock;
  log: Logger;
  /** A number from 0 up to 1. Default: random. */
  random?: () => number;
  /** Longest time between two looks at the outbox, in ms. Default: a minute. */
  checkMs?: number;
  /** Time that attempts under way have when the courier is closed, in ms. Default: five seconds. */
  patienceMs?: number;
}

/** The next step after a failed attempt. */
export function settledBy(
  result: Exclude<SendResult, { ok: true }>,
  { attempts, now, random }: { attempts: number; now: number; random: () => number },
): Settled {
  const { isFinal = false, afterMs = 0 } = result;
  const problem = oneLine(result.problem, PROBLEM);
  const pause = PAUSES_MS[attempts - 1];
  if (isFinal || pause === undefined) return { kind: "dead", now, problem };
  // A receiver can ask for a day at most.
  const wait = Math.max(spread(pause, random), Math.min(afterMs, 24 * 60 * MINUTE));
  return { kind: "again", dueAt: now + wait, problem };
}

/** Receivers that come back are not asked by all at once. */
const spread = (pause: number, random: () => number): number => Math.round(pause * (0.8 + 0.4 * random()));

/**
 * Sends due messages, one after the other for each channel, so that a slow channel does not delay others. Several
 * servers may do so: a message is claimed for each attempt. Does not keep the process alive.
 */
export class Courier {
  readonly #options: CourierOptions & Required<Pick<CourierOptions, "random" | "checkMs" | "patienceMs">>;
  readonly #channels: ReadonlyMap<string, Channel>;
  readonly #outbox: { close(): void };
  readonly #lanes = new Map<string, Promise<void>>();
  /** Receivers that did not answer. Messages that come during the pause wait, too. */
  readonly #unreachable = new Map<string, { failures: number; until: number }>();
  readonly #stop = new AbortController();
  #looking: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: CourierOptions) {
    this.#options = { random: Math.random, checkMs: MINUTE, patienceMs: 5000, ...options };
    this.#channels = new Map(options.channels.map((channel) => [channel.target, channel]));
    this.#outbox = options.news.open(options.channels, () => void this.look());
    void this.look();
  }

  /** Starts to send due messages. */
  look(): Promise<void> {
    return (this.#looking = this.#lookAgain());
  }

  /** Ends attempts under way after a while; they are made again later, by this server or another. */
  async close(): Promise<void> {
    this.#outbox.close();
    await this.#looking;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const sent = Promise.all(this.#lanes.values());
    if (!(await isDoneWithin(this.#options.patienceMs, sent))) this.#stop.abort();
    await sent;
  }

  readonly #lookAgain = coalesced(async () => {
    const { news, environment, clock, log, checkMs } = this.#options;
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    let wait = checkMs;
    try {
      const due = await news.due(environment);
      // Drops the failures of receivers that have no more messages.
      for (const [target, { until }] of this.#unreachable) {
        if (until <= clock() && !due.some((one) => one.target === target)) this.#unreachable.delete(target);
      }
      for (const { target, dueAt: first } of due) {
        const subscription = subscriptionIn(target);
        const send =
          subscription === undefined
            ? this.#channels.get(target)?.send
            : this.#options.subscriber?.(subscription);
        if (send === undefined || this.#lanes.has(target)) continue;
        const dueAt = Math.max(first, this.#unreachable.get(target)?.until ?? first);
        if (dueAt <= clock()) this.#lanes.set(target, this.#lane(target, send));
        else wait = Math.min(wait, dueAt - clock());
      }
      // Otherwise only other servers could leave messages behind, by subscriptions that this one has not seen.
      const hasReceivers =
        this.#channels.size + this.#lanes.size > 0 || (await news.hasSubscriptions(clock()));
      if (!hasReceivers) wait *= 10;
    } catch (error) {
      warnUnlessLocked(log, "news.look_failed", { error });
    }
    this.#timer = setTimeout(() => void this.look(), Math.max(wait, 0)).unref();
  });

  async #lane(target: string, send: Send): Promise<void> {
    let isDone = false;
    try {
      await this.#sendAll(target, send);
      isDone = true;
    } catch (error) {
      warnUnlessLocked(this.#options.log, "news.lane_failed", { what: target, error });
    }
    this.#lanes.delete(target);
    // Finds out when its next attempt is due. After a failure of the storage the timer does.
    if (isDone && !this.#isClosed) void this.look();
  }

  async #sendAll(target: string, send: Send): Promise<void> {
    const { news, environment, clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      const now = clock();
      const outgoing = await news.claim({ target, environment }, now, now + CLAIM_MS);
      if (outgoing === undefined) return;
      const result = await this.#attempt(outgoing, send);
      await news.settle(outgoing, this.#settledBy(result, outgoing));
      if (result !== "broken_off" && !(await this.#isReachable(target, result))) return;
    }
  }

  /** After an attempt that nobody answered, all messages to the receiver wait: each would take as long. */
  async #isReachable(target: string, result: SendResult): Promise<boolean> {
    if (result.ok || !result.isUnreachable) {
      this.#unreachable.delete(target);
      return true;
    }
    const { news, environment, clock, log, random } = this.#options;
    const failures = (this.#unreachable.get(target)?.failures ?? 0) + 1;
    const now = clock();
    const pause = Math.min(PAUSES_MS[failures - 1] ?? RECEIVER_MS, RECEIVER_MS);
    const until = now + spread(pause, random);
    this.#unreachable.set(target, { failures, until });
    log.info("news.receiver_paused", { target, failures, forMs: until - now });
    const dueAt = PAUSES_MS.map((wait) => now + spread(wait, random));
    await news.postpone({ target, environment, now, problem: oneLine(result.problem, PROBLEM) }, dueAt);
    return false;
  }

  async #attempt({ news }: Outgoing, send: Send): Promise<SendResult | "broken_off"> {
    const timeout = AbortSignal.timeout(ATTEMPT_MS);
    try {
      const signal = AbortSignal.any([timeout, this.#stop.signal]);
      // Nothing waits for a channel that does not look at the signal.
      return await untilAborted(send(news, signal), signal);
    } catch (error) {
      if (this.#stop.signal.aborted) return "broken_off";
      return timeout.aborted
        ? { ok: false, problem: `no answer within ${ATTEMPT_MS / 1000} s`, isUnreachable: true }
        : { ok: false, problem: errorMessage(error) };
    }
  }

  #settledBy(result: SendResult | "broken_off", { news, target, attempts }: Outgoing): Settled {
    const { clock, log, random } = this.#options;
    const now = clock();
    if (result === "broken_off") return { kind: "broken_off", now };
    const facts = { target, runId: news.runId, type: news.type, attempts };
    if (result.ok) {
      log.debug("news.delivered", facts);
      return { kind: "delivered" };
    }
    const settled = settledBy(result, { attempts, now, random });
    const { problem } = result;
    if (settled.kind === "dead") log.warn("news.given_up", { ...facts, problem });
    else log.info("news.not_delivered", { ...facts, problem });
    return settled;
  }
}
