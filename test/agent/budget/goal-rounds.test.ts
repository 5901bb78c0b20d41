import { describe, expect, it } from "vitest";
import { afterRound, saysTheSame } from "../../../src/agent/budget/goal-rounds.ts";
import type { GoalState } from "../../../src/agent/contracts/goal.ts";
import type { Verdict } from "../../../src/core/criteria.ts";

const rules = { criteria: ["One", "Two"], rounds: 10 };

/** The states after rounds with these verdicts about both criteria, each with its evidence. */
function after(rounds: ReadonlyArray<ReadonlyArray<[Verdict, string]>>, canAsk = true): GoalState[] {
  const states: GoalState[] = [];
  for (const round of rounds) {
    const verdicts = round.map(([verdict, evidence], index) => ({
      criterion: rules.criteria[index] ?? "",
      verdict,
      evidence,
    }));
    states.push(afterRound(states.at(-1), { run: "run_1", verdicts }, rules, canAsk));
  }
  return states;
}

describe("rounds of a goal", () => {
  it("stall when no criterion is met for the first time and the evidence stays", () => {
    const same: [Verdict, string][] = [
      ["met", "seen"],
      ["not_met", "no file"],
    ];
    expect(after([same, same, same, same]).map(({ status, stalled }) => [status, stalled])).toEqual([
      ["open", 0],
      ["open", 1],
      ["open", 2],
      ["asked", 3],
    ]);
    expect(after([same, same, same, same], false).at(-1)?.status).toBe("not_met");
  });

  it("stall although criteria are met and lost again in turn", () => {
    const one: [Verdict, string][] = [
      ["met", "seen"],
      ["not_met", "no file"],
    ];
    const none: [Verdict, string][] = [
      ["not_met", "no line"],
      ["not_met", "no file"],
    ];
    expect(after([one, none, one, none, one]).map(({ stalled }) => stalled)).toEqual([0, 1, 2, 3, 4]);
  });

  it("make progress with other evidence", () => {
    const failing = (count: number): [Verdict, string][] => [
      ["not_met", `${count} of 9 tests fail`],
      ["met", "seen"],
    ];
    expect(after([failing(5), failing(4), failing(4), failing(2)]).map(({ stalled }) => stalled)).toEqual([
      0, 0, 1, 0,
    ]);
  });
});

it.each([
  ["There is no file /report.md.", "The file /report.md is missing: there is none.", true],
  ["3 of 5 tests fail", "2 of 5 tests fail", false],
  ["The table has no owners", "Sources of all numbers are absent", false],
  ["", "", true],
  ["", "no file", false],
])("evidence %j and %j state the same: %j", (one, other, isSame) => {
  expect(saysTheSame(one, other)).toBe(isSame);
  expect(saysTheSame(other, one)).toBe(isSame);
});
