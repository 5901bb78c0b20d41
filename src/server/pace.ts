import type { Clock } from "../core/clock.ts";

export interface PaceOptions {
  /** How many may be sent at once after a quiet while. */
  burst: number;
  /** Milliseconds from one to the next when more are asked for than that. */
  everyMs: number;
  /** For durations: it does not jump. */
  clock: Clock;
}

/** Decides when something that is asked for often is sent. */
export interface Pace {
  /** Sends at once, or when its turn has come: what is asked for until then is sent together with it. */
  ask(): void;
  /** After this nothing is sent any more. */
  stop(): void;
}

/** `send` is called with nothing: it sends whatever is newest by then. */
export function createPace(send: () => void, { burst, everyMs, clock }: PaceOptions): Pace {
  /** What was sent has used up its share of the time until here. */
  let usedUntil = -Infinity;
  let waiting: NodeJS.Timeout | undefined;
  let stopped = false;
  const sendNow = (): void => {
    waiting = undefined;
    usedUntil = Math.max(usedUntil, clock() - (burst - 1) * everyMs) + everyMs;
    send();
  };
  return {
    ask: () => {
      if (stopped || waiting !== undefined) return;
      const wait = usedUntil - clock();
      if (wait > 0) waiting = setTimeout(sendNow, wait);
      else sendNow();
    },
    stop: () => {
      stopped = true;
      clearTimeout(waiting);
    },
  };
}
