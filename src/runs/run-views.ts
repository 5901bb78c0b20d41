/** Caches the most recently used views of runs. Each is updated with the new events of its journal. */
import { ownTurn } from "../core/concurrency.ts";
import { defined } from "../core/defined.ts";
import { NewestOf } from "../core/newest-of.ts";
import type { RunQueries } from "./ports.ts";
import type { RunGroups } from "./scopes.ts";
import { RunFold, placeText } from "./view.ts";

/** Events read at once to update a view: more would keep others from their turn. */
const EVENTS_AT_ONCE = 250;

export function runViews(read: Pick<RunQueries, "picture">): RunGroups["read"]["view"] {
  const folds = new NewestOf<RunFold>(256);
  return async (principal, runId) => {
    for (;;) {
      const fold = folds.get(runId) ?? new RunFold();
      const after = fold.lastSeq;
      const picture = await read.picture(principal, runId, after, EVENTS_AT_ONCE);
      if (picture === undefined) return undefined;
      // Another call continued with the fold in between: look again, from there.
      if (fold.lastSeq !== after) continue;
      const { events, place, ...seen } = picture;
      for (const event of events) fold.add(event);
      folds.keep(runId, fold);
      if (events.length === EVENTS_AT_ONCE) {
        await ownTurn();
        continue;
      }
      return {
        ...seen,
        requests: fold.withCalls(seen.requests),
        mainAgent: fold.mainAgent(seen.run),
        subagents: fold.subagents(),
        filesChanged: fold.filesChanged(seen.run),
        activity: place === undefined ? fold.activity : placeText(place),
        models: fold.models(),
        ...defined({ place, goal: fold.goal(seen.run) }),
      };
    }
  };
}
