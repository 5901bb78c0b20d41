import { describe, expect, test } from "vitest";
import { formatMatches } from "../../src/tools/grep.ts";
import { type LineMatcher, compileSearch, excerpt } from "../../src/backends/search.ts";

function literal(pattern: string): LineMatcher {
  const compiled = compileSearch(pattern);
  if (!compiled.ok) throw new Error(compiled.error);
  return compiled.matcher;
}

const matches = [
  { path: "/a.md", line: 3, text: "x one", before: ["l1", "l2"], after: ["x two", "l5"] },
  { path: "/a.md", line: 4, text: "x two\r", before: ["l2", "x one"], after: ["l5", "l6"] },
  { path: "/b\n.md", line: 1, text: "x" },
];

describe("formatMatches", () => {
  test("content: a heading per file, matches with a colon, context with a hyphen, each line once", () => {
    expect(formatMatches(matches, "content", literal("x")).text).toBe(
      [
        "/a.md:",
        "  1- l1",
        "  2- l2",
        "  3: x one",
        "  4: x two",
        "  5- l5",
        "  6- l6",
        "/b\\n.md:",
        "  1: x",
      ].join("\n"),
    );
  });

  test("files_with_matches: each path once", () => {
    expect(formatMatches(matches, "files_with_matches", literal("x"))).toEqual({
      text: "/a.md\n/b\\n.md",
      notices: [],
    });
  });

  test("count: matching lines per file", () => {
    expect(formatMatches(matches, "count", literal("x")).text).toBe("/a.md: 2\n/b\\n.md: 1");
  });

  test.each([
    ["at the start", `needle${"-".repeat(3000)}`, `needle${"-".repeat(994)}…`],
    ["at the end", `${"-".repeat(3000)}needle`, `…${"-".repeat(994)}needle`],
    [
      "inside",
      `${"-".repeat(3000)}needle${"+".repeat(3000)}`,
      `…${"-".repeat(497)}needle${"+".repeat(497)}…`,
    ],
  ])("a line over 1000 characters is shown around a match %s, the rest counted", (_, text, shown) => {
    expect(formatMatches([{ path: "/f", line: 7, text }], "content", literal("needle"))).toEqual({
      text: `/f:\n  7: ${shown}`,
      notices: [
        "[1 line over 1000 characters shown in part; read a whole line with read_file, offset = its number - 1, limit = 1]",
      ],
    });
  });

  test("a line the backend has cut already is left as it is, and accounted for", () => {
    const whole = `${"-".repeat(3000)}needle${"+".repeat(3000)}`;
    const text = excerpt(whole, 3000, 3006);
    expect(formatMatches([{ path: "/f", line: 7, text }], "content", literal("needle"))).toEqual({
      text: `/f:\n  7: ${text}`,
      notices: [expect.stringMatching(/^\[1 line over 1000 characters shown in part;/)],
    });
  });

  test("a line of exactly 1000 characters is whole", () => {
    const text = "z".repeat(1000);
    expect(formatMatches([{ path: "/f", line: 1, text }], "content", literal("z"))).toEqual({
      text: `/f:\n  1: ${text}`,
      notices: [],
    });
  });

  test("a cut never splits a character", () => {
    const text = `${"😀".repeat(1500)}needle${"😀".repeat(1500)}`;
    const shown = formatMatches([{ path: "/f", line: 1, text }], "content", literal("needle")).text;
    expect(shown).toContain("needle");
    expect(shown).not.toMatch(/\p{Surrogate}|\ufffd/u);
  });
});
