/** Merges changes of one text, line by line. */
import { type Hunk, hunksBetween } from "./hunks.ts";

/** Merges two changes of one text line by line; `undefined` if they overlap or touch differently. */
export function mergeTexts(base: string, first: string, second: string): string | undefined {
  const lines = base.split("\n");
  const hunks = [first, second].flatMap((changed) => hunksBetween(lines, changed.split("\n")));
  return mergeHunks(lines, hunks)?.join("\n");
}

/** The lines with all hunks carried out, each once; `undefined` when two of them exclude each other. */
export function mergeHunks(lines: readonly string[], hunks: readonly Hunk[]): string[] | undefined {
  const merged: string[][] = [];
  let at = 0;
  let last: Hunk | undefined;
  for (const hunk of hunks.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    if (last !== undefined && isSameHunk(last, hunk)) continue;
    if (last !== undefined && hunk.start <= last.end) return undefined;
    merged.push(lines.slice(at, hunk.start), hunk.lines);
    at = hunk.end;
    last = hunk;
  }
  return [...merged, lines.slice(at)].flat();
}

const isSameHunk = (a: Hunk, b: Hunk): boolean =>
  a.start === b.start &&
  a.end === b.end &&
  a.lines.length === b.lines.length &&
  a.lines.every((line, index) => line === b.lines[index]);

/** The hunks of `others` that exclude one of `hunks`: both change the same lines, or neighbours, differently. Both are in order. */
export function opposedHunks(others: readonly Hunk[], hunks: readonly Hunk[]): Hunk[] {
  let first = 0;
  return others.filter((other) => {
    while ((hunks[first]?.end ?? Infinity) < other.start) first += 1;
    for (let at = first; (hunks[at]?.start ?? Infinity) <= other.end; at += 1) {
      const hunk = hunks[at];
      if (hunk !== undefined && !isSameHunk(hunk, other)) return true;
    }
    return false;
  });
}
