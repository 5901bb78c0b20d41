/** The event of a review in the journal. */
import { z } from "zod";
import { oneLine, displayName } from "../core/text.ts";
import { counted } from "../tools/format.ts";
import type { ReviewOutcome, ReviewRecord } from "./proposals.ts";

const MAX = { text: 1000, paths: 50 };
const Text = z.string();

export const ChangesReviewed = z.object({
  applied: z.array(Text),
  refused: z.array(Text),
  /** Files with something that is not applied. */
  unapplied: z.number(),
  branch: Text.optional(),
  problem: Text.optional(),
});
type ChangesReviewed = z.output<typeof ChangesReviewed>;

export function reviewedLine({ applied, unapplied, branch, problem }: ChangesReviewed): string {
  if (problem !== undefined) return oneLine(`review: nothing was applied: ${problem}`, MAX.text);
  const into = branch === undefined ? "" : ` as branch ${branch}`;
  const left = unapplied === 0 ? "" : `, ${counted(unapplied, "file")} not applied`;
  return oneLine(`review: applied changes of ${counted(applied.length, "file")}${into}${left}`, MAX.text);
}

/** Why nothing was applied. */
export const problemOf = (outcome: Exclude<ReviewOutcome, { kind: "done" }>): string =>
  outcome.kind === "failed"
    ? outcome.message.replace(/\.$/, "")
    : `${outcome.paths.slice(0, 5).join(", ")} changed since it was shown`;

export function reviewedData(outcome: ReviewOutcome): ChangesReviewed {
  if (outcome.kind !== "done")
    return { applied: [], refused: [], unapplied: 0, problem: oneLine(problemOf(outcome), MAX.text) };
  const { applied, partly, refused, unapplied, branch } = outcome.record;
  return {
    applied: [...applied, ...partly].slice(0, MAX.paths),
    refused: Object.keys(refused).slice(0, MAX.paths),
    unapplied,
    ...(branch === undefined ? {} : { branch }),
  };
}

export function recordText({ applied, partly, branch, worktree, refused, unapplied }: ReviewRecord): string {
  const count = applied.length + partly.length;
  const refusals = Object.keys(refused).length;
  const into = branch === undefined ? "" : ` as branch ${displayName(branch)}`;
  const at = worktree === undefined ? "" : ` in ${displayName(worktree)}`;
  return [
    count === 0 ? "Nothing was applied." : `Applied ${counted(count, "file")}${into}${at}.`,
    ...(refusals === 0 ? [] : [`Rejected ${counted(refusals, "file")}.`]),
    unapplied === 0 ? "Nothing is left to apply." : `${counted(unapplied, "file")} left.`,
  ].join(" ");
}
