/** Finds the new parts of changed lines; lines that were replaced have none. */
import { diffWordsWithSpace } from "diff";

/** A part of a line, as UTF-16 offsets. */
export interface Range {
  start: number;
  end: number;
}

/** The changed parts of some lines, in order; none for a line that has little in common with the other side. */
export interface ChangedWords {
  removed: Range[][];
  added: Range[][];
}

/** Compares a run of removed lines with the run of added lines that follows it. */
export function changedWords(removed: readonly string[], added: readonly string[]): ChangedWords | undefined {
  const [before, after] = [removed.join("\n"), added.join("\n")];
  if (removed.length === 0 || added.length === 0 || before.length + after.length > MAX_CHARACTERS)
    return undefined;
  const parts = diffWordsWithSpace(before, after, { maxEditLength: MAX_EDITS });
  if (parts === undefined) return undefined;
  const [old, now] = [new Side(removed), new Side(added)];
  for (const { value, added: isAdded, removed: isRemoved } of parts) {
    if (!isAdded) old.read(value, isRemoved);
    if (!isRemoved) now.read(value, isAdded);
  }
  // Lines can be paired only if both sides have the same number of lines.
  const isPaired = removed.length === added.length;
  return { removed: old.ranges(isPaired ? now : undefined), added: now.ranges(isPaired ? old : undefined) };
}

/** Compared for each run of changed lines. With the limit of edits this takes a few milliseconds. */
const MAX_CHARACTERS = 4000;
const MAX_EDITS = 100;
/** Share of a line that must be unchanged; below it the line counts as replaced, without marked words. */
const LEAST_EQUAL = 0.4;

/** The lines of one side, and what of them was read. */
class Side {
  readonly #lines: readonly string[];
  readonly #changed: Range[][];
  #line = 0;
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
    this.#changed = lines.map(() => []);
  }

  read(text: string, isChanged: boolean): void {
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) [this.#line, this.#at] = [this.#line + 1, 0];
      if (isChanged && part !== "")
        this.#changed[this.#line]?.push({ start: this.#at, end: this.#at + part.length });
      this.#at += part.length;
    }
  }

  /** The changed parts of lines that are the same for the most part, together with those of `other` if there is one. */
  ranges(other?: Side): Range[][] {
    return this.#changed.map((ranges, index) => {
      const sides = other === undefined ? [this] : [this, other];
      const inks = sides.map((side) => side.#inkOf(index));
      const all = inks.reduce((sum, ink) => sum + ink.all, 0);
      const equal = inks.reduce((sum, ink) => sum + ink.equal, 0);
      return all > 0 && equal / all >= LEAST_EQUAL ? joined(ranges, this.#lines[index] ?? "") : [];
    });
  }

  /** Counts the non-blank characters of a line, and the unchanged ones among them. */
  #inkOf(index: number): { all: number; equal: number } {
    const line = this.#lines[index] ?? "";
    const changed = (this.#changed[index] ?? []).map(({ start, end }) => inkOf(line.slice(start, end)));
    const all = inkOf(line);
    return { all, equal: all - changed.reduce((sum, each) => sum + each, 0) };
  }
}

/** Counts the non-blank characters of a text. */
const inkOf = (text: string): number => text.replaceAll(/\s/g, "").length;

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
