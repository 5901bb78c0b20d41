/** The longest-waiting run of one principal. */
export interface Waiting {
  id: string;
  principal: string;
  /** Since when it waits, in milliseconds since the epoch. */
  since: number;
}

/**
 * Whose turn it is: the principal with the fewest active runs, and of those the one who waits longest.
 * So one principal's long queue never holds up another's first run.
 */
export function fairest(
  waiting: readonly Waiting[],
  active: ReadonlyMap<string, number>,
): Waiting | undefined {
  const load = (candidate: Waiting): number => active.get(candidate.principal) ?? 0;
  let best: Waiting | undefined;
  for (const candidate of waiting) {
    if (best === undefined) best = candidate;
    else if (load(candidate) < load(best)) best = candidate;
    else if (load(candidate) === load(best) && candidate.since < best.since) best = candidate;
  }
  return best;
}

/** Where a run stands among those that wait for a server of its workspace. */
export interface Place {
  /** Counts from 1. */
  number: number;
  waiting: number;
  /** Runs that servers of the workspace work on. */
  atWork: number;
}

/**
 * How many turns it takes until `id` has its own, as `fairest` gives them while nothing ends in between. Of
 * `waiting`, all who wait, the runs of each principal come in their order.
 */
export function turnOf(
  id: string,
  waiting: readonly Waiting[],
  active: ReadonlyMap<string, number>,
): number | undefined {
  const loads = new Map(active);
  const turns = waiting.map((run) => {
    const load = loads.get(run.principal) ?? 0;
    loads.set(run.principal, load + 1);
    return { id: run.id, load, since: run.since };
  });
  const own = turns.find((turn) => turn.id === id);
  if (own === undefined) return undefined;
  const isAhead = ({ load, since }: { load: number; since: number }): boolean =>
    load < own.load || (load === own.load && since < own.since);
  return 1 + turns.filter(isAhead).length;
}
