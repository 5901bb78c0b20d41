import { expect, test } from "vitest";
import { patientClock } from "../../src/core/clock.ts";

const MINUTE = 60_000;

function open() {
  const at = { clock: 1_000_000 * MINUTE, machine: 0 };
  const start = at.clock;
  const clock = patientClock(
    () => at.clock,
    () => at.machine,
  );
  /** Lets time pass, and sets the clock besides; gives the minutes that the patient clock counts. */
  const pass = (minutes: number, set = 0): number => {
    at.machine += minutes * MINUTE;
    at.clock += (minutes + set) * MINUTE;
    return (clock() - start) / MINUTE;
  };
  return pass;
}

test("goes on as before while a clock is ahead for some minutes", () => {
  const pass = open();
  expect([pass(1), pass(1, 525_600), pass(5), pass(1, -525_600), pass(1)]).toEqual([1, 2, 7, 8, 9]);
});

test("believes a clock that stays ahead", () => {
  const pass = open();
  expect([pass(1, 60), pass(9), pass(1), pass(1)]).toEqual([1, 10, 71, 72]);
});

test("follows a clock that is set back, small corrections, and the sleep of the machine", () => {
  const pass = open();
  expect([pass(1, -60), pass(1), pass(1, 0.5), pass(600)]).toEqual([-59, -58, -56.5, 543.5]);
});
