import { structuredPatch } from "diff";
import { displayName, displayText, headOf } from "../core/text.ts";
import { counted } from "./format.ts";

export interface TextChange {
  path: string;
  /** `undefined`: the file does not exist yet. */
  before: string | undefined;
  after: string;
}

/**
 * A unified diff for a person to read, bounded in size and in work: cut lines and missing lines are
 * stated. Carriage returns of CRLF line breaks are not shown; other control characters are escaped.
 */
export function unifiedDiff(change: TextChange): string {
  return bounded(change, hunkLines(change));
}

/** The same, with all changed lines and those around them, wherever in the file they stand. */
export function boundDiff(change: TextChange): { shown: string; lines: string[] } {
  const hunks = hunkLines(change);
  const lines = hunks.map((line) => (line.startsWith("@@") ? "@@" : line));
  return { shown: bounded(change, hunks), lines };
}

/**
 * The same for a part of a file that was replaced, when where it stands is not known: hunks say `place`
 * instead of line numbers.
 */
export function replacementDiff(change: TextChange, place: string): string {
  const lines = hunkLines(change).filter((line) => !line.startsWith("\\"));
  return bounded(
    change,
    lines.map((line) => (line.startsWith("@@") ? `@@ ${place} @@` : line)),
  );
}

function bounded(change: TextChange, hunks: readonly string[]): string {
  const name = displayName(change.path);
  const header = [`--- ${change.before === undefined ? "/dev/null" : name}`, `+++ ${name}`];
  if (hunks.length === 0) return [...header, "[no change of content]"].join("\n");
  const kept: string[] = [];
  let used = 0;
  for (const hunkLine of hunks) {
    const line = displayLine(hunkLine);
    used += line.length + 1;
    if (kept.length === MAX_LINES || used > MAX_CHARS) break;
    kept.push(line);
  }
  const missing = hunks.length - kept.length;
  const notice = missing > 0 ? [`[diff cut: ${counted(missing, "line", "lines")} more not shown]`] : [];
  return [...header, ...kept, ...notice].join("\n");
}

function hunkLines({ path, before, after }: TextChange): string[] {
  if (before === undefined) return oneHunk([], linesOf(after));
  const patch = structuredPatch(path, path, before, after, "", "", {
    context: CONTEXT_LINES,
    stripTrailingCr: true,
    maxEditLength: MAX_EDIT_LENGTH,
  });
  if (!patch) return oneHunk(linesOf(before), linesOf(after));
  return patch.hunks.flatMap((hunk) => [
    hunkHeader(hunk.oldStart, hunk.oldLines, hunk.newStart, hunk.newLines),
    ...hunk.lines,
  ]);
}

/** Everything between the common start and the common end as one replacement: coarse, but always cheap. */
function oneHunk(before: readonly string[], after: readonly string[]): string[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const removed = before.slice(head, before.length - tail);
  const added = after.slice(head, after.length - tail);
  if (removed.length + added.length === 0) return [];
  const lead = before.slice(Math.max(head - CONTEXT_LINES, 0), head);
  const trail = before.slice(before.length - tail, before.length - tail + CONTEXT_LINES);
  const start = head - lead.length;
  const context = lead.length + trail.length;
  return [
    hunkHeader(start + 1, removed.length + context, start + 1, added.length + context),
    ...lead.map((line) => ` ${line}`),
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    ...trail.map((line) => ` ${line}`),
  ].flatMap((line) => line.split("\n"));
}

function hunkHeader(oldStart: number, oldLines: number, newStart: number, newLines: number): string {
  return `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`;
}

/** Unified format counts an empty range from the line before it. */
function range(start: number, lines: number): string {
  return `${lines === 0 ? start - 1 : start},${lines}`;
}

/** Lines to compare; a last line without line break carries the mark that says so, and so differs. */
function linesOf(text: string): string[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const last = lines.pop();
  return last ? [...lines, `${last}\n\\ No newline at end of file`] : lines;
}

function displayLine(line: string): string {
  const head = headOf(line, MAX_LINE_CHARS);
  const missing = line.length - head.length;
  const cut = missing > 0 ? ` [${counted(missing, "character", "characters")} more not shown]` : "";
  return displayText(head) + cut;
}

const CONTEXT_LINES = 3;
const MAX_LINES = 500;
const MAX_LINE_CHARS = 2000;
const MAX_CHARS = 40_000;
/** Edits the exact diff is computed for; above, the coarse one is shown. */
const MAX_EDIT_LENGTH = 1000;
