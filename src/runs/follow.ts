import type { ChangeFeed } from "./change-feed.ts";
import { type RunHead, type Principal, type RunEvent, isFinal } from "./run.ts";
import { PAGE, type SharedTails, type TailReader } from "./shared-tail.ts";
import type { RunStore } from "./stores/run-store.ts";

/** Runs started at one moment that are told, the newest of them. */
const STARTED_AT_ONCE = 50;

interface Sources {
  store: RunStore;
  feed: ChangeFeed;
}

/**
 * A run's journal from `after` on, as it grows. What is new is read once for all who follow the run; one that
 * is behind reads its own pages. None holds up the run or another follower.
 */
export async function* follow(
  principal: Principal,
  runId: string,
  { after = 0, signal }: { after?: number; signal: AbortSignal },
  { feed, tails }: { feed: ChangeFeed; tails: SharedTails },
): AsyncGenerator<RunEvent, void, undefined> {
  const subscription = feed.subscribe(runId);
  const tail = tails.open(principal, runId, after);
  let last = after;
  try {
    while (!signal.aborted && !feed.closed) {
      const read = yield* page(tail, last, signal);
      if (read === undefined) return;
      last = read.last;
      if (read.isFull) continue;
      if (read.isFinal) return;
      await subscription.changed(signal);
    }
  } finally {
    tail.close();
    subscription.close();
  }
}

/** Passes new events on, in a frame of its own: a follower that waits for more holds no event. */
async function* page(
  tail: TailReader,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, { last: number; isFull: boolean; isFinal: boolean } | undefined, undefined> {
  const look = tail.after(after);
  let last = after;
  for (const event of look?.events ?? []) {
    if (signal.aborted) return undefined;
    last = event.seq;
    yield event;
  }
  return look && { last, isFull: look.events.length === PAGE, isFinal: isFinal(look.run.status) };
}

/** The principal's runs that are started from now on, in this process and in others. */
export async function* followStarts(
  principal: Principal,
  signal: AbortSignal,
  { store, feed }: Sources,
): AsyncGenerator<RunHead, void, undefined> {
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
