/** The changed lines between two texts, in bounded time for any input. */
import { diffArrays } from "diff";

/** A change of the lines from `start` up to `end` of the common beginning. */
export interface Hunk {
  start: number;
  end: number;
  lines: string[];
}

/** Edits that are compared exactly, and fewer of long texts: each edit may look at all lines. Above, all is one hunk. */
const DIFF_LIMITS = { edits: 1000, least: 20, looks: 8_000_000 };

/** The changes that make `changed` of `base`, in their order; about 0.1 s for any texts. */
export function hunksBetween(base: readonly string[], changed: readonly string[]): Hunk[] {
  const bound = Math.floor(DIFF_LIMITS.looks / (base.length + changed.length + 1));
  const maxEditLength = Math.max(Math.min(DIFF_LIMITS.edits, bound), DIFF_LIMITS.least);
  const parts = diffArrays([...base], [...changed], { maxEditLength });
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
    if (added) open.lines = value;
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

/** Groups hunks that have at most `between` unchanged lines between them. */
export function closeHunks(hunks: readonly Hunk[], between: number): Hunk[][] {
  const groups: Hunk[][] = [];
  let end = -Infinity;
  for (const hunk of hunks) {
    if (hunk.start - end > between) groups.push([hunk]);
    else groups.at(-1)?.push(hunk);
    ({ end } = hunk);
  }
  return groups;
}

/** Hunks as lines of a unified diff, with unchanged lines around them and without a header. */
export interface SignedLines {
  /** Lines of the base before the first of these. */
  start: number;
  lines: string[];
  added: number;
  removed: number;
}

export function signedLines(base: readonly string[], hunks: readonly Hunk[], context: number): SignedLines {
  const start = Math.max((hunks[0]?.start ?? 0) - context, 0);
  const lines: string[] = [];
  const put = (sign: string, some: readonly string[], from = 0, end = some.length): void => {
    for (let at = from; at < end; at += 1) lines.push(sign + some[at]);
  };
  let at = start;
  let [added, removed] = [0, 0];
  for (const hunk of hunks) {
    put(" ", base, at, hunk.start);
    put("-", base, hunk.start, hunk.end);
    put("+", hunk.lines);
    added += hunk.lines.length;
    removed += hunk.end - hunk.start;
    at = hunk.end;
  }
  put(" ", base, at, Math.min(at + context, base.length));
  return { start, lines, added, removed };
}
