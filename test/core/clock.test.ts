import { expect, it } from "vitest";
import { START_NOTE, startNote, timeZone } from "../../src/core/clock.ts";

it("tells the date, the time zone and the platform, and is found again at the end of a task", () => {
  const note = startNote(Date.UTC(2026, 1, 3, 12));
  expect(note).toMatch(/^\[Started on \w+day, 2026-02-0[234], \d\d:00, time zone .+, on \w+\]$/);
  expect(note).toContain(timeZone());
  expect(`Count ducks.\n\n${note}`.replace(START_NOTE, "")).toBe("Count ducks.");
  expect(`${note}\n\nCount ducks.`.replace(START_NOTE, "")).toContain("Started on");
});
