/** Unified diffs as text: their lines with numbers, and shorter versions of them. */
import { displayMarked, displayText } from "./text.ts";

export interface DiffLine {
  /** `note`: neither the diff's header nor a line of the file, such as "\ No newline at end of file". */
  kind: "file" | "hunk" | "add" | "del" | "context" | "note";
  /** The whole line, sign included. */
  text: string;
  /** Line number in the old file, from 1; absent if the diff does not name it, and on added lines. */
  oldLine?: number;
  /** Line number in the new file, from 1. */
  newLine?: number;
}

/**
 * The lines of a unified diff. A line that begins with `---` or `+++` names a file only outside of hunks; inside, it
 * is a removed or an added line like any other. Numbers end where a hunk was cut.
 */
export function diffLines(diff: string): DiffLine[] {
  const position = new Position();
  return diff.split("\n").map((text) => position.read(text));
}

/** Shows one line of a diff: its sign stays, and everything in a changed line can be seen. */
export function displayDiffLine(line: string): string {
  const sign = line.slice(0, 1);
  const isChanged = sign === "+" || sign === "-";
  return isChanged ? sign + displayMarked(line.slice(1)) : displayText(line);
}

/** Shows the lines of a diff. Showing the result again changes nothing. */
export const displayDiff = (diff: string): string => diff.split("\n").map(displayDiffLine).join("\n");

export interface DiffCounts {
  added: number;
  removed: number;
}

/** A unified diff without the unchanged lines around its changes. */
export function changedLines(diff: string): string {
  const kept: string[] = [];
  let changed: string[] = [];
  /** Numbers of the next line of both files; 0 in a hunk without line numbers. */
  let [old, next] = [0, 0];
  const flush = (): void => {
    const count = (sign: string): number => changed.filter((line) => line.startsWith(sign)).length;
    const [removed, added] = [count("-"), count("+")];
    if (changed.length > 0)
      kept.push(old === 0 ? "@@" : hunkHeader(old - removed, removed, next - added, added), ...changed);
    changed = [];
  };
  for (const { kind, text } of diffLines(diff)) {
    const isChanged = kind === "add" || kind === "del";
    const belongs = isChanged || (text.startsWith("\\") && changed.length > 0);
    if (!belongs) flush();
    if (belongs) changed.push(text);
    else if (kind === "file" || (kind === "note" && !text.startsWith("\\"))) kept.push(text);
    if (kind === "hunk") {
      const ranges = HUNK.exec(text)?.slice(1).map(toNumber);
      const [oldStart = 0, oldLines = 1, newStart = 0, newLines = 1] = ranges ?? [];
      [old, next] = ranges ? [oldStart + Number(oldLines === 0), newStart + Number(newLines === 0)] : [0, 0];
    }
    if (old > 0 && (kind === "del" || kind === "context")) old += 1;
    if (next > 0 && (kind === "add" || kind === "context")) next += 1;
  }
  flush();
  return kept.join("\n");
}

/** The counts of several changes together; `undefined` as soon as those of one are not known. */
export function sumOfCounts(all: readonly Partial<DiffCounts>[]): DiffCounts | undefined {
  const sum = { added: 0, removed: 0 };
  for (const { added, removed } of all) {
    if (added === undefined || removed === undefined) return undefined;
    sum.added += added;
    sum.removed += removed;
  }
  return sum;
}

/** The first lines of a diff, in about `limit` UTF-16 units, and how many lines more it has. */
export function cutDiff(diff: string, limit: number): string {
  if (diff.length <= limit) return diff;
  const end = Math.max(diff.lastIndexOf("\n", limit), 0);
  const missing = diff.slice(end + 1).split("\n");
  const before = /^\[diff cut: (\d+) lines? more not shown\]$/.exec(missing.at(-1) ?? "");
  const count = before === null ? missing.length : missing.length - 1 + Number(before[1]);
  return `${diff.slice(0, end)}\n${diffCut(count)}`;
}

/** The last line of a diff that shows only its beginning. */
export const diffCut = (missing: number): string =>
  `[diff cut: ${missing} ${missing === 1 ? "line" : "lines"} more not shown]`;

/** Ends a last line that has no line break, and so differs from the same line with one. */
export const UNENDED = "\n\\ No newline at end of file";

export function linesToCompare(text: string): string[] {
  const lines = text.split("\n");
  const last = lines.pop();
  return last ? [...lines, last + UNENDED] : lines;
}

/** The header of a hunk whose lines count from 1. */
export const hunkHeader = (oldStart: number, oldLines: number, newStart: number, newLines: number): string =>
  `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`;

/** Unified format counts an empty range from the line before it. */
const range = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`;

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const toNumber = (digits: string | undefined): number | undefined =>
  digits === undefined ? undefined : Number(digits);

class Position {
  /** `unnumbered`: in a hunk without line numbers. */
  #place: "outside" | "numbered" | "unnumbered" = "outside";
  #line = { old: 0, new: 0 };
  /** Lines that the hunk still has. */
  #left = { old: 0, new: 0 };

  read(text: string): DiffLine {
    if (text.startsWith("\\")) return { kind: "note", text };
    if (this.#place === "numbered") return this.#numbered(text);
    if (text.startsWith("@@")) return this.#begin(text);
    if (this.#place === "unnumbered") return { kind: SIGNS[text.slice(0, 1)] ?? "note", text };
    return { kind: /^(---|\+\+\+) /.test(text) ? "file" : "note", text };
  }

  #begin(text: string): DiffLine {
    const ranges = HUNK.exec(text);
    this.#place = ranges === null ? "unnumbered" : "numbered";
    const [oldStart = 0, oldLines = 1, newStart = 0, newLines = 1] = (ranges ?? []).slice(1).map(toNumber);
    // An empty range is counted from the line before it.
    this.#line = { old: oldStart + (oldLines === 0 ? 1 : 0), new: newStart + (newLines === 0 ? 1 : 0) };
    this.#left = { old: oldLines, new: newLines };
    return { kind: "hunk", text };
  }

  #numbered(text: string): DiffLine {
    const kind = SIGNS[text.slice(0, 1)] ?? (text === "" ? "context" : "note");
    const [inOld, inNew] = [kind !== "add", kind !== "del"];
    const isOver = (inOld && this.#left.old < 1) || (inNew && this.#left.new < 1);
    if (kind === "note" || isOver) {
      this.#place = isOver ? "outside" : "unnumbered";
      return this.read(text);
    }
    this.#left.old -= inOld ? 1 : 0;
    this.#left.new -= inNew ? 1 : 0;
    return {
      kind,
      text,
      ...(inOld ? { oldLine: this.#line.old++ } : {}),
      ...(inNew ? { newLine: this.#line.new++ } : {}),
    };
  }
}

const SIGNS: Readonly<Record<string, DiffLine["kind"]>> = { "+": "add", "-": "del", " ": "context" };
