import { createTwoFilesPatch } from "diff";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutDiff, diffLines } from "../../src/core/diff.ts";
import { diffCounts } from "../../src/server/views/content/diff.ts";

/** Such as `-3 old`, ` 2/2 same` or `# note`. */
const told = (diff: string): string[] =>
  diffLines(diff).map(({ kind, text, oldLine, newLine }) =>
    kind === "add" || kind === "del" || kind === "context"
      ? `${oldLine ?? ""}/${newLine ?? ""}${text}`
      : `${kind}: ${text}`,
  );

describe("diffLines", () => {
  test("numbers the lines of each hunk and knows where it ends", () => {
    const diff = [
      "--- /a",
      "+++ /a",
      "@@ -2,3 +2,3 @@",
      " two",
      "--- three",
      "+++ four",
      " five",
      "@@ -9 +9,2 @@ a heading",
      "+nine",
      " ten",
      "\\ No newline at end of file",
      "--- /b",
      "@@ -0,0 +1,1 @@",
      "+one",
      "[diff cut: 3 lines more not shown]",
    ];
    expect(told(diff.join("\n"))).toEqual([
      "file: --- /a",
      "file: +++ /a",
      "hunk: @@ -2,3 +2,3 @@",
      "2/2 two",
      "3/--- three",
      "/3+++ four",
      "4/4 five",
      "hunk: @@ -9 +9,2 @@ a heading",
      "/9+nine",
      "9/10 ten",
      "note: \\ No newline at end of file",
      "file: --- /b",
      "hunk: @@ -0,0 +1,1 @@",
      "/1+one",
      "note: [diff cut: 3 lines more not shown]",
    ]);
  });

  test("has no numbers in a hunk that has none, nor behind the place where one was cut", () => {
    expect(told("@@ one place @@\n-a\n+b\n c\n\nx")).toEqual([
      "hunk: @@ one place @@",
      "/-a",
      "/+b",
      "/ c",
      "note: ",
      "note: x",
    ]);
    const cut = "@@ -1,9 +1,9 @@\n a\n[… 5 of 9 characters not shown …]\n b\n-c\n@@ -20,1 +20,1 @@\n d";
    expect(told(cut).slice(1)).toEqual([
      "1/1 a",
      "note: [… 5 of 9 characters not shown …]",
      "/ b",
      "/-c",
      "hunk: @@ -20,1 +20,1 @@",
      "20/20 d",
    ]);
  });

  test("its numbers are those of the files, whatever these hold", () => {
    const line = fc.constantFrom("a", "b", "", "-- x", "++ y", "@@ -1 +1 @@", "\\ z", "[diff cut: 1 line]");
    const file = fc.array(line, { maxLength: 30 }).map((lines) => lines.map((each) => `${each}\n`).join(""));
    fc.assert(
      fc.property(file, file, (before, after) => {
        const [old, now] = [before.split("\n"), after.split("\n")];
        const patch = createTwoFilesPatch("f", "f", before, after).trimEnd();
        for (const { kind, text, oldLine, newLine } of diffLines(patch)) {
          if (kind === "del" || kind === "context") expect(old[(oldLine ?? 0) - 1]).toBe(text.slice(1));
          if (kind === "add" || kind === "context") expect(now[(newLine ?? 0) - 1]).toBe(text.slice(1));
        }
      }),
    );
  });
});

test("diffCounts counts changed lines, not the header", () => {
  expect(diffCounts("--- /a\n+++ /a\n@@ -1,2 +1,3 @@\n-- a\n+b\n++ c\n d")).toEqual({ added: 2, removed: 1 });
});

describe("cutDiff", () => {
  const diff = "--- /a\n+++ /a\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d";

  test("cuts between lines and says how many are missing", () => {
    expect(cutDiff(diff, diff.length)).toBe(diff);
    expect(cutDiff(diff, diff.length - 4)).toBe(
      "--- /a\n+++ /a\n@@ -1,3 +1,3 @@\n a\n-b\n[diff cut: 2 lines more not shown]",
    );
  });

  test("adds up what was missing before", () => {
    const once = cutDiff(diff, diff.length - 1);
    expect(once.endsWith("\n+c\n[diff cut: 1 line more not shown]")).toBe(true);
    expect(cutDiff(once, 34)).toBe("--- /a\n+++ /a\n@@ -1,3 +1,3 @@\n a\n[diff cut: 3 lines more not shown]");
  });
});
