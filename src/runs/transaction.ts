import type { Database } from "../storage/database.ts";

/**
 * Does `work` in one transaction that takes the write lock first: what it reads is still so when it
 * writes, and a second process waits its turn instead of failing half-way.
 */
export function inTransaction<T>(database: Database, work: () => T): T {
  return database.transaction(work).immediate();
}
