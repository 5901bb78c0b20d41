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
