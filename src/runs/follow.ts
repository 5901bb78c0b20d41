import type { ChangeFeed } from "./change-feed.ts";
import { type Principal, type Run, type RunEvent, isFinal } from "./run.ts";
import type { RunStore } from "./stores/run-store.ts";

const PAGE = 200;
/** Runs started at one moment that are told, the newest of them. */
const STARTED_AT_ONCE = 50;

interface Sources {
  store: RunStore;
  feed: ChangeFeed;
}

/**
 * A run's journal from `after` on, as it grows. Every follower reads its own pages from the database:
 * none holds up the run or another follower.
 */
export async function* follow(
  principal: Principal,
  runId: string,
  { after = 0, signal }: { after?: number; signal: AbortSignal },
  { store, feed }: Sources,
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
      if (page.length === PAGE) continue;
      if (isFinal(run.status)) return;
      await subscription.changed(signal);
    }
  } finally {
    subscription.close();
  }
}

/** The principal's runs that are started from now on, in this process and in others. */
export async function* followStarts(
  principal: Principal,
  signal: AbortSignal,
  { store, feed }: Sources,
): AsyncGenerator<Run, void, undefined> {
  const subscription = feed.subscribe();
  let newest = store.list(principal, 1)[0]?.id;
  try {
    while (!signal.aborted && !feed.closed) {
      await subscription.changed(signal);
      if (store.list(principal, 1)[0]?.id === newest) continue;
      const runs = store.list(principal, STARTED_AT_ONCE);
      const known = runs.findIndex(({ id }) => id === newest);
      newest = runs[0]?.id;
      yield* runs.slice(0, known === -1 ? runs.length : known).toReversed();
    }
  } finally {
    subscription.close();
  }
}
