/** Changes that a run proposed, for whoever looks at them or applies them after its end. */
import { checkAnswer } from "../tools/check-answer.ts";
import type { ReviewChoice } from "../tools/tool.ts";
import type { RunContext } from "./context.ts";
import type { RunRepository } from "./ports.ts";
import type { ProposedChange, Proposals } from "./proposals.ts";
import { problemOf } from "./review-events.ts";
import { questionOf, shownIn } from "./review.ts";
import { type Principal, type Run, isFinal, noRun } from "./run.ts";
import type { DeleteOutcome, LaterReviewOutcome } from "./service.ts";

type LaterContext = Pick<RunContext, "runs" | "proposals" | "environment" | "newId" | "log">;

export async function proposedChange(
  principal: Principal,
  runId: string,
  { runs, proposals }: LaterContext,
): Promise<ProposedChange | undefined> {
  const run = await runs.read.run(principal, runId);
  return run?.changes === "propose" && run.parent === undefined ? proposals?.change(run) : undefined;
}

/** Carries out a choice for a run that has ended. While it is open, its question is answered instead. */
export async function reviewChange(
  principal: Principal,
  runId: string,
  choice: ReviewChoice,
  by: string,
  { runs, proposals, newId, log }: LaterContext,
): Promise<LaterReviewOutcome> {
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return noRun(runId);
  if (!isFinal(run.status))
    return refused("open", "The run has not ended. It asks for a review when it is done.");
  const newest = await newestOf(run, runs);
  if (newest !== undefined && !isFinal(newest.status)) {
    const message = `Run ${newest.id} continues this conversation in the same copy. Review the change when it asks.`;
    return refused("open", message);
  }
  const change = run.changes === "propose" ? await proposals?.change(run) : undefined;
  if (change === undefined || proposals === undefined)
    return refused("nothing_proposed", "Nothing of this run is left to apply.");
  const checked = checkAnswer(questionOf(change), { type: "review", choice });
  if (!checked.ok) return refused("invalid", checked.message);
  const shown = shownIn(change.files, choice);
  const outcome = await proposals.review(run, choice, { id: newId("review"), by, shown });
  if (outcome.kind !== "done")
    return refused("not_applied", `Nothing was applied: ${problemOf(outcome)}. Look at the change again.`);
  const { record } = outcome;
  log.info("proposals.reviewed", { runId, by, applied: record.applied.length, unapplied: record.unapplied });
  await settle(run, record.unapplied, { runs, proposals });
  return { ok: true, record };
}

const refused = <Code extends string>(code: Code, message: string) => ({ ok: false as const, code, message });

async function settle(
  run: Run,
  unapplied: number,
  { runs, proposals }: { runs: RunRepository; proposals: Proposals },
): Promise<void> {
  await runs.noteUnapplied(run.principal, run.id, unapplied);
  const newest = await newestOf(run, runs);
  if (unapplied === 0 && newest !== undefined && isFinal(newest.status))
    await proposals.tidy({ id: newest.id, threadId: run.threadId });
}

/** Deletes what a run proposed and nobody applied, once it has ended. */
export async function discardChange(
  principal: Principal,
  runId: string,
  { runs, proposals, log }: LaterContext,
): Promise<DeleteOutcome> {
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return noRun(runId);
  const newest = await newestOf(run, runs);
  if (!isFinal(run.status) || (newest !== undefined && !isFinal(newest.status)))
    return refused("open", "A run still works on it. Wait for its end, or cancel it.");
  if (run.changes === "propose") {
    log.info("proposals.discarded", { runId });
    await runs.noteUnapplied(principal, runId, 0);
    await proposals?.discard(run);
  }
  return { ok: true };
}

/** Deletes a run because a person asked for it, with what it proposed. */
export async function deleteRun(
  principal: Principal,
  runId: string,
  { prune, ...context }: LaterContext & { prune: () => Promise<unknown> },
): Promise<DeleteOutcome> {
  const { runs, log } = context;
  const run = await runs.read.run(principal, runId);
  if (run === undefined) return noRun(runId);
  if (await runs.disown(principal, runId)) {
    await discardWithThread(run, context);
    await prune().catch((error: unknown) => log.warn("runs.prune_failed", { error }));
    return { ok: true };
  }
  const message = run.parent
    ? `Run ${runId} is a background task of run ${run.parent.runId} and is deleted with it.`
    : isFinal(run.status)
      ? `Run ${runId} is still being stopped. Try again in a moment.`
      : `Run ${runId} has not ended. Cancel it first, then delete it.`;
  return refused("open", message);
}

/** With the last run of a thread, the copy goes. */
async function discardWithThread(run: Run, { runs, proposals }: LaterContext): Promise<void> {
  if (run.changes !== "propose" || proposals === undefined) return;
  if ((await newestOf(run, runs)) === undefined) await proposals.discard(run);
}

/** The newest run of the thread. */
async function newestOf({ principal, threadId }: Run, runs: RunRepository) {
  const [newest] = await runs.read.summaries(principal, { threadId, tasksOnly: true }, 1);
  return newest;
}

/** Counts what runs left that failed or were cancelled; where nothing is left, the copy goes. */
export async function countLeft({ runs, proposals, environment, log }: LaterContext): Promise<void> {
  if (proposals === undefined) return;
  for (const { id, principal } of await runs.uncounted(environment)) {
    try {
      const run = await runs.read.run(principal, id);
      if (run === undefined) continue;
      const change = await proposals.change(run);
      await settle(run, change === undefined ? 0 : change.files.length + change.more, { runs, proposals });
    } catch (error) {
      log.warn("proposals.not_counted", { runId: id, error });
    }
  }
}
