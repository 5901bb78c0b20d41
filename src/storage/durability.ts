import type { Database } from "./database.ts";

const FULL = 2;

/**
 * Does `work`; what it commits outlives the end of the process, and a power cut only once a later commit
 * was made in full: one that reaches the disk takes all before it along.
 */
export function withoutWaiting<T>(database: Database, work: () => T): T {
  if (database.inTransaction || levelOf(database) < FULL) return work();
  database.pragma("synchronous = NORMAL");
  try {
    return work();
  } finally {
    database.pragma("synchronous = FULL");
  }
}

/** Makes everything that was committed before outlive a power cut, on a connection that does not wait for it. */
export function syncNow(database: Database): void {
  if (levelOf(database) >= FULL) return;
  database.pragma("synchronous = FULL");
  try {
    // Any commit will do. This number means nothing here and is the cheapest thing to change.
    const number = Number(database.pragma("user_version", { simple: true }));
    database.pragma(`user_version = ${(number + 1) % 0x7fffffff}`);
  } finally {
    database.pragma("synchronous = NORMAL");
  }
}

const levelOf = (database: Database): number => Number(database.pragma("synchronous", { simple: true }));
