/** Reviews the proposed changes at the end of a run: asks a person, and carries out the choice. */
import { defined } from "../core/unknown.ts";
import { ConfigurationError, isTransient } from "../core/errors.ts";
import { cutMiddle, headOf } from "../core/text.ts";
import type { Question, ReviewChoice } from "../tools/request.ts";
import { entryOf } from "./events.ts";
import type { RunContext } from "./context.ts";
import type { Delivered, Lease, RunInbox, RunResult } from "./ports.ts";
import { LeaseLostError, fenceOf } from "./ports.ts";
import type { ProposedChange, ReviewOutcome, ReviewRecord } from "./proposals.ts";
import { hasConflict, versionsOf } from "./proposals.ts";
import { problemOf } from "./review-events.ts";
import { type Run, isCut, isFinal } from "./run.ts";

type ReviewContext = Pick<RunContext, "runs" | "work" | "clock" | "newId" | "proposals" | "log">;

/** Returns whether the run waits without a lease, continues with a report to its agent, or may end. */
export async function reviewAtEnd(
  { run, lease }: { run: Run; lease: Lease },
  end: RunResult,
  { inbox, delivered }: { inbox: RunInbox; delivered: readonly Delivered[] },
  { runs, work, clock, newId, proposals, log }: ReviewContext,
): Promise<"asked" | "told" | "done"> {
  if (run.changes !== "propose" || run.parent !== undefined || proposals === undefined) return "done";
  const isOver = end.stopReason !== undefined && !isCut(end.stopReason);
  // Background agents work in the same copy: the run waits for them first, and asks once about everything.
  if (!isOver && (await work.children(lease, clock, () => newId("thr")).hasOpen())) return "done";
  const reviews = work.reviews(lease);
  const fence = fenceOf(lease, runs);
  const answered = await reviews.answered();
  let note: string | undefined;
  if (answered !== undefined) {
    const { id, files, answer, decidedBy: by = "" } = answered;
    // Declining applies nothing; the person's text is for the agent.
    const message = answer?.type === "decline" ? answer.message : undefined;
    const choice = answer?.type === "review" ? answer.choice : { apply: {}, ...defined({ message }) };
    const shown = shownIn(files, choice);
    const outcome = await proposals.review(run, choice, { id, by, shown }, fence);
    const told = outcome.kind === "done" ? reviewMessage(outcome.record) : undefined;
    await reviews
      .settle(answered, outcome, { now: clock(), ...defined({ told }) })
      .catch((thrown: unknown) => noteIfEnded(thrown, run, outcome, runs));
    if (outcome.kind === "done") return told === undefined ? "done" : "told";
    note = problemOf(outcome);
  }
  const change = await proposals.change(run, { fence }).catch(async (thrown: unknown) => {
    // The answer of the agent is not lost for it.
    if (isTransient(thrown) || thrown instanceof LeaseLostError) throw thrown;
    log.error("proposals.not_shown", { runId: run.id, error: thrown });
    const message = `The proposed change cannot be shown: ${thrown instanceof ConfigurationError ? thrown.message : "an unexpected error, which is in the log of the server"}`;
    await work.record(lease, [entryOf({ kind: "warning", agent: [], message })], clock());
    return "unknown" as const;
  });
  if (change === "unknown") return "done";
  const isNew = change !== undefined && (change.more > 0 || change.files.some(({ decided }) => !decided));
  if (change === undefined || isOver || !isNew) {
    await reviews.note(change === undefined ? 0 : change.files.length + change.more);
    return "done";
  }
  const asked = { id: newId("review"), agent: [], question: questionOf(change, note) };
  const paused = { interrupts: [], questions: [asked], modelAwaited: false, childAwaited: false };
  const outcome = await work.pause(lease, paused, delivered, inbox, clock());
  return outcome === "waiting" ? "asked" : "told";
}

/** Notes the applied files of a run that somebody cancelled while they were applied. @throws `thrown` */
async function noteIfEnded(
  thrown: unknown,
  { principal, id }: Run,
  outcome: ReviewOutcome,
  runs: ReviewContext["runs"],
): Promise<never> {
  const now = thrown instanceof LeaseLostError ? await runs.read.run(principal, id) : undefined;
  if (outcome.kind === "done" && now !== undefined && isFinal(now.status))
    await runs.noteUnapplied(principal, id, outcome.record.unapplied, [outcome.record]);
  throw thrown;
}

/** The versions of files that a person saw. */
export const shownIn = (
  files: Parameters<typeof versionsOf>[0],
  { shown }: ReviewChoice,
): Record<string, string> => ({ ...versionsOf(files), ...shown });

export function questionOf(
  { files, more, isRepository, commits }: ProposedChange,
  note?: string,
): Extract<Question, { kind: "review" }> {
  const diff = files.flatMap(({ places }) => places.map(({ diff }) => diff)).join("\n");
  // A longer diff does not stand in the question itself.
  const isWhole = more === 0 && files.every(isShown) && diff.length <= 12_000;
  return {
    kind: "review",
    files: files.map((file) => {
      const { path, from, change, version, added, removed, places, ignored, stays, decided, unshown } = file;
      const shown = { path, ...defined({ from }), change, version, added, removed, places: places.length };
      return {
        ...shown,
        ...(hasConflict(file) ? { conflict: true as const } : {}),
        ...(ignored || stays || decided?.how === "refused" ? { apart: true as const } : {}),
        ...(unshown ? { unshown: true as const } : {}),
      };
    }),
    more,
    hasBranches: isRepository,
    ...defined({ diff: isWhole ? diff : undefined, commits, note }),
  };
}

/** True if the lines of a file, and its name, are all there is to see. */
const isShown = ({ change, places, notes }: ProposedChange["files"][number]): boolean =>
  notes.length === 0 &&
  (places.length > 0 || change === "renamed") &&
  places.every(({ isPart }) => isPart !== true);

/** The words to the agent; `undefined`: it has nothing to do. */
function reviewMessage(record: ReviewRecord): string | undefined {
  const { applied, partly, refused, fitted, message, branch, unapplied } = record;
  const refusals = Object.entries(refused);
  if (message === undefined && refusals.length === 0 && Object.keys(fitted).length === 0) return undefined;
  const into = branch === undefined ? "to the folder" : `as branch ${branch}`;
  const list = (paths: readonly string[]): string => cutMiddle(paths.join(", "), 2000);
  const said = [
    "A person reviewed the changes that you propose.",
    ...(applied.length === 0 ? ["Nothing was applied completely."] : [`Applied ${into}: ${list(applied)}.`]),
    ...(partly.length === 0 ? [] : [`Applied in part: ${list(partly)}.`]),
    ...(unapplied === 0 ? [] : ["What was not applied is still in your copy of the folder."]),
    ...refusals.map(
      ([path, why]) => `Refused: ${path}. ${why} Do not propose it again unless you are asked to.`,
    ),
    ...Object.entries(fitted).map(
      ([path, diff]) =>
        `The folder has another ${path} by now, which your copy has too. Make your change fit to it. It was:\n${headOf(diff, 6000)}`,
    ),
    ...(message === undefined ? [] : [`The person says: ${message}`]),
  ];
  return cutMiddle(said.join("\n"), 20_000);
}
