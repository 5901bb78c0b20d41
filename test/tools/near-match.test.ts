import { describe, expect, it } from "vitest";
import { nearestLines } from "../../src/tools/edit-file.ts";

const FILE = "first\r\n\tlet a = 'b';  \r\n  return a – 1;\r\nend of the  function\r\n";

describe("nearestLines", () => {
  it.each([
    [
      "blanks at the end",
      "\tlet a = 'b';",
      "Line 2 of the file differ in blanks at the ends of lines:\n\tlet a = 'b';  ",
    ],
    [
      "tabs",
      "    let a = 'b';",
      "Line 2 of the file differ in tabs and spaces at the beginning of lines:\n\tlet a = 'b';  ",
    ],
    ["quotes", '\tlet a = "b";', "Line 2 of the file differ in quotes or dashes:\n\tlet a = 'b';  "],
    ["dashes", "  return a - 1;", "Line 3 of the file differ in quotes or dashes:\n  return a – 1;"],
    [
      "blanks inside",
      "end of the function",
      "Line 4 of the file differ in the number of blanks:\nend of the  function",
    ],
    ["letter case", "First", "Line 1 of the file differ in upper and lower case, quotes and blanks:\nfirst"],
    [
      "several lines",
      "\n  let a = 'b';\n  return a - 1;\n",
      "Lines 2 to 3 of the file differ in quotes, dashes, tabs and blanks:\n\tlet a = 'b';  \n  return a – 1;",
    ],
    [
      "the number of read_file",
      "2\tlet a = 'b';",
      "Line 2 of the file differ in the number before the line, which read_file adds:\n\tlet a = 'b';  ",
    ],
    [
      "letta-ai/letta-code#962",
      String.raw`first\n\tlet a = \'b\';`,
      "The text is in the file, but escaped once too often here: write line breaks, tabs, quotes and backslashes as they are.",
    ],
    [
      "a part of a line",
      "of the  func",
      "Line 4 of the file is alike, but not the same:\nend of the  function",
    ],
    [
      "one of several lines",
      "nothing like it\nlet a = 'b';\nfoo",
      "Lines 1 to 3 of the file are alike, but not the same:\nfirst\n\tlet a = 'b';  \n  return a – 1;",
    ],
  ])("tells %s", (_name, missing, told) => {
    expect(nearestLines(FILE, missing)).toBe(told.replace(/^(Line \d+ of the file) differ /, "$1 differs "));
  });

  it.each(["zzz", "", " \n ", "let a = c", "\u0000"])("finds nothing like %j", (missing) => {
    expect(nearestLines(FILE, missing)).toBeUndefined();
  });

  it("shows the beginning of long places", () => {
    const many = Array.from({ length: 30 }, (_, index) => ` line ${index} ${"x".repeat(500)}`);
    const told = nearestLines(many.join("\n"), many.map((line) => line.trim()).join("\n")) ?? "";
    expect(told).toContain("Lines 1 to 30 of the file differ in tabs");
    expect(told.length).toBeLessThan(2000);
  });
});
