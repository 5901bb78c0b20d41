import { displayName, displayText, wellFormed } from "../../src/core/text.ts";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { numberLine, splitLine, splitLines } from "../../src/tools/format.ts";

/** A black flag with letters of the tag block. */
const flagOf = (region: string): string =>
  `🏴${Array.from(region, (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("")}\u{e007f}`;

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

  test.each([
    ["a zero-width space", "rm\u200b -rf", "rm\\u200b -rf"],
    ["a blank that does not break", "rm\u00a0-rf", "rm\\u00a0-rf"],
    ["a wide blank", "a\u3000b", "a\\u3000b"],
    ["letters of the tag block", "ok\u{e0041}", "ok\\udb40\\udc41"],
    ["a filler that is a letter", "a\u3164b", "a\\u3164b"],
    ["an empty Braille pattern", "a\u2800b", "a\\u2800b"],
    ["a mark that chooses a variant, of a letter", "a\ufe0f", "a\\ufe0f"],
  ])("shows %s", (_what, text, shown) => {
    expect(displayText(text)).toBe(shown);
  });

  test("leaves what makes up a picture", () => {
    expect(displayText("✔️ 👩‍💻")).toBe("✔️ 👩‍💻");
    const flags = ["gbeng", "gbsct", "gbwls"].map(flagOf).join("");
    expect(displayText(flags)).toBe(flags);
  });

  test("leaves no letters of the tag block but those of a flag, and none in a name", () => {
    for (const hidden of [flagOf("rm"), flagOf("gbeng").slice(0, -2), flagOf("gbeng").slice(2)])
      expect(displayText(hidden)).toMatch(/\\udb40/);
    expect(displayText(`${flagOf("gbeng")}\u{e0041}`)).toMatch(/\\udb40\\udc41$/);
    expect(displayName(flagOf("gbeng"))).toMatch(/\\udb40/);
  });
});

test("halves of surrogate pairs are replaced, pairs stay", () => {
  expect(wellFormed("a\ud83db 😀 \ude00")).toBe("a\ufffdb 😀 \ufffd");
});

describe("long lines", () => {
  test("pieces are the line, none too long, none ending inside a character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 2, max: 9 }), (text, size) => {
        const pieces = splitLine(text, size);
        expect(pieces.join("")).toBe(text);
        expect(pieces.every((piece) => piece.length <= size)).toBe(true);
        expect(pieces.every((piece) => wellFormed(piece) === piece)).toBe(true);
      }),
    );
  });

  test("every fifth line and the first of a page are numbered, and lines in pieces", () => {
    expect(numberLine("abcdef", 12, { maxLineChars: 10 })).toEqual(["\tabcdef"]);
    expect(numberLine("abcdef", 12, { maxLineChars: 10, isFirst: true })).toEqual(["12\tabcdef"]);
    expect(numberLine("abcdef", 15, { maxLineChars: 10 })).toEqual(["15\tabcdef"]);
    expect(numberLine("abcdef", 12, { maxLineChars: 4 })).toEqual(["12\tabcd", "12.1\tef"]);
    expect(numberLine("a".repeat(25_000), 1_234_567, { maxLineChars: 10_000 })).toEqual([
      `1234567\t${"a".repeat(10_000)}`,
      `1234567.1\t${"a".repeat(10_000)}`,
      `1234567.2\t${"a".repeat(5000)}`,
    ]);
    expect(numberLine("", 1, { maxLineChars: 10 })).toEqual(["\t"]);
  });
});

test.each([
  ["a\nb", undefined, ["a", "b"]],
  ["a\nb\n", undefined, ["a", "b"]],
  ["a\n\n", undefined, ["a", ""]],
  ["a\r\nb\r\n", undefined, ["a", "b"]],
  ["\n", 1, [""]],
  ["a\n", 2, ["a", ""]],
  ["a\n\n", 2, ["a", ""]],
  ["a\rb", 1, ["a\rb"]],
])("splitLines: %j with count %s", (content, count, lines) => {
  expect(splitLines(content, count)).toEqual(lines);
});
