import { diffArrays } from "diff";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Hunk, closeHunks, hunksBetween, signedLines } from "../../src/core/hunks.ts";
import { mergeHunks } from "../../src/core/merge.ts";

const editsOf = (hunks: readonly Hunk[]): number =>
  hunks.reduce((sum, { start, end, lines }) => sum + end - start + lines.length, 0);

const numbers = (count: number, text = ""): string[] =>
  Array.from({ length: count }, (_, index) => `${index}${text}`);

describe("the hunks between two texts", () => {
  it("make the one of the other, with as few edits as possible", () => {
    const texts = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 30 });
    fc.assert(
      fc.property(texts, texts, (base, changed) => {
        const hunks = hunksBetween(base, changed);
        expect(mergeHunks(base, hunks)).toEqual(changed);
        const fewest = diffArrays(base, changed).filter(({ added, removed }) => added || removed);
        expect(editsOf(hunks)).toBe(fewest.reduce((sum, { value }) => sum + value.length, 0));
      }),
    );
  });

  it("keep unchanged lines between changed ones, if they are not too many", () => {
    const base = numbers(800);
    const changed = base.map((line, index) => (index % 2 === 0 ? line : `${line} changed`));
    expect(hunksBetween(base, changed)).toHaveLength(400);
  });

  it("keep unchanged lines between too many changed ones to compare exactly, by the lines that occur once", () => {
    const base = numbers(4000, " kept");
    const changed = base.flatMap((line, at) => (at % 2 === 0 ? ["{", line] : [`${at} new`, "}"]));
    const hunks = hunksBetween(base, changed);
    expect(mergeHunks(base, hunks)).toEqual(changed);
    expect(hunks).toHaveLength(2001);
    expect(hunks.filter(({ start, end }) => end - start > 1)).toEqual([]);
  });

  it("are right when lines that occur once have moved, and others are repeated", () => {
    const blocks = fc.array(fc.nat(150), { minLength: 25, maxLength: 35 });
    const text = (order: readonly number[], mark: string): string[] =>
      order.flatMap((block) => [`block ${block}`, ...numbers(40, mark), "}"]);
    fc.assert(
      fc.property(blocks, blocks, (one, other) => {
        const [base, changed] = [text(one, " old"), text(other, " new")];
        const hunks = hunksBetween(base, changed);
        expect(mergeHunks(base, hunks)).toEqual(changed);
      }),
      { numRuns: 5 },
    );
  });

  it("find a small change in the middle of a long text", () => {
    const base = numbers(400_000);
    expect(hunksBetween(base, base.with(200_000, "new"))).toEqual([
      { start: 200_000, end: 200_001, lines: ["new"] },
    ]);
  });

  // Each of these took seconds with an exact comparison alone, or memory that grows with the square.
  it.each<[string, string[], string[]]>([
    ["all lines changed", numbers(200_000), numbers(200_000, " changed")],
    ["the order reversed", numbers(24_000), numbers(24_000).toReversed()],
    [
      "few different lines",
      numbers(200_000).map((_, at) => `${at % 7}`),
      numbers(200_000).map((_, at) => `${at % 11}`),
    ],
    ["line breaks alone", Array<string>(1_000_000).fill(""), Array<string>(900_000).fill(" ")],
    ["neighbours exchanged", numbers(24_000), numbers(24_000).map((_, at) => `${at ^ 1}`)],
    [
      "long lines that differ at their ends",
      numbers(2000).map((at) => "x".repeat(900) + at),
      numbers(2000, " ").map((at) => "x".repeat(900) + at),
    ],
  ])("are right with %s", (_name, base, changed) => {
    const made = mergeHunks(base, hunksBetween(base, changed));
    expect(made?.length).toBe(changed.length);
    expect(made?.every((line, index) => line === changed[index])).toBe(true);
  });
});

it("hunks that are close stand in one group, with the unchanged lines between and around them", () => {
  const base = numbers(30);
  const hunks = hunksBetween(base, base.with(4, "four").with(9, "nine").with(20, "twenty"));
  const groups = closeHunks(hunks, 6);
  expect(groups.map((group) => group.map(({ start }) => start))).toEqual([[4, 9], [20]]);
  expect(signedLines(base, groups[1] ?? [], 2)).toEqual({
    start: 18,
    lines: [" 18", " 19", "-20", "+twenty", " 21", " 22"],
    added: 1,
    removed: 1,
  });
});
