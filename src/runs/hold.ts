/** Asks a person while a call of a run is at work: the run keeps its lease, and the question is withdrawn after a while. */
import type { WorkOptions } from "../agent/agent.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { ChangeFeed } from "./follow.ts";
import type { Lease, RunQueries, WorkLog } from "./ports.ts";

export interface HoldContext {
  work: WorkLog;
  read: RunQueries;
  feed: ChangeFeed;
  clock: Clock;
  newId: IdSource;
  /** Time that a call waits for an answer, in ms. */
  patienceMs: number;
}

export function holderFor(
  lease: Lease,
  { work, read, feed, clock, newId, patienceMs }: HoldContext,
): NonNullable<WorkOptions["hold"]> {
  return async ({ agent, question }, signal) => {
    const id = newId("held");
    await work.askQuestion(lease, { id, agent, question }, clock());
    const stop = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    const subscription = feed.subscribe(lease.rootId);
    try {
      while (!stop.aborted && !feed.closed) {
        const asked = await read.question(lease.principal, lease.rootId, id);
        if (asked?.status !== "pending") break;
        await subscription.changed(stop);
      }
    } finally {
      subscription.close();
    }
    signal.throwIfAborted();
    return work.takeHeld(lease, id, clock());
  };
}
