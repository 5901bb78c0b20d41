/** Goal of a run: its criteria, the findings of its judge, and their wording. */
import { z } from "zod";
import { VERDICTS } from "../core/criteria.ts";
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
type GoalJudged = z.infer<typeof GoalJudged>;

/** `reason`: why the goal was abandoned, or why the person who accepted the result was asked. */
export const GoalEnded = z.object({
  round: z.number(),
  outcome: z.enum(["met", "accepted", "not_met"]),
  reason: Text.optional(),
});
type GoalEnded = z.infer<typeof GoalEnded>;

const LINE = 200;

/** `goal: 1 of 3 criteria met (round 2 of 5)`. */
export const judgedLine = ({ round, rounds, verdicts }: GoalJudged): string => {
  const met = verdicts.filter(({ verdict }) => verdict === "met").length;
  return `goal: ${met} of ${verdicts.length} criteria met (round ${round} of ${rounds})`;
};

/** Goal of a run, read from its journal. */
export interface GoalView {
  criteria: readonly string[];
  /** The newest round; absent before the first. */
  judged?: GoalJudged;
  /** Its newest round in words, or its end; absent before the first round. */
  line?: string;
}

const ENDS = { met: "goal met", accepted: "goal accepted by a person", not_met: "goal not met" } as const;

/** `goal not met: all 5 rounds are used`. */
export const endedLine = ({ outcome, reason }: GoalEnded): string =>
  oneLine(ENDS[outcome] + (reason === undefined ? "" : `: ${reason}`), LINE);
