/** Turns of the event loop, semaphores, and locks by key. */
import type { ServerResponse } from "node:http";

/** Time that work may run after waiting for its turn, before the event loop handles everything else. */
const TURN_MS = 2;

/** End of the current turn; undefined before the first one. There is one event loop in a process. */
let over: number | undefined;

/** Waiting callers in order. Each has scheduled one immediate, which serves whoever is first by then. */
const waiting: Array<() => void> = [];

/**
 * Resolves when it is the caller's turn, a few milliseconds of work for each turn of the event loop: between
 * the steps of many agents, whatever came from outside is answered. Steps that become ready all at once
 * would otherwise run in one go. Who asked first is first, so that slow steps of one agent hold up no other.
 */
export const ownTurn = (): Promise<void> =>
  new Promise((resolve) => {
    waiting.push(resolve);
    setImmediate(take);
  });

/** Chooses items one by one, and lets others have their turns: a test by patterns from outside may take a while. */
export async function filterInTurns<Item>(items: readonly Item[], isWanted: (item: Item) => boolean) {
  const wanted: Item[] = [];
  let begun = performance.now();
  for (const item of items) {
    if (isWanted(item)) wanted.push(item);
    if (performance.now() - begun < TURN_MS) continue;
    await ownTurn();
    begun = performance.now();
  }
  return wanted;
}

/** When the next immediate runs, the caller of this one has finished its turn. */
function take(): void {
  const now = performance.now();
  if (over === undefined) {
    over = now + TURN_MS;
    // The first of the next turn: all that wait were put behind it.
    setImmediate(() => (over = undefined));
  } else if (now >= over) {
    setImmediate(take);
    return;
  }
  waiting.shift()?.();
}

/** Lets at most `limit` holders work at a time; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting: Array<() => void> = [];

  constructor(limit: number) {
    this.#free = limit;
  }

  /** True if the next holder would have to wait. */
  get isFull(): boolean {
    return this.#free === 0;
  }

  /** Runs `work` with a slot. Rejects with the signal's reason when it aborts before a slot is free. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#acquire(signal);
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }

  async #acquire(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const grant = (): void => {
        signal?.removeEventListener("abort", cancel);
        resolve();
      };
      const cancel = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(grant), 1);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", cancel, { once: true });
      this.#waiting.push(grant);
    });
  }
}

/**
 * Makes a function that does `work`, one call at a time. Calls during the work are answered by doing it once more; each
 * promise ends when nothing is left to do.
 */
export function coalesced(work: () => Promise<void>): () => Promise<void> {
  let underWay: Promise<void> | undefined;
  let isAsked = false;
  const run = async (): Promise<void> => {
    try {
      while (isAsked) {
        isAsked = false;
        await work();
      }
    } finally {
      underWay = undefined;
    }
  };
  return () => {
    isAsked = true;
    return (underWay ??= run());
  };
}

/** Makes a function that does `work` on its first call and keeps the result. After a failure the next call retries. */
export function memoized<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined;
  return () =>
    (result ??= work().catch((error: unknown) => {
      result = undefined;
      throw error;
    }));
}

/** The result of `work`, which continues alone when `signal` aborts first: its reason is thrown then. */
export function untilAborted<Result>(
  work: Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error); // an abort error, or the caller's own
    signal.addEventListener("abort", stop, { once: true });
    const settled =
      <Given>(settle: (given: Given) => void) =>
      (given: Given): void => {
        signal.removeEventListener("abort", stop);
        settle(given);
      };
    work.then(settled(resolve), settled(reject));
    if (signal.aborted) stop();
  });
}

/** Maps the items by `work`, with at most `limit` of them at work. After a failure it begins no other. */
export async function mapAtMost<Item, Result>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of left) results[index] = await work(item);
  };
  try {
    await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  } finally {
    while (left.next().done !== true);
  }
  return results;
}

/** Runs one task per key at a time, in order of arrival. Different keys do not wait for each other. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    return this.runAll([key], task);
  }

  /** Runs a task that has all these keys at once, so that two such tasks never wait for each other. */
  async runAll<Result>(keys: Iterable<string>, task: () => Promise<Result>): Promise<Result> {
    const own = [...new Set(keys)];
    const before = own.flatMap((key) => this.#tails.get(key) ?? []);
    let release = (): void => {};
    const tail = new Promise<void>((resolve) => (release = resolve));
    for (const key of own) this.#tails.set(key, tail);
    await Promise.all(before);
    try {
      return await task();
    } finally {
      release();
      for (const key of own) if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}

/** Calls `stalled` when the client has read none of the waiting output for `patienceMs`, by default 60 seconds. */
export function whenStalled(response: ServerResponse, stalled: () => void, patienceMs = 60_000): void {
  // A socket is also idle while there is nothing to send.
  response.setTimeout(patienceMs, () => {
    if (response.writableLength > 0) stalled();
  });
}
