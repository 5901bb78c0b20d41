import { expect, test } from "vitest";
import { diffLines } from "../../src/core/diff.ts";
import { entryOf, isEvent } from "../../src/runs/events.ts";
import { fileDiff } from "../../src/tools/diff-preview.ts";

const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `a line with number ${index + 1}\n`).join("");

test("the journal keeps the beginning of a long diff, and counts all of it", () => {
  const change = fileDiff({ path: "/a", before: undefined, after: lines(3000) });
  const { data } = entryOf({ kind: "file_changed", agent: [], callId: "c", path: "/a", ...change });
  const { diff = "", ...rest } = data as { diff?: string };
  expect(rest).toEqual({ callId: "c", path: "/a", added: 3000, removed: 0 });
  expect(diff.length).toBeLessThan(16_100);
  const shown = diffLines(diff).filter(({ kind }) => kind === "add");
  expect(shown.at(-1)?.text).toBe(`+a line with number ${shown.length}`);
  expect(diff.endsWith(`\n[diff cut: ${3000 - shown.length} lines more not shown]`)).toBe(true);
});

test("rows of earlier versions have no counts", () => {
  const data = { callId: "c", path: "/a", diff: "@@ one place @@\n-a\n+b" };
  expect(isEvent({ kind: "file_changed", data })).toBe(true);
  expect(isEvent({ kind: "file_changed", data: { ...data, added: 1, removed: 1 } })).toBe(true);
  expect(isEvent({ kind: "file_changed", data: { ...data, added: "1" } })).toBe(false);
});
