/** The allowed orders of calls that decide on one request, by several people on several servers. */

/** A call that somebody made about a request, and its outcome; without one, nobody knows it. */
export interface DecisionCall {
  runId: string;
  requestId: string;
  given: string;
  beganAt: number;
  endedAt: number;
  outcome?: string;
}

/** Searches an order of the calls that explains their outcomes. `stored`: the answer in the end, if any. */
export function isLinearizable(calls: readonly DecisionCall[], stored: string | undefined): boolean {
  const step = (left: readonly DecisionCall[], answer: string | undefined): boolean => {
    if (left.length === 0) return answer === undefined || stored === undefined || sameAnswer(answer, stored);
    const earliestEnd = Math.min(
      ...left.map(({ outcome, endedAt }) => (outcome === undefined ? Infinity : endedAt)),
    );
    return left.some((call) => {
      if (call.beganAt > earliestEnd) return false;
      const rest = left.filter((one) => one !== call);
      if (call.outcome === undefined)
        return step(rest, answer) || (answer === undefined && step(rest, call.given));
      if (call.outcome === "stored") return answer === undefined && step(rest, call.given);
      if (call.outcome === "repeated")
        return answer !== undefined && sameAnswer(answer, call.given) && step(rest, answer);
      // Refused: another answer stands, or the request was withdrawn.
      return step(rest, answer);
    });
  };
  return step(calls, undefined);
}

const sameAnswer = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((text) => JSON.parse(text) as { type: string; values?: unknown });
  return a?.type === b?.type && JSON.stringify(a?.values) === JSON.stringify(b?.values);
};
