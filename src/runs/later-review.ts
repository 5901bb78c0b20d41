/** Changes that a run proposed, for whoever looks at them or applies them after its end. */
import { defined } from "../core/unknown.ts";
import { checkAnswer } from "../tools/check-answer.ts";
import type { RunContext } from "./context.ts";
import type { RunRepository } from "./sql/repository.ts";
import type { Fence, ReviewOutcome } from "./proposals.ts";
import { problemOf } from "./review-events.ts";
import { questionOf, shownIn } from "./review.ts";
import { type Run, isFinal, noRun } from "./run.ts";
import type { Implements } from "./scopes.ts";
import type { DeleteOutcome } from "./service.ts";

export const proposedChange: Implements<"changes", "proposed"> = async (context, principal, runId, whole) => {
  const { runs, proposals, underLease } = context;
  const run = await runs.read.run(principal, runId);
  if (run?.changes !== "propose" || run.parent !== undefined || proposals === undefined) return undefined;
  // A process that was ended while it applied it is followed by this one, unless it is still at work.
  if (isFinal(run.status) && proposals.isUnfinished(run))
    await underLease(run, (fence) => proposals.change(run, { fence }));
  return proposals.change(run, defined({ whole }));
};

/** Time to wait for another process that works on the same copy: longer than one that was ended keeps its lease. */
const PATIENCE_MS = 20_000;
const BUSY = "Another process works on this change. Try again when it is done.";

/** Carries out a choice for a run that has ended. While it is open, its question is answered instead. */
export const reviewChange: Implements<"changes", "review"> = async (context, principal, id, choice, by) => {
  const { runs, proposals, underLease, newId, log } = context;
  const run = await runs.read.run(principal, id);
  if (run === undefined) return noRun(id);
  if (!isFinal(run.status))
    return refused("open", "The run has not ended. It asks for a review when it is done.");
  const newest = await findNewest(run, runs);
  if (newest !== undefined && !isFinal(newest.status)) {
    const message = `Run ${newest.id} continues this conversation in the same copy. Review the change when it asks.`;
    return refused("open", message);
  }
  const change = await proposedChange(context, principal, id);
  if (change === undefined || proposals === undefined)
    return refused("nothing_proposed", "This run has nothing left to apply.");
  const checked = checkAnswer(questionOf(change), { type: "review", choice });
  if (!checked.ok) return refused("invalid", checked.message);
  const shown = shownIn(change.files, choice);
  const about = { id: newId("review"), by, shown };
  const carryOut = async (fence: Fence): Promise<ReviewOutcome> => {
    // If this process ends before the outcome is noted, `countLeft` finds it.
    await runs.noteUnapplied(principal, id, null);
    const reviewed = await proposals.review(run, choice, about, fence);
    await noteReviews(run, fence, context, reviewed);
    return reviewed;
  };
  const outcome = await underLease(run, carryOut, PATIENCE_MS);
  if (outcome === undefined) return refused("open", BUSY);
  if (outcome.kind !== "done")
    return refused("not_applied", `Nothing was applied: ${problemOf(outcome)}. Look at the change again.`);
  const { record } = outcome;
  const { applied, unapplied } = record;
  log.info("proposal.applied", { runId: id, principal, by, applied: applied.length, unapplied });
  await tidyThread(run, unapplied, context);
  return { ok: true, record };
};

const refused = <Code extends string>(code: Code, message: string) => ({ ok: false as const, code, message });

/** Notes all reviews of a thread whose runs have ended, also of earlier processes, and the number of unapplied files. */
async function noteReviews(run: Run, fence: Fence, { runs, proposals }: RunContext, newest?: ReviewOutcome) {
  const change = newest?.kind === "done" ? undefined : await proposals?.change(run, { fence });
  const counted = change === undefined ? 0 : change.files.length + change.more;
  const unapplied = newest?.kind === "done" ? newest.record.unapplied : counted;
  await runs.noteUnapplied(run.principal, run.id, unapplied, await proposals?.reviews(run));
  return unapplied;
}

async function tidyThread(run: Run, unapplied: number, context: RunContext): Promise<void> {
  const newest = await findNewest(run, context.runs);
  if (unapplied === 0 && newest !== undefined && isFinal(newest.status)) await tidyCopy(newest, context);
}

/** Deletes the copy of a thread that has nothing left to apply. `newest`: the newest run of the thread. */
export const tidyCopy = (
  newest: Pick<Run, "id" | "principal" | "threadId">,
  { runs, proposals, underLease }: Pick<RunContext, "runs" | "proposals" | "underLease">,
) =>
  underLease(newest, async (fence) =>
    proposals?.tidy(newest, fence, (reviews) => runs.noteUnapplied(newest.principal, newest.id, 0, reviews)),
  );

/** Deletes the unapplied changes that a finished run proposed. */
export const discardChange: Implements<"changes", "discard"> = async (context, principal, runId) => {
  const { runs, proposals, underLease, log } = context;
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return noRun(runId);
  const newest = await findNewest(run, runs);
  if (!isFinal(run.status) || (newest !== undefined && !isFinal(newest.status)))
    return refused("open", "A run still works on it. Wait for its end, or cancel it.");
  if (run.changes !== "propose") return { ok: true };
  const discard = async (): Promise<DeleteOutcome> => {
    log.info("proposal.discarded", { runId, principal });
    await runs.noteUnapplied(principal, runId, 0, await proposals?.reviews(run));
    await proposals?.discard(run);
    return { ok: true };
  };
  return (await underLease(run, discard, PATIENCE_MS)) ?? refused("open", BUSY);
};

/** Deletes a run at a person's request, with its proposed changes. */
export const deleteRun: Implements<
  "control",
  "delete",
  RunContext & { prune: () => Promise<unknown> }
> = async ({ runs, proposals, log, prune }, principal, runId) => {
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return noRun(runId);
  if (await runs.disown(principal, runId)) {
    // With the last run of a thread, the copy goes.
    if (run.changes === "propose" && (await findNewest(run, runs)) === undefined)
      await proposals?.discard(run);
    await prune().catch((error: unknown) => log.warn("runs.prune_failed", { error }));
    return { ok: true };
  }
  const message = run.parent
    ? `Run ${runId} is a background task of run ${run.parent.runId} and is deleted with it.`
    : isFinal(run.status)
      ? `Run ${runId} is still being stopped. Try again in a moment.`
      : `Run ${runId} has not ended. Cancel it first, then delete it.`;
  return refused("open", message);
};

async function findNewest({ principal, threadId }: Run, runs: RunRepository) {
  const [newest] = await runs.read.summaries(principal, { threadId, tasksOnly: true }, { limit: 1 });
  return newest;
}

/** Notes the reviews of ended runs that nobody has noted, and deletes copies in which everything is applied. */
export async function countLeft(context: RunContext): Promise<void> {
  const { runs, proposals, underLease, environment, log } = context;
  if (proposals === undefined) return;
  for (const { id, principal } of await runs.uncounted(environment)) {
    try {
      const run = await runs.read.run(principal, id);
      if (run === undefined) continue;
      const unapplied = await underLease(run, (fence) => noteReviews(run, fence, context));
      if (unapplied !== undefined) await tidyThread(run, unapplied, context);
    } catch (error) {
      log.warn("proposals.not_counted", { runId: id, error });
    }
  }
}
