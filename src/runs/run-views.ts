/** The views of runs that were looked at last. Each is brought up to date with what its journal has since. */
import { ownTurn } from "../core/concurrency.ts";
import { defined } from "../core/defined.ts";
import { NewestOf } from "../core/newest-of.ts";
import type { RunQueries } from "./ports.ts";
import type { Principal, RunView } from "./run.ts";
import { RunFold, placeText } from "./view.ts";

/** Read at once to bring a view up to date: more would keep others from their turn. */
const EVENTS_AT_ONCE = 250;

export class RunViews {
  readonly #read: Pick<RunQueries, "picture">;
  readonly #folds = new NewestOf<RunFold>(256);

  constructor(read: Pick<RunQueries, "picture">) {
    this.#read = read;
  }

  /** The view of a run as it is now; `undefined`: the principal has no such run. */
  async of(principal: Principal, runId: string): Promise<RunView | undefined> {
    for (;;) {
      const fold = this.#folds.get(runId) ?? new RunFold();
      const after = fold.lastSeq;
      const picture = await this.#read.picture(principal, runId, after, EVENTS_AT_ONCE);
      if (picture === undefined) return undefined;
      // Another call continued with the fold in between: look again, from there.
      if (fold.lastSeq !== after) continue;
      const { run, events, approvals, questions, grants, place, modelCalls } = picture;
      for (const event of events) fold.add(event);
      this.#folds.keep(runId, fold);
      if (events.length === EVENTS_AT_ONCE) {
        await ownTurn();
        continue;
      }
      return {
        run,
        approvals,
        questions,
        grants,
        mainAgent: fold.mainAgent(run),
        subagents: fold.subagents(),
        filesChanged: fold.filesChanged(),
        activity: place === undefined ? fold.activity : placeText(place),
        ...(place === undefined ? {} : { place }),
        modelCalls,
        models: fold.models(),
        ...defined({ goal: fold.goal(run) }),
      };
    }
  }
}
