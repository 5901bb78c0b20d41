import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  displayName,
  displayText,
  formatPage,
  isWellFormed,
  numberLine,
  pageFooter,
  splitLine,
  splitLines,
  wellFormed,
} from "../../src/tools/format.ts";

const UNLIMITED = { maxLineChars: 10_000, maxChars: undefined };

describe("names", () => {
  test.each([
    ["/a\nb", "/a\\nb"],
    ["/tab\tcr\r", "/tab\\tcr\\r"],
    ["/bell\u0007\u001b[31m", "/bell\\u0007\\u001b[31m"],
    ["/right\u202eto-left", "/right\\u202eto-left"],
    ["/half\ud83d", "/half\\ud83d"],
    ["/whole 😀 한글 'quoted'", "/whole 😀 한글 'quoted'"],
  ])("%j is shown as %s", (name, shown) => {
    expect(displayName(name)).toBe(shown);
  });

  test("the shown form, typed into a JSON string, is the name again", () => {
    const name = fc.string({ unit: "binary" }).filter((text) => !/["\\]/.test(text));
    fc.assert(
      fc.property(name, (text) => {
        expect(JSON.parse(`"${displayName(text)}"`)).toBe(text);
      }),
    );
  });

  test("a text keeps its line breaks and tabs", () => {
    expect(displayText("a\n\tb\u001b[2J\u202e")).toBe("a\n\tb\\u001b[2J\\u202e");
  });
});

describe("surrogates", () => {
  test("halves are replaced, pairs stay", () => {
    expect(wellFormed("a\ud83db 😀 \ude00")).toBe("a\ufffdb 😀 \ufffd");
    expect(isWellFormed("😀")).toBe(true);
    expect(isWellFormed("\ude00\ud83d")).toBe(false);
  });
});

describe("long lines", () => {
  test("pieces are the line, none too long, none ending inside a character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 2, max: 9 }), (text, size) => {
        const pieces = splitLine(text, size);
        expect(pieces.join("")).toBe(text);
        expect(pieces.every((piece) => piece.length <= size)).toBe(true);
        expect(pieces.every(isWellFormed)).toBe(true);
      }),
    );
  });

  test("numbers take six columns, pieces of a line are numbered below it", () => {
    expect(numberLine("abcdef", 12, 10)).toEqual(["    12\tabcdef"]);
    expect(numberLine("abcdef", 12, 4)).toEqual(["    12\tabcd", "  12.1\tef"]);
    expect(numberLine("a".repeat(25_000), 1_234_567, 10_000)).toEqual([
      `1234567\t${"a".repeat(10_000)}`,
      `1234567.1\t${"a".repeat(10_000)}`,
      `1234567.2\t${"a".repeat(5000)}`,
    ]);
    expect(numberLine("", 1, 10)).toEqual(["     1\t"]);
  });
});

describe("splitLines", () => {
  test.each([
    ["a\nb", undefined, ["a", "b"]],
    ["a\nb\n", undefined, ["a", "b"]],
    ["a\n\n", undefined, ["a", ""]],
    ["a\r\nb\r\n", undefined, ["a", "b"]],
    ["\n", 1, [""]],
    ["a\n", 2, ["a", ""]],
    ["a\n\n", 2, ["a", ""]],
    ["a\rb", 1, ["a\rb"]],
  ])("%j with count %s", (content, count, lines) => {
    expect(splitLines(content, count)).toEqual(lines);
  });
});

describe("pages", () => {
  test("the whole of a short file has no footer", () => {
    expect(formatPage({ lines: ["a", "b"], start: 0, total: 2, more: false }, UNLIMITED)).toEqual({
      text: "     1\ta\n     2\tb",
      end: 2,
    });
  });

  test("a footer names the next offset", () => {
    expect(formatPage({ lines: ["k", "l"], start: 10, total: 20, more: true }, UNLIMITED)).toEqual({
      text: "    11\tk\n    12\tl\n\n[lines 11-12 of 20; continue with offset=12]",
      end: 12,
      nextOffset: 12,
    });
    expect(pageFooter(0, 5, undefined)).toBe("[lines 1-5; continue with offset=5]");
  });

  test("pieces of a long line do not count as lines", () => {
    const page = formatPage(
      { lines: ["abcdef", "g"], start: 0, total: 3, more: true },
      { maxLineChars: 4, maxChars: undefined },
    );
    expect(page.text).toBe("     1\tabcd\n   1.1\tef\n     2\tg\n\n[lines 1-2 of 3; continue with offset=2]");
  });

  test("output over the limit is cut on a line end and stays below it", () => {
    const line = "x".repeat(93); // 100 characters with its number
    const page = formatPage(
      { lines: Array.from({ length: 50 }, () => line), start: 0, total: 50, more: false },
      { maxLineChars: 10_000, maxChars: 2000 },
    );
    expect(page.text.length).toBeLessThanOrEqual(2000);
    expect(page.end).toBeGreaterThan(10);
    expect(page.nextOffset).toBe(page.end);
    expect(page.text.endsWith(`\n\n[lines 1-${page.end} of 50; continue with offset=${page.end}]`)).toBe(
      true,
    );
    expect(page.text.split("\n")[page.end - 1]).toBe(`${String(page.end).padStart(6)}\t${line}`);
  });

  test("one line larger than the output is cut, which the footer says, and paging goes on after it", () => {
    const page = formatPage(
      { lines: ["y".repeat(5000), "next"], start: 0, total: 2, more: false },
      { maxLineChars: 500, maxChars: 2000 },
    );
    expect(page.text.length).toBeLessThanOrEqual(2000);
    expect(page.text).toContain(
      "\n\n[line 1 has 5000 characters, the first 1500 are shown; find text in the rest with grep]\n[lines 1-1 of 2; continue with offset=1]",
    );
    expect(page.text.split("\n").slice(0, 3)).toEqual([
      `     1\t${"y".repeat(500)}`,
      `   1.1\t${"y".repeat(500)}`,
      `   1.2\t${"y".repeat(500)}`,
    ]);
    expect(page.nextOffset).toBe(1);
  });

  test("a first piece larger than the output is cut, too, and not inside a character", () => {
    const page = formatPage(
      { lines: ["😀".repeat(3000)], start: 0, total: 1, more: false },
      { maxLineChars: 10_000, maxChars: 2000 },
    );
    expect(page.text.length).toBeLessThanOrEqual(2000);
    expect(isWellFormed(page.text)).toBe(true);
    expect(page.nextOffset).toBeUndefined();
  });
});
