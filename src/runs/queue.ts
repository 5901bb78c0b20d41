/** A principal's run that waits for its turn. */
interface Turn {
  principal: string;
  /** Rank among all waiting runs, lowest first, in the order of their starts, whatever clocks show. */
  rank: number;
}

export interface Waiting extends Turn {
  id: string;
}

/**
 * The next run: of the principal with the fewest active runs; among those, of the one whose last turn was longest ago;
 * among those, of the one with the first run. One principal's long queue therefore never delays another's first run,
 * even if only one run works at a time. `waiting`: the next run of each principal. `turns`: numbers of their last
 * turns.
 */
export function fairest<Waits extends Turn>(
  waiting: readonly Waits[],
  active: ReadonlyMap<string, number>,
  turns: ReadonlyMap<string, number> = new Map(),
): Waits | undefined {
  const order = ({ principal, rank }: Waits) =>
    [active.get(principal) ?? 0, turns.get(principal) ?? 0, rank] as const;
  return waiting.toSorted((one, other) => {
    const [a, b] = [order(one), order(other)];
    return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
  })[0];
}

/** Place of a run among those that wait for a server of its workspace. */
export interface Place {
  /** Counts from 1. */
  number: number;
  waiting: number;
  /** Runs that servers of the workspace work on. */
  atWork: number;
}

/** Turns until each waiting run gets its own, by id, in the order of `fairest` while no run ends. */
export function turnsOf(
  waiting: readonly Waiting[],
  active: ReadonlyMap<string, number>,
): Map<string, number> {
  const loads = new Map(active);
  const turns = waiting.map((run) => {
    const load = loads.get(run.principal) ?? 0;
    loads.set(run.principal, load + 1);
    return { id: run.id, load, rank: run.rank };
  });
  const inTurn = turns.toSorted((one, other) => one.load - other.load || one.rank - other.rank);
  return new Map(inTurn.map(({ id }, index) => [id, index + 1]));
}
