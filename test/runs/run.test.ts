import { expect, test } from "vitest";
import {
  FAILURE_REASONS,
  TRANSITIONS,
  type OpenStatus,
  type RunStatus,
  type Transition,
  breakOff,
  isFailureReason,
  isFinal,
} from "../../src/runs/run.ts";
import { settle } from "../../src/runs/sql/status.ts";

const OPEN: OpenStatus[] = ["working", "input_required"];
const ALL: RunStatus[] = [...OPEN, "completed", "failed", "cancelled"];

test("a run is over or goes on, and nothing follows an end", () => {
  expect(ALL.filter(isFinal)).toEqual(["completed", "failed", "cancelled"]);
  expect(Object.keys(TRANSITIONS)).toEqual(OPEN);
});

test("illegal transitions do not compile", () => {
  const legal: Transition[] = [
    { from: "working", to: "input_required" },
    { from: "input_required", to: "working" },
    { from: "working", to: "completed" },
    { from: "input_required", to: "cancelled" },
  ];
  // @ts-expect-error -- an approval that is still pending keeps a run from completing
  const pending: Transition = { from: "input_required", to: "completed" };
  // @ts-expect-error -- nothing follows an end
  const after: Transition = { from: "completed", to: "working" };
  // @ts-expect-error -- no status follows itself
  const same: Transition = { from: "working", to: "working" };
  const allowed = ({ from, to }: { from: string; to: string }) =>
    OPEN.some((open) => open === from && TRANSITIONS[open].some((next) => next === to));
  expect(legal.map(allowed)).toEqual([true, true, true, true]);
  expect([pending, after, same].map(allowed)).toEqual([false, false, false]);
});

test("an open run is input_required exactly while approvals are pending", () => {
  expect(settle("working", 0)).toBeUndefined();
  expect(settle("working", 2)).toEqual({ from: "working", to: "input_required" });
  expect(settle("input_required", 1)).toBeUndefined();
  expect(settle("input_required", 0)).toEqual({ from: "input_required", to: "working" });
});

test("an open run can fail and be cancelled from either status", () => {
  for (const from of OPEN) {
    for (const to of ["failed", "cancelled"] as const) {
      expect(breakOff(from, to)).toEqual({ from, to });
      expect(TRANSITIONS[from]).toContain(to);
    }
  }
});

test("failure reasons are known by name", () => {
  expect(FAILURE_REASONS.every(isFailureReason)).toBe(true);
  expect(isFailureReason("bad_luck")).toBe(false);
});
