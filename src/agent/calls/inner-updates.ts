/** Joins the changes of the state that the calls of a program made into one. */
import { type Carried, SPENT, addSpent } from "../budget/meter.ts";
import type { StateUpdate } from "../contracts/state.ts";

/** `updates`: in the order in which the calls ended. `undefined` if nothing changed. */
export function joinUpdates(updates: readonly StateUpdate[]): StateUpdate | undefined {
  if (updates.length === 0) return undefined;
  return updates.reduce<StateUpdate>((sum, { [SPENT]: spent, files, ...others }) => {
    const before = sum[SPENT] as Partial<Carried> | undefined; // our channel, as the next one
    return {
      ...sum,
      ...others,
      ...(files ? { files: { ...sum.files, ...files } } : {}),
      ...(spent ? { [SPENT]: addSpent(before ?? {}, [spent]) } : {}),
    };
  }, {});
}
