/** Decides how a goal continues after a judged round: another round, a question to a person, or the end. */
import type { CriterionVerdict, GoalRules, GoalState, GoalStatus } from "../contracts/goal.ts";

/** Rounds in a row without progress after which a person is asked. */
const STALLED_ROUNDS = 3;

/** Returns the goal state after a round. `canAsk`: a person can be asked; otherwise the goal fails instead. */
export function afterRound(
  before: GoalState | undefined,
  { run, verdicts }: Pick<GoalState, "run" | "verdicts">,
  { criteria, rounds }: GoalRules,
  canAsk: boolean,
): GoalState {
  const round = (before?.round ?? 0) + 1;
  const met = verdicts.filter(({ verdict }) => verdict === "met").map(({ criterion }) => criterion);
  const everMet = [...new Set([...(before?.everMet ?? []), ...met])];
  // A criterion was met for the first time, or the evidence about one that is not met has changed.
  const isNews = ({ criterion, verdict, evidence }: CriterionVerdict): boolean => {
    const earlier = before?.verdicts.find((one) => one.criterion === criterion);
    return verdict !== "met" && earlier?.verdict !== "met" && !saysTheSame(earlier?.evidence ?? "", evidence);
  };
  const hasProgress = everMet.length > (before?.everMet.length ?? 0) || verdicts.some(isNews);
  const stalled = before === undefined || hasProgress ? 0 : before.stalled + 1;
  const state = { run, round, verdicts, everMet, stalled };
  const stopped = (reason: string): GoalState => ({ ...state, status: canAsk ? "asked" : "not_met", reason });
  const unsettled = verdicts.filter(({ verdict }) => verdict === "impossible" || verdict === "uncertain");
  if (met.length === criteria.length) return { ...state, status: "met" };
  const all = criteria.length === 1 ? "1 criterion" : `${criteria.length} criteria`;
  if (unsettled.length > 0) return stopped(`the judge couldn't verify ${unsettled.length} of ${all}`);
  if (round >= rounds) return { ...state, status: "not_met", reason: roundsUsed(rounds) };
  if (stalled >= STALLED_ROUNDS) return stopped(`the last ${STALLED_ROUNDS} rounds made no progress`);
  return { ...state, status: "open" };
}

export const roundsUsed = (rounds: number): string =>
  rounds === 1 ? "the only round is used" : `all ${rounds} rounds are used`;

/** Sets the final status of a goal that a person or a limit ended. */
export const settled = (state: GoalState, status: GoalStatus, reason?: string): GoalState => {
  const { reason: _before, ...rest } = state;
  return { ...rest, status, ...(reason === undefined ? {} : { reason }) };
};

/**
 * True if two texts state the same facts: the same numbers, and at least half of the shorter text's words. Models
 * hardly ever use the same words twice.
 */
export function saysTheSame(one: string, other: string): boolean {
  const [few = [], many = []] = [factWords(one), factWords(other)].toSorted((a, b) => a.length - b.length);
  const numbers = (words: readonly string[]): string => words.filter((word) => /^\d/.test(word)).join(" ");
  if (numbers(few) !== numbers(many)) return false;
  const known = new Set(many);
  const shared = few.filter((word) => known.has(word)).length;
  return few.length === 0 ? many.length === 0 : shared * 2 >= few.length;
}

/** The different words of a text in alphabetical order. */
const factWords = (text: string): string[] =>
  [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])].sort();
