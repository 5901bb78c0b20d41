/** Criteria that the work must meet, and the findings of a judge about them. */
import type { Verdict } from "../../core/criteria.ts";

export interface CriterionVerdict {
  criterion: string;
  verdict: Verdict;
  /** Facts that the verdict rests on. */
  evidence: string;
  /** Work that is left to do; absent if the judge names none. */
  missing?: string;
}

/**
 * `open`: the agent works on. `asked`: a person decides. The others end the run: a judge found every criterion met, a
 * person accepted the result, or the goal failed.
 */
export type GoalStatus = "open" | "asked" | "met" | "accepted" | "not_met";

/** The goal of one run, as judged so far. */
export interface GoalState {
  /** Message that began the run. */
  run: string;
  round: number;
  /** The newest round, one verdict for each criterion in their order. */
  verdicts: readonly CriterionVerdict[];
  /** Criteria that were met in any round. */
  everMet: readonly string[];
  /** Rounds in a row without progress. */
  stalled: number;
  status: GoalStatus;
  /** Why a person is asked, or why the goal failed. */
  reason?: string;
}

export interface GoalRules {
  criteria: readonly string[];
  rounds: number;
}
