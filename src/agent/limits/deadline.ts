import { LONGEST_TIMER_MS } from "../../core/clock.ts";
import { type AgentLimits, describeLimit } from "./limits.ts";
import type { Meter } from "./meter.ts";

/** A signal that also ends with the time. */
export interface Deadline {
  readonly signal: AbortSignal | undefined;
  isOver(): boolean;
  /** Waits for work that may not listen to the signal, and not longer than the time. */
  race<T>(work: Promise<T>): Promise<T>;
}

/**
 * `signal`, ended by the time that is left; `isOver` tells the end of the time from other aborts. No timer waits for
 * weeks: longer times are no deadline.
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
