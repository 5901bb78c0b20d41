/** Merges changes of one text, line by line. */
import { diffArrays } from "diff";

/** A change of the lines from `start` up to `end` of the common beginning. */
export interface Hunk {
  start: number;
  end: number;
  lines: string[];
}

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

/** Changes of more lines than this are one hunk: comparing them exactly takes too long. */
const MOST_EDITS = 5000;

/** The changes that make `changed` of `base`, in their order. */
export function hunksBetween(base: readonly string[], changed: readonly string[]): Hunk[] {
  const parts = diffArrays([...base], [...changed], { maxEditLength: MOST_EDITS });
  if (parts === undefined) return [wholeHunk(base, changed)];
  const hunks: Hunk[] = [];
  let at = 0;
  let open: Hunk | undefined;
  for (const { added, removed, value } of parts) {
    if (!added && !removed) {
      at += value.length;
      open = undefined;
      continue;
    }
    if (!open) hunks.push((open = { start: at, end: at, lines: [] }));
    if (added) for (const line of value) open.lines.push(line);
    else open.end = at += value.length;
  }
  return hunks;
}

/** One hunk, without the lines that both begin and end with. */
function wholeHunk(base: readonly string[], changed: readonly string[]): Hunk {
  const shorter = Math.min(base.length, changed.length);
  let head = 0;
  while (head < shorter && base[head] === changed[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && base.at(-1 - tail) === changed.at(-1 - tail)) tail += 1;
  return { start: head, end: base.length - tail, lines: changed.slice(head, changed.length - tail) };
}

const isSameHunk = (a: Hunk, b: Hunk): boolean =>
  a.start === b.start &&
  a.end === b.end &&
  a.lines.length === b.lines.length &&
  a.lines.every((line, index) => line === b.lines[index]);

/** True if two hunks change the same lines, or lines beside each other, in different ways. */
export const areOpposed = (a: Hunk, b: Hunk): boolean =>
  a.start <= b.end && b.start <= a.end && !isSameHunk(a, b);
