/**
 * Joins the changes of one file into one diff, against the file before the first of them. Only the diffs are needed,
 * because each has the lines around its changes: whatever became of the file since, this is what these changes did.
 */
import { type DiffCounts, diffLines } from "../../../core/diff.ts";
import { hunksBetween, signedLines } from "../../../core/hunks.ts";

export interface CombinedDiff extends DiffCounts {
  /** Unified. */
  diff: string;
}

/** Lines of the file as it is after some of the changes. */
type Piece =
  /** Lines of the first file, from this number on. */
  | { old: number; count: number }
  /** A line that a change added. */
  | { text: string };

interface Line {
  sign: " " | "-" | "+";
  text: string;
  oldLine: number;
  newLine: number;
}

const CONTEXT = 3;
const HUNK = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@/;

/**
 * Joins unified diffs of one file, oldest first. Returns undefined if one is cut, has no position in the file, or
 * does not fit the result of the others: another program changed the file in between.
 */
export function combinedDiff(diffs: readonly string[]): CombinedDiff | undefined {
  const [first] = diffs;
  if (first === undefined || diffs.length > 500) return undefined;
  if (diffs.slice(1).some((diff) => diff.startsWith("--- /dev/null\n"))) return undefined;
  const file = new JoinedFile(first.startsWith("--- /dev/null\n"));
  if (!diffs.every((diff) => file.apply(diff))) return undefined;
  const lines = file.changes();
  const names = [first.split("\n", 1)[0] ?? "", /^\+\+\+ .*$/m.exec(diffs.at(-1) ?? "")?.[0] ?? ""];
  // Unchanged lines are in a hunk only near a change.
  const near = contiguous(lines).flatMap((run) =>
    run.filter((_line, at) =>
      run.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(({ sign }) => sign !== " "),
    ),
  );
  const hunks = contiguous(near).flatMap((hunk) => [
    `@@ -${range(hunk, "oldLine", "+")} +${range(hunk, "newLine", "-")} @@`,
    ...hunk.flatMap(({ sign, text }) => `${sign}${text}`.split("\n")),
  ]);
  const count = (sign: Line["sign"]): number => lines.filter((line) => line.sign === sign).length;
  return {
    diff: [...names, ...(hunks.length === 0 ? ["[content unchanged]"] : hunks)].join("\n"),
    added: count("+"),
    removed: count("-"),
  };
}

/** A file of which only the lines are known that changes showed. */
class JoinedFile {
  #pieces: Piece[];
  /** Lines of the first file, as far as they are known. */
  readonly #known = new Map<number, string>();
  /** Numbers of those that are gone. */
  readonly #gone = new Set<number>();

  constructor(isNew: boolean) {
    this.#pieces = isNew ? [] : [{ old: 1, count: Infinity }];
  }

  /** False: the diff does not fit. */
  apply(diff: string): boolean {
    const reader = new PieceReader(this.#pieces);
    const lines = diffLines(diff);
    for (const [index, { kind, text, oldLine }] of lines.entries()) {
      const isUnended = lines[index + 1]?.text.startsWith("\\") === true;
      const own = isUnended ? `${text.slice(1)}\n${lines[index + 1]?.text}` : text.slice(1);
      if (kind === "hunk") {
        const [, start = "0", count = "1"] = HUNK.exec(text) ?? [];
        if (!HUNK.test(text)) return false;
        // An empty range is counted from the line before it.
        reader.copyTo(Number(start) + (count === "0" ? 1 : 0));
      } else if (kind === "add") reader.put({ text: own });
      else if (kind === "context" || kind === "del") {
        if (oldLine === undefined || !this.#take(reader, oldLine, own, kind === "context")) return false;
      } else if (kind === "note" && !REMARK.test(text)) return false;
    }
    this.#pieces = reader.rest();
    return true;
  }

  #take(reader: PieceReader, oldLine: number, text: string, stays: boolean): boolean {
    reader.copyTo(oldLine);
    const piece = reader.next(1);
    if (piece === undefined) return false;
    if ("text" in piece) {
      if (stays) reader.put(piece);
      return isSame(piece.text, text);
    }
    const known = this.#known.get(piece.old);
    if (known !== undefined && !isSame(known, text)) return false;
    this.#known.set(piece.old, text);
    if (stays) reader.put(piece);
    else this.#gone.add(piece.old);
    return true;
  }

  /** Changed lines, and the known lines between them. */
  changes(): Line[] {
    const lines: Line[] = [];
    let oldLine = 1;
    /** Number of the next line in the new file, less that in the old one. */
    let shift = 0;
    let added: string[] = [];
    const put = (sign: Line["sign"], text: string): void => {
      lines.push({ sign, text, oldLine, newLine: oldLine + shift });
      if (sign !== "+") oldLine += 1;
      if (sign !== " ") shift += sign === "+" ? 1 : -1;
    };
    /** Writes the lines removed before a line of the first file, and their replacement. */
    const flush = (until: number): void => {
      const removed: string[] = [];
      for (let line = oldLine; line < until && this.#gone.has(line); line += 1)
        removed.push(this.#known.get(line) ?? "");
      // Lines that are on both sides were changed and changed back.
      for (const line of signedLines(removed, hunksBetween(removed, added), Infinity).lines)
        put(line.startsWith("+") ? "+" : line.startsWith("-") ? "-" : " ", line.slice(1));
      added = [];
    };
    // The pieces stand in the order of the lines that they are of. Lines that nobody saw are passed over.
    const kept = [...this.#known.keys()].filter((line) => !this.#gone.has(line)).toSorted((a, b) => a - b);
    let at = 0;
    for (const piece of this.#pieces) {
      if ("text" in piece) {
        added.push(piece.text);
        continue;
      }
      flush(piece.old);
      const end = piece.old + piece.count;
      for (let line = kept[at]; line !== undefined && line < end; line = kept[at]) {
        oldLine = line;
        put(" ", this.#known.get(line) ?? "");
        at += 1;
      }
      oldLine = end;
    }
    flush(Infinity);
    return lines;
  }
}

/** Goes through the pieces of a file from its first line to its last, and makes those of the next one. */
class PieceReader {
  readonly #left: Piece[];
  readonly #made: Piece[] = [];
  #line = 1;

  constructor(pieces: readonly Piece[]) {
    this.#left = pieces.toReversed();
  }

  /** Lines before this number stay. */
  copyTo(line: number): void {
    while (this.#line < line) {
      const piece = this.next(line - this.#line);
      if (piece === undefined) return;
      this.put(piece);
    }
  }

  put(piece: Piece): void {
    const last = this.#made.at(-1);
    if (last !== undefined && "old" in last && "old" in piece && last.old + last.count === piece.old)
      this.#made[this.#made.length - 1] = { old: last.old, count: last.count + piece.count };
    else this.#made.push(piece);
  }

  rest(): Piece[] {
    for (const piece of this.#left.toReversed()) this.put(piece);
    return this.#made;
  }

  /** At most so many lines of one piece, which the caller puts back if they stay. `undefined`: the file ends. */
  next(most: number): Piece | undefined {
    const piece = this.#left.pop();
    if (piece === undefined) return undefined;
    if ("text" in piece) {
      this.#line += 1;
      return piece;
    }
    const count = Math.min(most, piece.count);
    if (count < piece.count) this.#left.push({ old: piece.old + count, count: piece.count - count });
    this.#line += count;
    return { old: piece.old, count };
  }
}

/** Notes about the whole file, which lose nothing of its lines. */
const REMARK = /^(?:\\|\[(?:content unchanged|each line ends with CRLF|line endings change ))/;

/** Blanks at the end of a line, and carriage returns, are shown in changed lines only. */
const isSame = (one: string, other: string): boolean => plain(one) === plain(other);
const plain = (text: string): string =>
  text.replace(/\n\\ No newline at end of file$/, "").replace(/(?<![ \t·→]|\\r)(?:[ \t·→]|\\r)+$/, "");

/** Lines that follow each other in both files, in lists of their own. */
function contiguous(lines: readonly Line[]): Line[][] {
  const runs: Line[][] = [];
  for (const line of lines) {
    const last = runs.at(-1)?.at(-1);
    const follows =
      last !== undefined &&
      line.oldLine === last.oldLine + (last.sign === "+" ? 0 : 1) &&
      line.newLine === last.newLine + (last.sign === "-" ? 0 : 1);
    if (follows) runs.at(-1)?.push(line);
    else runs.push([line]);
  }
  return runs;
}

/** `without`: the sign of lines that are only on the other side. */
function range(hunk: readonly Line[], key: "oldLine" | "newLine", without: Line["sign"]): string {
  const count = hunk.filter(({ sign }) => sign !== without).length;
  const start = hunk[0]?.[key] ?? 1;
  return `${count === 0 ? start - 1 : start},${count}`;
}
