/** Lines of texts, and the unified diff of one hunk: whole, except for hunks of unusual size. */
import { UNENDED, diffCut, displayDiffLine, hunkHeader } from "../core/diff.ts";
import { type Hunk as LineChange, signedLines } from "../core/hunks.ts";
import { displayName } from "../core/text.ts";
import type { ProposedPlace } from "../runs/proposals.ts";
import type { TextEncoding } from "../backends/encoding.ts";
import { shown } from "./file-text.ts";

/** The text of lines. Only the last one may have no line break. */
export function joinLines(lines: readonly string[]): string {
  const ended = lines.map((line) => (line.endsWith(UNENDED) ? line.slice(0, -UNENDED.length) : line));
  return ended.join("\n") + (lines.length === 0 || lines.at(-1)?.endsWith(UNENDED) ? "" : "\n");
}

const CONTEXT = 3;
/** Characters of one file. */
export const MOST_CHARS = 400_000;

/**
 * The diff of changes that stand close to each other, as it is displayed. `room`: its longest length; `Infinity`: all
 * of it, and whoever shows it displays it. `isNew`: there was no file before.
 */
export function hunkDiff(
  { path, from = path, encoding = "utf-8" }: { path: string; from?: string; encoding?: TextEncoding },
  base: readonly string[],
  changes: readonly LineChange[],
  { room, isNew = false }: { room: number; isNew?: boolean },
): Omit<ProposedPlace, "conflict"> {
  const { start, lines: signed, added, removed } = signedLines(base, changes, CONTEXT);
  const count = signed.length - added;
  const head = [
    `--- ${isNew ? "/dev/null" : displayName(from)}`,
    `+++ ${displayName(path)}`,
    hunkHeader(start + 1, count, start + 1, count - removed + added),
  ];
  // Carriage returns are left out if all lines have one.
  const isCrlf = signed.every((line) => line.endsWith("\r"));
  const lines = isCrlf ? signed.map((line) => line.slice(0, -1)) : signed;
  if (room === Infinity)
    return { diff: [...head, ...lines].map((line) => shown(line, encoding)).join("\n"), added, removed };
  const diff = [...head];
  let used = 0;
  for (const [index, line] of lines.entries()) {
    const text = shown(line, encoding).split("\n").map(displayDiffLine).join("\n");
    used += text.length + 1;
    if (used > room) {
      const cut = [...diff, diffCut(lines.length - index)].join("\n");
      return { diff: cut, isPart: true, added, removed };
    }
    diff.push(text);
  }
  return { diff: diff.join("\n"), added, removed };
}
