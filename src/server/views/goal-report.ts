/** The goal of a run as clients read it. */
import { z } from "zod";
import { VERDICT_WORDS } from "../../core/criteria.ts";
import { CriterionFinding, type GoalView, goalHeading } from "../../runs/goal.ts";
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
