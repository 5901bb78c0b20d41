/** Goal of a run: its criteria, the findings of its judge, and their wording. */
import { z } from "zod";
import { VERDICTS, VERDICT_WORDS } from "../core/criteria.ts";
import { oneLine } from "../core/text.ts";

const Text = z.string();

export const CriterionFinding = z.object({
  criterion: Text,
  verdict: z.enum(VERDICTS),
  evidence: Text,
  /** Work that is left to do. */
  missing: Text.optional(),
});
export type CriterionFinding = z.infer<typeof CriterionFinding>;

/** One judged round, with one finding for each criterion in their order. */
export const GoalJudged = z.object({
  round: z.number(),
  rounds: z.number(),
  verdicts: z.array(CriterionFinding),
});
export type GoalJudged = z.infer<typeof GoalJudged>;

/** `reason`: why the goal was abandoned, or why the person who accepted the result was asked. */
export const GoalEnded = z.object({
  round: z.number(),
  outcome: z.enum(["met", "accepted", "not_met"]),
  reason: Text.optional(),
});
export type GoalEnded = z.infer<typeof GoalEnded>;

const LINE = 200;

export const GOAL_NOT_USED =
  "The goal was not used, because that run began without it; give it with the next task of the thread.";

/** `goal: 1 of 3 criteria met (round 2 of 5)`. */
export const judgedLine = ({ round, rounds, verdicts }: GoalJudged): string => {
  const met = verdicts.filter(({ verdict }) => verdict === "met").length;
  return `goal: ${met} of ${verdicts.length} criteria met (round ${round} of ${rounds})`;
};

/** A finding as text: the verdict and its criterion, then the evidence, then the missing work. */
export const findingText = ({ criterion, verdict, evidence, missing }: CriterionFinding): string =>
  `${VERDICT_WORDS[verdict]}: ${criterion}\n${evidence}${missing === undefined ? "" : `\nMissing: ${missing}`}`;

/** Goal of a run, read from its journal. */
export interface GoalView {
  criteria: readonly string[];
  /** The newest round; absent before the first. */
  judged?: GoalJudged;
  /** Absent while the run works towards it, and where the run ended in another way. */
  ended?: GoalEnded;
}

/** Sums up a goal: `Goal met`, `Goal not met: all 5 rounds are used`, `Goal: 1 of 3 criteria met (round 2 of 5)`. */
export function goalHeading({ judged, ended }: GoalView, isOver: boolean): string {
  const line = ended ? endedLine(ended) : judged ? judgedLine(judged) : "goal: not judged";
  const open = isOver || ended !== undefined || judged !== undefined ? "" : " yet";
  return line.charAt(0).toUpperCase() + line.slice(1) + open;
}

const ENDS = { met: "goal met", accepted: "goal accepted by a person", not_met: "goal not met" } as const;

/** `goal not met: all 5 rounds are used`. */
export const endedLine = ({ outcome, reason }: GoalEnded): string =>
  oneLine(ENDS[outcome] + (reason === undefined ? "" : `: ${reason}`), LINE);
