/** Checks whether calls that overlapped had outcomes as if each had taken place at once, in an order of their own. */

/** A call, with the time in which it took place. Without an outcome, nobody knows whether it had its effect. */
export interface Call<Operation> {
  operation: Operation;
  beganAt: number;
  endedAt: number;
  outcome?: string;
}

/** What calls one after the other lead to. */
export interface Model<State, Operation> {
  initial: State;
  /**
   * The state after a call, which is the same object if it changes nothing, or undefined if the call cannot have this
   * outcome then. Without one, any is possible.
   */
  next(state: State, operation: Operation, outcome: string | undefined): State | undefined;
  /** True if the calls may have led to what is stored in the end. */
  isEnd(state: State): boolean;
}

/**
 * Searches an order of the calls that the model allows. A call comes before another one that began after its end.
 * States that were reached by the same calls before are not searched again. See Wing and Gong, "Testing and Verifying
 * Concurrent Objects" (1993), and Lowe, "Testing for Linearizability" (2017).
 */
export function isLinearizable<State, Operation>(
  calls: readonly Call<Operation>[],
  model: Model<State, Operation>,
): boolean {
  const inOrder = calls.toSorted((one, other) => one.beganAt - other.beganAt);
  const seen = new Set<string>();
  const search = (left: readonly number[], state: State): boolean => {
    const key = `${left.join()} ${JSON.stringify(state)}`;
    if (seen.has(key)) return false;
    seen.add(key);
    let earliestEnd = Infinity;
    let isExplained = true;
    for (const index of left) {
      const { outcome, endedAt } = inOrder[index] ?? { endedAt: 0 };
      if (outcome === undefined) continue;
      isExplained = false;
      earliestEnd = Math.min(earliestEnd, endedAt);
    }
    if (isExplained && model.isEnd(state)) return true;
    const steps = left.flatMap((index) => {
      const call = inOrder[index];
      if (call === undefined || call.beganAt > earliestEnd) return [];
      const after = model.next(state, call.operation, call.outcome);
      const isKnown = call.outcome !== undefined;
      // A call that nobody knows and that changes nothing may as well not have been made.
      return after === undefined || (!isKnown && after === state) ? [] : [{ index, after, isKnown }];
    });
    const go = ({ index, after }: { index: number; after: State }): boolean =>
      search(
        left.filter((other) => other !== index),
        after,
      );
    // A call that may come now and changes nothing is in nobody's way: no other place for it has to be tried.
    const idle = steps.find(({ after }) => after === state);
    if (idle !== undefined) return go(idle);
    return steps.toSorted((one, other) => Number(other.isKnown) - Number(one.isKnown)).some(go);
  };
  return search([...inOrder.keys()], model.initial);
}
