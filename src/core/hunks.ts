/** The changed lines between two texts, in bounded time for any input. */

/** A change of the lines from `start` up to `end` of the common beginning. */
export interface Hunk {
  start: number;
  end: number;
  lines: string[];
}

/** The changes that make `changed` of `base`, in their order. */
export function hunksBetween(base: readonly string[], changed: readonly string[]): Hunk[] {
  const matches = matchesOf(base, changed);
  const hunks: Hunk[] = [];
  let [at, to] = [0, 0];
  for (let line = 0; line <= base.length; line += 1) {
    const match = line === base.length ? changed.length : (matches[line] ?? NONE);
    if (match === NONE) continue;
    if (line > at || match > to) hunks.push({ start: at, end: line, lines: changed.slice(to, match) });
    [at, to] = [line + 1, match + 1];
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

/** Steps of one comparison. */
const MOST_STEPS = 4_000_000;
/** Its memory grows with the square of its edits. */
const MOST_EDITS = 2000;
const [NONE, UNREACHED] = [-1, -(2 ** 30)];

/**
 * For each line of the old text its number in the new one, from 0, or `NONE`: with the fewest edits (Myers), or where
 * that takes too many steps, the lines that both texts begin and end with.
 */
function matchesOf(old: readonly string[], now: readonly string[]): Int32Array {
  const matches = new Int32Array(old.length).fill(NONE);
  const rounds = roundsOf(old, now);
  if (rounds === undefined) return matchedEnds(matches, old, now);
  let [row, column] = [old.length, now.length];
  for (let edits = rounds.length - 1; edits >= 0; edits -= 1) {
    const [reached, diagonal] = [rounds[edits], row - column];
    const before = reached?.[diagonal + edits] ?? UNREACHED;
    const after = reached?.[diagonal + edits + 2] ?? UNREACHED;
    const first = edits === 0 ? 0 : nextRow(before, after, diagonal, old.length, now.length);
    for (let at = row - 1; at >= first; at -= 1) matches[at] = at - diagonal;
    // It came here by an added line, or by a removed one.
    row = first === after ? first : first - 1;
    column = first - diagonal - Number(first === after);
  }
  return matches;
}

function matchedEnds(matches: Int32Array, old: readonly string[], now: readonly string[]): Int32Array {
  let [head, tail] = [0, 0];
  const shorter = Math.min(old.length, now.length);
  for (; head < shorter && old[head] === now[head]; head += 1) matches[head] = head;
  for (; tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail); tail += 1)
    matches[old.length - 1 - tail] = now.length - 1 - tail;
  return matches;
}

/** How far each number of edits leads, by diagonal: what its round began with. `undefined`: too many steps. */
function roundsOf(old: readonly string[], now: readonly string[]): Int32Array[] | undefined {
  const [rows, columns] = [old.length, now.length];
  const most = Math.min(rows + columns, MOST_EDITS);
  const [reached, middle] = [new Int32Array(2 * most + 3).fill(UNREACHED), most + 1];
  const rounds: Int32Array[] = [];
  let left = MOST_STEPS;
  for (let edits = 0; edits <= most && left > 0; edits += 1) {
    rounds.push(reached.slice(middle - edits - 1, middle + edits + 2));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const [before, after] = [reached[middle + diagonal - 1] ?? 0, reached[middle + diagonal + 1] ?? 0];
      let row = edits === 0 ? 0 : nextRow(before, after, diagonal, rows, columns);
      for (; row >= 0 && row < rows && row - diagonal < columns; row += 1) {
        // Comparing long lines takes longer.
        left -= (old[row]?.length ?? 0) >> 6;
        if (old[row] !== now[row - diagonal]) break;
        left -= 1;
      }
      left -= 1;
      reached[middle + diagonal] = row;
      if (row >= rows && row - diagonal >= columns) return rounds;
    }
  }
  return undefined;
}

/** The row where one more edit leads: a removed line from the diagonal before, or an added one from that after it. */
function nextRow(before: number, after: number, diagonal: number, rows: number, columns: number): number {
  const canRemove = before >= 0 && before < rows;
  const canAdd = after >= 0 && after - diagonal <= columns;
  if (canRemove && (!canAdd || before >= after)) return before + 1;
  return canAdd ? after : UNREACHED;
}
