import { applyPatch } from "diff";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type TextChange, fileDiff, replacementDiff, wholeDiff } from "../../src/tools/diff-preview.ts";

const unifiedDiff = (change: TextChange): string => fileDiff(change).diff;

const numbered = (count: number, text = "line"): string =>
  Array.from({ length: count }, (_, index) => `${text} ${index + 1}\n`).join("");

describe("unifiedDiff", () => {
  test("a new file", () => {
    expect(unifiedDiff({ path: "/a.md", before: undefined, after: "one\ntwo" })).toBe(
      "--- /dev/null\n+++ /a.md\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file",
    );
    expect(unifiedDiff({ path: "/a.md", before: undefined, after: "" })).toBe(
      "--- /dev/null\n+++ /a.md\n[content unchanged]",
    );
  });

  test("a change with three lines of context", () => {
    const before = numbered(9);
    expect(unifiedDiff({ path: "/한글.md", before, after: before.replace("line 5", "LINE 5") })).toBe(
      [
        "--- /한글.md",
        "+++ /한글.md",
        "@@ -2,7 +2,7 @@",
        " line 2",
        " line 3",
        " line 4",
        "-line 5",
        "+LINE 5",
        " line 6",
        " line 7",
        " line 8",
      ].join("\n"),
    );
  });

  test("what it shows of a small change, applied, is the change", () => {
    const text = fc
      .array(fc.constantFrom("a", "b", "", "c c", "$&", "-x", "+y"), { maxLength: 12 })
      .chain((lines) => fc.boolean().map((end) => lines.join("\n") + (end ? "\n" : "")));
    fc.assert(
      fc.property(text, text, (before, after) => {
        fc.pre(before !== after);
        expect(applyPatch(before, unifiedDiff({ path: "/f", before, after }))).toBe(after);
      }),
    );
  });

  test("many changes give one coarse replacement that is still the change", () => {
    const before = `${numbered(5, "same")}${numbered(1200, "old")}${numbered(5, "end")}`;
    const after = `${numbered(5, "same")}${numbered(1200, "new")}${numbered(5, "end")}`;
    const lines = unifiedDiff({ path: "/f", before, after }).split("\n");
    expect(lines.slice(2, 8)).toEqual([
      "@@ -3,1206 +3,1206 @@",
      " same 3",
      " same 4",
      " same 5",
      "-old 1",
      "-old 2",
    ]);
    expect(lines.at(-1)).toBe("[diff cut: 1407 lines more not shown]");
    expect(lines).toHaveLength(2 + 1000 + 1);
  });

  test("line breaks do not show, other control characters do", () => {
    const diff = unifiedDiff({ path: "/f", before: "a\r\nb\r\n", after: "a\r\n\u001b[2J\u202eb\r\n" });
    expect(diff).toContain("\n a\n-b\n+\\u001b[2J\\u202eb");
    expect(diff).not.toContain("\\r");
  });

  test("a change of line ends is a change of each line, and is counted", () => {
    const diff = unifiedDiff({ path: "/f", before: "a\nb\nc\n", after: "a\r\nb\r\nc\n" });
    expect(diff.split("\n").slice(2)).toEqual([
      "[line endings change from LF to CRLF in 2 lines]",
      "@@ -1,3 +1,3 @@",
      "-a",
      "-b",
      String.raw`+a\r`,
      String.raw`+b\r`,
      " c",
    ]);
    const back = unifiedDiff({ path: "/f", before: "a\r\nb\r\n", after: "a\nb\r\n" });
    expect(back).toContain("[line endings change from CRLF to LF in 1 line]");
    expect(unifiedDiff({ path: "/f", before: undefined, after: "a\r\nb" })).toContain(
      "+++ /f\n[each line ends with CRLF]\n",
    );
  });

  test("no change of bytes is shown as none, and none has the same effect as another", () => {
    const pieces = fc.constantFrom("a", "\r", "\n", "\r\n", " ", "\t", "\ufeff", "\u200b", "·", "→");
    const text = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, text, text, (before, after, other) => {
        fc.pre(before !== after && after !== other);
        const shown = wholeDiff({ path: "/f", before, after });
        expect(shown.diff).not.toContain("[content unchanged]");
        expect(shown.isWhole).toBe(true);
        expect(shown.effect()).not.toEqual(wholeDiff({ path: "/f", before, after: other }).effect());
      }),
      { numRuns: 2000 },
    );
  });

  test("a preview shows a changed line whole as long as all of it can be read, and says when it does not", () => {
    const line = `${"x".repeat(30_000)}\n`;
    const whole = wholeDiff({ path: "/f", before: undefined, after: line });
    expect(whole.isWhole).toBe(true);
    expect(whole.diff).toContain(`+${line.trim()}`);
    expect(wholeDiff({ path: "/f", before: undefined, after: line.repeat(2) }).isWhole).toBe(false);
    expect(wholeDiff({ path: "/f", before: undefined, after: "a\n".repeat(1001) }).isWhole).toBe(false);
  });

  test("long lines and long diffs are cut, which they say", () => {
    const diff = unifiedDiff({ path: "/f", before: undefined, after: `${"x".repeat(5000)}\n` });
    expect(diff).toContain(`+${"x".repeat(1999)} [3001 characters more not shown]`);
    const many = unifiedDiff({ path: "/f", before: undefined, after: `${"y".repeat(1900)}\n`.repeat(100) });
    expect(many.length).toBeLessThan(41_000);
    expect(many).toMatch(/\n\[diff cut: 79 lines more not shown\]$/);
  });
});

describe("a change that is too long to compare", () => {
  const long = `${numbered(2, "same")}${"\n".repeat(20_000)}${numbered(2, "end")}`;
  const change = { path: "/f", before: long, after: `${numbered(2, "same")}new\n${numbered(2, "end")}` };

  test("shows how long it is and the beginning of both sides, however long the first is", () => {
    const lines = unifiedDiff(change).split("\n");
    expect(lines.slice(0, 5)).toEqual([
      "--- /f",
      "+++ /f",
      "@@ from line 1: 20026 characters become 30; only the beginning of each is shown @@",
      "-same 1",
      "-same 2",
    ]);
    expect(lines.slice(2 + 1 + 500)).toEqual([
      "[more of it is not shown]",
      "+same 1",
      "+same 2",
      "+new",
      "+end 1",
      "+end 2",
    ]);
  });

  test("shows a short change of a long file with the lines around it, and where it is", () => {
    const before = numbered(50_000, "x".repeat(90));
    const after = before.replace("x 40001\n", "y 40001\n");
    const lines = unifiedDiff({ path: "/f", before, after }).split("\n");
    expect(lines[2]).toBe("@@ -39998,7 +39998,7 @@");
    expect(lines.slice(3).map((line) => line.slice(0, 3))).toEqual([
      ...Array<string>(3).fill(" xx"),
      "-xx",
      "+xx",
      ...Array<string>(3).fill(" xx"),
    ]);
  });

  test("is bound to all of it, not only to what is shown", () => {
    const other = { ...change, before: long.replace("\nend 1", "x\nend 1") };
    expect(wholeDiff(other).diff).not.toBe(wholeDiff(change).diff);
    const [shown, longer] = [
      { ...change, before: `${long}a\n` },
      { ...change, before: `${long}b\n` },
    ];
    expect(wholeDiff(shown).diff).toBe(wholeDiff(longer).diff);
    expect(wholeDiff(shown).effect()).not.toEqual(wholeDiff(longer).effect());
    expect(wholeDiff(shown).effect()).toEqual(wholeDiff({ ...shown }).effect());
  });
});

describe("counts", () => {
  const counts = (before: string | undefined, after: string) => {
    const { added, removed } = fileDiff({ path: "/f", before, after });
    return [added, removed];
  };

  test("are those of the whole change, however much of it is shown", () => {
    expect(counts("a\nb\n", "a\nc\nd\n")).toEqual([2, 1]);
    expect(counts(undefined, "a\nb")).toEqual([2, 0]);
    expect(counts("-- a\n", "++ a\n")).toEqual([1, 1]);
    expect(counts(numbered(3000, "old"), numbered(4000, "new"))).toEqual([4000, 3000]);
    expect(counts("a\n", "a\n")).toEqual([0, 0]);
  });

  test("are those of the lines that differ when they are too many to compare", () => {
    const [before, after] = [numbered(20_000, "old"), numbered(30_000, "new")];
    expect(counts(`same\n${before}end\n`, `same\n${after}end\n`)).toEqual([30_000, 20_000]);
  });
});

describe("replacementDiff", () => {
  test("says where instead of line numbers, and does not speak of the end of the file", () => {
    const change = { path: "/a.md", before: "const a = 1;", after: "const a = 2;\nconst b = 3;" };
    const diff = (place: string) =>
      `--- /a.md\n+++ /a.md\n@@ ${place} @@\n-const a = 1;\n+const a = 2;\n+const b = 3;`;
    expect(replacementDiff(change, false)).toEqual({ diff: diff("one place"), added: 2, removed: 1 });
    expect(replacementDiff(change, true)).toEqual({ diff: diff("every occurrence") });
  });

  test("text that looks like a hunk stays as it is", () => {
    const change = { path: "/a", before: "@@ -1 +1 @@\n\\ x\n", after: "@@ -2 +2 @@\n\\ x\n" };
    expect(replacementDiff(change, false).diff.split("\n").slice(3)).toEqual([
      "-@@ -1 +1 @@",
      "+@@ -2 +2 @@",
      " \\ x",
    ]);
  });
});
