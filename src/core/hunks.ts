/**
 * The changed lines between two texts, in bounded time for any input. The comparison is exact (Myers) as long as the
 * steps suffice. Otherwise lines that both texts have once divide them, and what cannot be compared is one change.
 */

/** A change of the lines from `start` up to `end` of the common beginning. */
export interface Hunk {
  start: number;
  end: number;
  lines: string[];
}

/** The changes that make `changed` of `base`, in their order. */
export function hunksBetween(base: readonly string[], changed: readonly string[]): Hunk[] {
  const matches = new Comparison(base, changed).matches();
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

/** Steps of one comparison, besides those that grow with the number of lines. */
const MOST_STEPS = 4_000_000;
/** Edits of one exact comparison, whose memory grows with their square. */
const MOST_EDITS = 1500;
/** Lines of both texts together that are numbered. */
const MOST_NUMBERED = 50_000;
const NONE = -1;

type Lines = ArrayLike<string | number>;

/** A part of both texts. */
interface Part {
  old: number;
  oldEnd: number;
  now: number;
  nowEnd: number;
}

/** Two texts, as numbers for their different lines unless they are so many that numbering takes long. */
class Comparison {
  readonly #old: Lines;
  readonly #now: Lines;
  /** For each line of the old text its number in the new one, from 0, or `NONE`. */
  readonly #matches: Int32Array;
  /** For each different line its place in a part of the old and of the new text. 0: none; `NONE`: several. */
  readonly #places: [Int32Array, Int32Array] | undefined;
  #left = MOST_STEPS;

  constructor(base: readonly string[], changed: readonly string[]) {
    this.#matches = new Int32Array(base.length).fill(NONE);
    [this.#old, this.#now] = [base, changed];
    if (base.length + changed.length > MOST_NUMBERED) return;
    const numbers = new Map([...base, ...changed].map((line) => [line, 0]));
    for (const [index, line] of [...numbers.keys()].entries()) numbers.set(line, index);
    const numbered = (lines: readonly string[]) => Int32Array.from(lines, (line) => numbers.get(line) ?? 0);
    [this.#old, this.#now] = [numbered(base), numbered(changed)];
    this.#places = [new Int32Array(numbers.size), new Int32Array(numbers.size)];
  }

  matches(): Int32Array {
    const parts: Part[] = [{ old: 0, oldEnd: this.#old.length, now: 0, nowEnd: this.#now.length }];
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      if (this.#matchExactly(part)) continue;
      const rest = this.#withoutEnds(part);
      let { old, now } = rest;
      for (const [line, match] of this.#dividing(rest)) {
        parts.push({ old, oldEnd: line, now, nowEnd: match });
        this.#matches[line] = match;
        [old, now] = [line + 1, match + 1];
      }
      if (old > rest.old) parts.push({ ...rest, old, now });
    }
    return this.#matches;
  }

  /** Matches a part with the fewest edits. False: that takes too many steps. */
  #matchExactly({ old, oldEnd, now, nowEnd }: Part): boolean {
    const [rows, columns] = [oldEnd - old, nowEnd - now];
    if (rows === 0 || columns === 0) return true;
    const [most, least] = [Math.min(rows + columns, MOST_EDITS), Math.max(this.#left, 0) / 2];
    const [reached, middle] = [new Int32Array(2 * most + 3).fill(UNREACHED), most + 1];
    const rounds: Int32Array[] = [];
    for (let edits = 0; edits <= most; edits += 1) {
      rounds.push(reached.slice(middle - edits - 1, middle + edits + 2));
      for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
        const [before, after] = [reached[middle + diagonal - 1] ?? 0, reached[middle + diagonal + 1] ?? 0];
        let row = edits === 0 ? 0 : nextRow(before, after, diagonal, rows, columns);
        this.#left -= 1;
        for (; row >= 0 && row < rows && row - diagonal < columns; row += 1, this.#left -= 1)
          if (this.#old[old + row] !== this.#now[now + row - diagonal]) break;
        reached[middle + diagonal] = row;
        if (row < rows || row - diagonal < columns) continue;
        this.#matchPath({ old, oldEnd, now, nowEnd }, rounds);
        return true;
      }
      if (this.#left < least) return false;
    }
    return false;
  }

  /** Matches the lines on the way that an exact comparison found, from its end. `rounds`: what each began with. */
  #matchPath({ old, oldEnd, now, nowEnd }: Part, rounds: readonly Int32Array[]): void {
    const [rows, columns] = [oldEnd - old, nowEnd - now];
    let [row, column] = [rows, columns];
    for (let edits = rounds.length - 1; edits >= 0; edits -= 1) {
      const [reached, diagonal] = [rounds[edits] ?? NO_ROWS, row - column];
      const before = reached[diagonal + edits] ?? UNREACHED;
      const after = reached[diagonal + edits + 2] ?? UNREACHED;
      const first = edits === 0 ? 0 : nextRow(before, after, diagonal, rows, columns);
      for (let at = row - 1; at >= first; at -= 1) this.#matches[old + at] = now + at - diagonal;
      // It came here by an added line, or by a removed one.
      const isAdded = first === after;
      row = isAdded ? first : first - 1;
      column = isAdded ? first - diagonal - 1 : first - diagonal;
    }
  }

  /** Matches the lines that a part begins and ends with in both texts; gives the rest. */
  #withoutEnds({ old, oldEnd, now, nowEnd }: Part): Part {
    while (old < oldEnd && now < nowEnd && this.#old[old] === this.#now[now]) {
      this.#matches[old] = now;
      [old, now] = [old + 1, now + 1];
    }
    while (old < oldEnd && now < nowEnd && this.#old[oldEnd - 1] === this.#now[nowEnd - 1]) {
      [oldEnd, nowEnd] = [oldEnd - 1, nowEnd - 1];
      this.#matches[oldEnd] = nowEnd;
    }
    return { old, oldEnd, now, nowEnd };
  }

  /** The lines that a part has once in both texts, as many as stand in the same order. */
  #dividing({ old, oldEnd, now, nowEnd }: Part): [line: number, match: number][] {
    this.#left -= oldEnd - old + nowEnd - now;
    // Hostile texts can be divided very often.
    if (this.#places === undefined || this.#left < -MOST_STEPS) return [];
    const [olds, news] = this.#places;
    const note = (places: Int32Array, lines: Lines, from: number, end: number): void => {
      for (let at = from; at < end; at += 1) {
        const line = Number(lines[at]);
        places[line] = places[line] === 0 ? at + 1 : NONE;
      }
    };
    note(olds, this.#old, old, oldEnd);
    note(news, this.#now, now, nowEnd);
    const once: [number, number][] = [];
    for (let at = old; at < oldEnd; at += 1) {
      const line = Number(this.#old[at]);
      const match = news[line] ?? 0;
      if (match > 0 && olds[line] === at + 1) once.push([at, match - 1]);
    }
    for (let at = old; at < oldEnd; at += 1) olds[Number(this.#old[at])] = 0;
    for (let at = now; at < nowEnd; at += 1) news[Number(this.#now[at])] = 0;
    return inOrder(once);
  }
}

const UNREACHED = -(2 ** 30);
const NO_ROWS = new Int32Array(0);

/** The row where one more edit leads: a removed line from the diagonal before, or an added one from that after it. */
function nextRow(before: number, after: number, diagonal: number, rows: number, columns: number): number {
  const canRemove = before >= 0 && before < rows;
  const canAdd = after >= 0 && after - diagonal <= columns;
  if (canRemove && (!canAdd || before >= after)) return before + 1;
  return canAdd ? after : UNREACHED;
}

/** The longest list of pairs whose second numbers rise as well, in time that is almost linear. */
function inOrder(pairs: readonly [number, number][]): [number, number][] {
  /** For each length the pair that ends a list of it with the smallest number, and for each pair the one before it. */
  const [ends, previous] = [[] as number[], new Int32Array(pairs.length)];
  for (const [index, [, match]] of pairs.entries()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const half = (low + high) >> 1;
      if ((pairs[ends[half] ?? 0]?.[1] ?? 0) < match) low = half + 1;
      else high = half;
    }
    previous[index] = ends[low - 1] ?? NONE;
    ends[low] = index;
  }
  const found: [number, number][] = [];
  for (let at = ends.at(-1) ?? NONE; at !== NONE; at = previous[at] ?? NONE) {
    const pair = pairs[at];
    if (pair !== undefined) found.push(pair);
  }
  return found.reverse();
}
