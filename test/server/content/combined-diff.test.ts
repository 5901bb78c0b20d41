import { applyPatch } from "diff";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { diffCounts } from "../../../src/server/views/content/diff.ts";
import { combinedDiff } from "../../../src/server/views/content/combined-diff.ts";
import { fileDiff, replacementDiff } from "../../../src/tools/diff-preview.ts";

const PATH = "/workspace/src/a.js";
const change = (before: string | undefined, after: string): string =>
  fileDiff({ path: PATH, before, after }).diff;
/** The changes from each text to the next. */
const chain = (first: string | undefined, ...texts: readonly string[]): string[] =>
  texts.map((after, index) => change(index === 0 ? first : texts[index - 1], after));
const lines = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");

const line = fc.constantFrom("a", "b", "c", "", "  d", "-", "+ e", "\\ f", "@@ -1 +1 @@", "--- g", "潮汐 🛰️");
const text = fc
  .tuple(fc.array(line, { maxLength: 40 }), fc.boolean())
  .map(([all, isEnded]) => all.join("\n") + (isEnded && all.length > 0 ? "\n" : ""));
/** Another text, mostly the same. */
const edited = (before: string) =>
  fc.array(fc.tuple(fc.nat(), fc.nat(4), fc.array(line, { maxLength: 4 })), { maxLength: 3 }).map((edits) => {
    const all = before.split("\n");
    for (const [at, removed, added] of edits) all.splice(at % (all.length + 1), removed, ...added);
    return all.join("\n");
  });
const history = text.chain((first) =>
  edited(first).chain((second) =>
    edited(second).chain((third) => edited(third).map((last) => [first, second, third, last] as const)),
  ),
);

test("changes in any number of steps are one change that leads from the first text to the last", () => {
  fc.assert(
    fc.property(history, ([first, ...others]) => {
      const joined = combinedDiff(chain(first, ...others));
      expect(joined).toBeDefined();
      const { diff = "", added, removed } = joined ?? {};
      const last = others.at(-1) ?? "";
      expect({ added, removed }).toEqual(diffCounts(diff));
      expect(diff.endsWith("[content unchanged]") ? first : applyPatch(first, diff)).toBe(last);
    }),
    { numRuns: 300 },
  );
});

test("lines that came back are not in it, and changes side by side are one", () => {
  const first = lines(1, 40);
  const [second, third] = [first.replace("line 20\n", "other\n"), first.replace("line 23\n", "new\nnewer\n")];
  const joined = combinedDiff(chain(first, second, third));
  expect(joined).toEqual({
    diff: [
      `--- ${PATH}`,
      `+++ ${PATH}`,
      "@@ -20,7 +20,8 @@",
      " line 20",
      " line 21",
      " line 22",
      "-line 23",
      "+new",
      "+newer",
      " line 24",
      " line 25",
      " line 26",
    ].join("\n"),
    added: 2,
    removed: 1,
  });
  expect(combinedDiff(chain(first, second, first))).toEqual({
    diff: `--- ${PATH}\n+++ ${PATH}\n[content unchanged]`,
    added: 0,
    removed: 0,
  });
});

test("a new file is all added, however often it was changed", () => {
  const joined = combinedDiff(chain(undefined, "one\ntwo\n", "one\n2\nthree"));
  expect(joined?.diff).toBe(
    `--- /dev/null\n+++ ${PATH}\n@@ -0,0 +1,3 @@\n+one\n+2\n+three\n\\ No newline at end of file`,
  );
});

test("what does not fit together is not joined", () => {
  const first = lines(1, 400);
  const edit = change(first, first.replace("line 9\n", "nine\n"));
  const unplaced = replacementDiff({ path: PATH, before: "line 9", after: "nine" }, false).diff;
  const other = change(first, first.replace("line 10\n", "ten\n"));
  const long = change("", "x".repeat(300_000));
  expect(combinedDiff([])).toBeUndefined();
  expect(combinedDiff([edit, unplaced])).toBeUndefined();
  // The second one was made of a file without the first.
  expect(combinedDiff([edit, other])).toBeUndefined();
  expect(combinedDiff([edit, change(undefined, "new\n")])).toBeUndefined();
  expect(combinedDiff([long])).toBeUndefined();
  expect(combinedDiff([`${edit}\n[diff cut: 3 lines more not shown]`])).toBeUndefined();
});

test("blanks at the ends of lines do not keep changes apart", () => {
  const [first, second] = ["a  \nb\t\nc\n", "a  \nb\t\nc \nd\n"];
  const joined = combinedDiff(chain(first, second, second.replace("b\t\n", "b\n")));
  expect(joined?.diff.split("\n").slice(3)).toEqual([" a  ", "-b→", "-c", "+b", "+c·", "+d"]);
});
