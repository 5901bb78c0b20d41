import type { Database } from "../../storage/database.ts";
import { withoutWaiting } from "../../storage/durability.ts";

/**
 * Does `work` in one transaction that takes the write lock first: what it reads is still so when it
 * writes, and a second process waits its turn instead of failing half-way. It is on the disk afterwards.
 */
export function inTransaction<T>(database: Database, work: () => T): T {
  return database.transaction(work).immediate();
}

/**
 * As `inTransaction`, for what nobody relies on after a power cut: it outlives the end of the process, and
 * reaches the disk with the next transaction that does.
 */
export function inQuickTransaction<T>(database: Database, work: () => T): T {
  return withoutWaiting(database, () => inTransaction(database, work));
}
