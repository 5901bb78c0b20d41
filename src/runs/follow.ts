import type { ChangeFeed } from "./change-feed.ts";
import { type Principal, type RunEvent, isFinal } from "./run.ts";
import type { RunStore } from "./run-store.ts";

const PAGE = 200;

/**
 * A run's journal from `after` on, as it grows. Every follower reads its own pages from the database:
 * none holds up the run or another follower.
 */
export async function* follow(
  principal: Principal,
  runId: string,
  { after = 0, signal }: { after?: number; signal: AbortSignal },
  { store, feed }: { store: RunStore; feed: ChangeFeed },
): AsyncGenerator<RunEvent, void, undefined> {
  const subscription = feed.subscribe(runId);
  let last = after;
  try {
    while (!signal.aborted && !feed.closed) {
      // The status first: when it is final, the page after it is complete.
      const run = store.get(principal, runId);
      if (run === undefined) return;
      const page = store.events.page(runId, last, PAGE);
      for (const event of page) {
        if (signal.aborted) return;
        last = event.seq;
        yield event;
      }
      if (page.length > 0) continue;
      if (isFinal(run.status)) return;
      await subscription.changed(signal);
    }
  } finally {
    subscription.close();
  }
}
