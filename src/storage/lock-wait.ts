import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "./database.ts";
import { isLocked } from "./errors.ts";

/** How long a process that starts, or reads, waits for another connection in one go, in milliseconds. */
export const LONG_WAIT_MS = 5000;
/** How long work is tried again while another connection holds the lock, in milliseconds. */
const PATIENCE_MS = 5000;
/** Between two tries; each pause is twice the one before. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 100;

/** The last of those that wait, by what they wait for. */
const queues = new WeakMap<object, Promise<void>>();

/**
 * Does `work`, a transaction or a statement that writes, at once; when another connection holds the lock it
 * is tried again later, and the event loop goes on meanwhile. Those with the same `queue`, most often the
 * database, take turns in the order they came, and only the first of them tries: each try holds up the event
 * loop for the connection's timeout. Throws what `work` throws, the lock's error when it is held for too long.
 */
export async function whenUnlocked<T>(queue: object, work: () => T): Promise<T> {
  const before = queues.get(queue);
  if (before === undefined) {
    try {
      return work();
    } catch (thrown) {
      if (!isLocked(thrown)) throw thrown;
    }
  }
  const giveUpAt = performance.now() + PATIENCE_MS;
  return inTurn(queue, () => untilUnlocked(work, giveUpAt));
}

/** Does `work` when it is its turn; who comes later to `queue`, by `whenUnlocked` or this, waits until it is done. */
export async function inTurn<T>(queue: object, work: () => Promise<T>): Promise<T> {
  const turn = Promise.resolve(queues.get(queue)).then(work);
  const settled = turn.then(
    () => undefined,
    () => undefined,
  );
  queues.set(queue, settled);
  try {
    return await turn;
  } finally {
    if (queues.get(queue) === settled) queues.delete(queue);
  }
}

/** Does `work` on a connection that waits for other connections' locks for long, and for nothing else meanwhile. */
export function withLongWait<T>(database: Database, work: () => T): T {
  const before = Number(database.pragma("busy_timeout", { simple: true }));
  database.pragma(`busy_timeout = ${LONG_WAIT_MS}`);
  try {
    return work();
  } finally {
    database.pragma(`busy_timeout = ${before}`);
  }
}

/** Tries `work` until no other connection's lock is in the way, or it is `giveUpAt` on `performance`'s clock. */
export async function untilUnlocked<T>(work: () => T, giveUpAt: number): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return work();
    } catch (thrown) {
      if (!isLocked(thrown) || performance.now() >= giveUpAt) throw thrown;
    }
    await delay(pause);
  }
}
