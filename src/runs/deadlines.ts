import type { Logger } from "../core/logger.ts";
import { durably } from "../storage/durability.ts";
import type { RunStore } from "./stores/run-store.ts";
import { inTransaction } from "./stores/transaction.ts";

/**
 * Denies what nobody decided in time, in all runs. What was asked for by a clock that was set back since gets its
 * whole time from now on.
 */
export async function enforceDeadlines(store: RunStore, now: number, log: Logger): Promise<void> {
  const { approvals, database } = store;
  if (approvals.anyOfFuture(now)) {
    const bringBack = (): string[] => inTransaction(database, () => approvals.bringBack(now));
    for (const runId of new Set(await durably(database, bringBack))) store.changed(runId);
  }
  if (approvals.expired(now).length === 0) return;
  for (const { runId, id } of await durably(database, () => store.answers.expire(now))) {
    log.info("approval.deadline_passed", { runId, approvalId: id });
  }
}
