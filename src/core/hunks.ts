/** The changed lines between two texts, in bounded time for any input. */
import { diffArrays } from "diff";

/** A change of the lines from `start` up to `end` of the common beginning. */
export interface Hunk {
  start: number;
  end: number;
  lines: string[];
}

/** Edits that are compared exactly, and fewer of long texts: each edit may look at all lines. */
const DIFF_LIMITS = { edits: 1000, least: 20, looks: 8_000_000 };

/**
 * The changes that make `changed` of `base`, in their order; about 0.1 s for any texts. With too many edits, the lines
 * between those that occur once in each text are compared by themselves; where they have too many again, they are one hunk.
 */
export function hunksBetween(base: readonly string[], changed: readonly string[]): Hunk[] {
  const bound = Math.floor(DIFF_LIMITS.looks / (base.length + changed.length + 1));
  const edits = Math.max(Math.min(DIFF_LIMITS.edits, bound), DIFF_LIMITS.least);
  const exact = exactHunks(base, changed, edits);
  if (exact !== undefined) return exact;
  // The place of each line, or -1 if it occurs more than once.
  const [places, others] = [new Map<string, number>(), new Map<string, number>()];
  for (const [at, line] of base.entries()) places.set(line, places.has(line) ? -1 : at);
  for (const [at, line] of changed.entries()) others.set(line, others.has(line) ? -1 : at);
  const isAnchor = (line: string): boolean => (places.get(line) ?? -1) >= 0 && (others.get(line) ?? -1) >= 0;
  const parts = diffArrays(base.filter(isAnchor), changed.filter(isAnchor), { maxEditLength: edits }) ?? [];
  const anchors = parts.flatMap(({ added, removed, value }) => (added || removed ? [] : value));
  let [start, from] = [0, 0];
  return [...anchors.map((line) => [places.get(line), others.get(line)]), []].flatMap(
    ([end = base.length, to = changed.length]) => {
      const [old, now, before] = [base.slice(start, end), changed.slice(from, to), start];
      [start, from] = [end + 1, to + 1];
      const own = anchors.length === 0 ? undefined : exactHunks(old, now, edits);
      const hunks = own ?? [{ start: 0, end: old.length, lines: now }];
      return hunks.map((hunk) => ({ ...hunk, start: hunk.start + before, end: hunk.end + before }));
    },
  );
}

/** Returns undefined if there are more edits than `most`. */
function exactHunks(base: readonly string[], changed: readonly string[], most: number): Hunk[] | undefined {
  const parts = diffArrays([...base], [...changed], { maxEditLength: most });
  if (parts === undefined) return undefined;
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
