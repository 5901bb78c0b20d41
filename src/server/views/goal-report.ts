/** The goal of a run as clients read it. */
import { z } from "zod";
import { VERDICT_WORDS } from "../../core/criteria.ts";
import { CriterionFinding, type GoalView } from "../../runs/goal.ts";
import { asText } from "./quoting.ts";

/** A goal with the newest finding about each criterion. */
export const GoalReport = z.object({
  /** Such as `Goal: 1 of 3 criteria met (round 2 of 5)`. */
  outcome: z.string(),
  /** Judged rounds. */
  round: z.int(),
  /** Without verdicts before the first round. */
  criteria: z.array(CriterionFinding.partial().required({ criterion: true })),
});
export type GoalReport = z.output<typeof GoalReport>;

export const goalReport = (goal: GoalView, isOver: boolean): GoalReport => ({
  outcome: goalHeading(goal, isOver),
  round: goal.judged?.round ?? 0,
  criteria: goal.judged?.verdicts ?? goal.criteria.map((criterion) => ({ criterion })),
});

/** One line for each criterion, with the evidence for verdicts other than `met`. */
export const goalLines = ({ criteria }: GoalReport): string[] =>
  criteria.map(({ criterion, verdict, evidence = "", missing }) => {
    if (verdict === undefined) return `- ${asText(criterion)}`;
    const left = missing === undefined ? "" : ` Missing: ${asText(missing)}`;
    const why = verdict === "met" ? "" : `: ${asText(evidence)}${left}`;
    return `- [${verdict === "met" ? "x" : " "}] ${VERDICT_WORDS[verdict]}: ${asText(criterion)}${why}`;
  });

export const GOAL_NOT_USED =
  "The goal was not used, because that run began without it; give it with the next task of the thread.";

/** A finding as text: the verdict and its criterion, then the evidence, then the missing work. */
export const findingText = ({ criterion, verdict, evidence, missing }: CriterionFinding): string =>
  `${VERDICT_WORDS[verdict]}: ${criterion}\n${evidence}${missing === undefined ? "" : `\nMissing: ${missing}`}`;

/** Sums up a goal: `Goal met`, `Goal not met: all 5 rounds are used`, `Goal: 1 of 3 criteria met (round 2 of 5)`. */
export const goalHeading = ({ line }: GoalView, isOver: boolean): string =>
  line === undefined
    ? `Goal: not judged${isOver ? "" : " yet"}`
    : line.charAt(0).toUpperCase() + line.slice(1);
