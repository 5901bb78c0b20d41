/** Finds the new parts of changed lines; lines that were replaced have none. */
import { type Change, diffWordsWithSpace } from "diff";

/** A part of a line, as UTF-16 offsets. */
export interface Range {
  start: number;
  end: number;
}

/**
 * Compares a run of removed lines with the run of added lines that follows it. Returns the changed parts of each line,
 * in order; none for a line that has little in common with the other side.
 */
export function changedWords(
  removed: readonly string[],
  added: readonly string[],
): { removed: Range[][]; added: Range[][] } | undefined {
  const [before, after] = [removed.join("\n"), added.join("\n")];
  if (removed.length === 0 || added.length === 0 || before.length + after.length > MAX.characters)
    return undefined;
  const parts = diffWordsWithSpace(before, after, { maxEditLength: MAX.edits });
  if (parts === undefined) return undefined;
  const [old, now] = [markSide(removed, parts, "removed"), markSide(added, parts, "added")];
  // Lines can be paired only if both sides have the same number of lines.
  const isPaired = removed.length === added.length;
  const rangesOf = (side: Side, other: Side): Range[][] =>
    side.map((line, index) => {
      const pair = isPaired ? other[index] : undefined;
      const [all, equal] = [line.all + (pair?.all ?? 0), line.equal + (pair?.equal ?? 0)];
      // A line with less in common counts as replaced, without marked words.
      return all > 0 && equal / all >= 0.4 ? joined(line.changed, line.text) : [];
    });
  return { removed: rangesOf(old, now), added: rangesOf(now, old) };
}

/** Compared for each run of changed lines. With the limit of edits this takes a few milliseconds. */
const MAX = { characters: 4000, edits: 100 };

/** Lines with their changed parts, the number of their non-blank characters, and of the unchanged ones among them. */
type Side = readonly { text: string; changed: Range[]; all: number; equal: number }[];

function markSide(lines: readonly string[], parts: readonly Change[], own: "removed" | "added"): Side {
  const changed: Range[][] = lines.map(() => []);
  let [line, at] = [0, 0];
  for (const part of parts.filter((each) => each[own] || !(each.added || each.removed)))
    for (const [index, text] of part.value.split("\n").entries()) {
      if (index > 0) [line, at] = [line + 1, 0];
      if (part[own] && text !== "") changed[line]?.push({ start: at, end: at + text.length });
      at += text.length;
    }
  return lines.map((text, index) => {
    const ranges = changed[index] ?? [];
    const all = countInk(text);
    const equal = ranges.reduce((left, { start, end }) => left - countInk(text.slice(start, end)), all);
    return { text, changed: ranges, all, equal };
  });
}

const countInk = (text: string): number => text.replaceAll(/\s/g, "").length;

/** Joins ranges that only blanks or one other mark are between. */
function joined(ranges: readonly Range[], line: string): Range[] {
  const result: Range[] = [];
  for (const range of ranges) {
    const last = result.at(-1);
    const between = line.slice(last?.end, range.start).trim();
    if (last !== undefined && between.length < 2 && !/\w/.test(between)) last.end = range.end;
    else result.push({ ...range });
  }
  return result;
}
