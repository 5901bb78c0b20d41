import { createHash } from "node:crypto";
import { z } from "zod";
import { ownTurn } from "../core/concurrency.ts";
import { defined } from "../core/unknown.ts";
import { type DiffCounts, diffCut, displayDiffLine, hunkHeader, linesToCompare } from "../core/diff.ts";
import { closeHunks, hunksBetween, signedLines } from "../core/hunks.ts";
import { displayName, headOf } from "../core/text.ts";
import { counted, splitLines } from "./format.ts";
import type { FileDiff } from "./tool.ts";

export interface TextChange {
  path: string;
  /** Absent if the file does not exist yet. */
  before: string | undefined;
  after: string;
}

interface WholeDiff extends Required<FileDiff> {
  /** No changed line is cut or left out. */
  isWhole: boolean;
  /** All of a longer diff, unless it is too long for a screen of its own. */
  whole?: string;
  /**
   * All changed lines and those around them, wherever in the file they stand. For a part that is too long to compare
   * these are digests.
   */
  effect: () => readonly string[];
}

/**
 * A unified diff for a person to read, bounded in size and in work: cut lines and missing lines are stated. What
 * cannot be seen is marked, carriage returns too: a file that has one in each line shows that once.
 */
export function wholeDiff(change: TextChange, maxLineChars = MAX_CHARS): WholeDiff {
  const part = changedPart(change);
  if (isTooLong(part)) {
    const { before, after } = changedPart(change, 0);
    return {
      diff: withHeader(change, beginnings(part)),
      isWhole: false,
      added: lineCount(after),
      removed: lineCount(before),
      effect: () => [digest(part.before), digest(part.after)],
    };
  }
  const hunks = hunkLines(change, part);
  return {
    ...boundedDiff(change, hunks, maxLineChars),
    ...lineCounts(hunks),
    effect: () => hunks.map((line) => (line.startsWith("@@") ? "@@" : line)),
  };
}

/** Makes the diff for the journal, with long lines cut. */
export function fileDiff(change: TextChange): FileDiff {
  const { diff, added, removed } = wholeDiff(change, MAX_LINE_CHARS);
  return { diff, added, removed };
}

/**
 * Makes the diff of text that was replaced, once or everywhere, if its place in the file is not known: hunks state
 * so instead of line numbers.
 */
export function replacementDiff(change: TextChange, everywhere: boolean): FileDiff {
  const { diff, added, removed } = wholeReplacement(change, everywhere, MAX_LINE_CHARS);
  return { diff, ...defined({ added, removed }) };
}

export function wholeReplacement(
  change: TextChange,
  everywhere: boolean,
  maxLineChars = MAX_CHARS,
): FileDiff & { isWhole: boolean } {
  const part = changedPart(change);
  if (isTooLong(part)) return { diff: withHeader(change, beginnings(part)), isWhole: false };
  const lines = hunkLines(change, part).filter((line) => !line.startsWith("\\"));
  const place = everywhere ? "@@ every occurrence @@" : "@@ one place @@";
  const placed = lines.map((line) => (line.startsWith("@@") ? place : line));
  return { ...boundedDiff(change, placed, maxLineChars), ...(everywhere ? {} : lineCounts(lines)) };
}

/** A change in the artifact of the call that made it; the diff is computed in turns of its own. */
export async function changeArtifact(change: TextChange | undefined): Promise<{ change?: FileDiff }> {
  if (change === undefined) return {};
  await ownTurn();
  return { change: fileDiff(change) };
}

/** The change in an artifact; `undefined` if there is none, as in those of other tools and earlier versions. */
export const readChange = (artifact: unknown): FileDiff | undefined =>
  ChangeArtifact.safeParse(artifact).data?.change;

const ChangeArtifact = z.object({
  change: z.object({ diff: z.string(), added: z.number(), removed: z.number() }),
});

const lineCounts = (hunks: readonly string[]): DiffCounts => ({
  added: hunks.filter((line) => line.startsWith("+")).length,
  removed: hunks.filter((line) => line.startsWith("-")).length,
});

function withHeader({ path, before }: TextChange, lines: readonly string[]): string {
  const name = displayName(path);
  const header = [`--- ${before === undefined ? "/dev/null" : name}`, `+++ ${name}`];
  return [...header, ...(lines.length === 0 ? ["[content unchanged]"] : lines)].join("\n");
}

/** The whole change, if it is short enough to be read; else its beginning, with long lines cut. */
function boundedDiff(change: TextChange, hunks: readonly string[], maxLineChars: number) {
  const { notes, lines } = lineEnds(hunks);
  const most = firstLines(lines, maxLineChars);
  const isLong = most.length < lines.length;
  const shown = isLong ? firstLines(lines, MAX_LINE_CHARS) : most;
  const missing = lines.length - shown.length;
  const cut = missing > 0 ? [diffCut(missing)] : [];
  // A screen of its own has room for about five times as much.
  const all = isLong && maxLineChars === MAX_CHARS ? firstLines(lines, MAX_CHARS, 4.9) : [];
  return {
    diff: withHeader(change, [...notes, ...shown, ...cut]),
    isWhole: !isLong && maxLineChars === MAX_CHARS,
    ...(isLong && all.length === lines.length && { whole: withHeader(change, [...notes, ...all]) }),
  };
}

/** Lines as they are displayed, until there are too many. Unchanged lines are always cut after some characters. */
function firstLines(lines: readonly string[], maxLineChars: number, times = 1): string[] {
  const shown: string[] = [];
  let used = 0;
  for (const each of lines) {
    const head = headOf(each, each.startsWith(" ") ? MAX_LINE_CHARS : maxLineChars);
    const missing = each.length - head.length;
    const cut = missing > 0 ? ` [${counted(missing, "character")} more not shown]` : "";
    const line = displayDiffLine(head) + cut;
    used += line.length + 1;
    if (shown.length === MAX_LINES * times || used > MAX_CHARS * times) break;
    shown.push(line);
  }
  return shown;
}

/**
 * Leaves carriage returns in the lines, where they are marked, if the line ends differ, and counts those that change.
 * Removes them from a change that has one in each line, which a new file states.
 */
function lineEnds(hunks: readonly string[]): { notes: string[]; lines: readonly string[] } {
  const isEnded = (index: number): boolean =>
    /^[ +-]/.test(hunks[index] ?? "") && hunks[index + 1]?.startsWith("\\") !== true;
  const ended = hunks.filter((_, index) => isEnded(index));
  const returns = ended.filter((line) => line.endsWith("\r")).length;
  if (returns === 0) return { notes: [], lines: hunks };
  if (returns === ended.length) {
    const lines = hunks.map((line, index) => (isEnded(index) ? line.slice(0, -1) : line));
    const isNew = ended.every((line) => line.startsWith("+"));
    return { notes: isNew ? ["[each line ends with CRLF]"] : [], lines };
  }
  const removed = new Set(hunks.filter((line) => line.startsWith("-")).map((line) => line.slice(1)));
  const added = hunks.filter((line) => line.startsWith("+")).map((line) => line.slice(1));
  const gain = added.filter((line) => line.endsWith("\r") && removed.has(line.slice(0, -1))).length;
  const loss = added.filter((line) => removed.has(`${line}\r`)).length;
  const notes = [...endChange("LF to CRLF", gain), ...endChange("CRLF to LF", loss)];
  return { notes, lines: hunks };
}

const endChange = (change: string, count: number): string[] =>
  count === 0 ? [] : [`[line endings change from ${change} in ${counted(count, "line")}]`];

/** A change without the lines that both texts begin and end with, but for some of each. */
interface ChangedPart {
  /** Lines of the file before this part. */
  line: number;
  before: string;
  after: string;
}

function changedPart({ before = "", after }: TextChange, context = CONTEXT_LINES): ChangedPart {
  const isSame = (from: number, to: number): boolean => before.slice(from, to) === after.slice(from, to);
  const head = commonLength(Math.min(before.length, after.length), isSame);
  const start = lineStart(before, head, context);
  const tail = commonLength(Math.min(before.length, after.length) - start, (from, to) => {
    const [left, right] = [before.length - to, after.length - to];
    return before.slice(left, before.length - from) === after.slice(right, after.length - from);
  });
  const end = lineEnd(before, before.length - tail, context);
  return {
    line: countLines(before, start),
    before: before.slice(start, end),
    after: after.slice(start, after.length - (before.length - end)),
  };
}

/** Returns the largest number up to `limit` to which two texts are equal, by binary search. */
function commonLength(limit: number, isSame: (from: number, to: number) => boolean): number {
  let [least, most] = [0, limit];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (isSame(least, middle)) least = middle;
    else most = middle - 1;
  }
  return least;
}

/** Start of the line at `position`, or of one of the lines around it before that. */
function lineStart(text: string, position: number, context: number): number {
  let start = position;
  for (let lines = 0; lines <= context && start > 0; lines += 1) {
    start = text.lastIndexOf("\n", start - 1);
    if (start === -1) return 0;
  }
  return start === 0 ? 0 : start + 1;
}

/** End of the line behind `position` that is the last of those around it. */
function lineEnd(text: string, position: number, context: number): number {
  let end = position;
  for (let lines = 0; lines <= context; lines += 1) {
    end = text.indexOf("\n", end) + 1;
    if (end === 0) return text.length;
  }
  return end;
}

function countLines(text: string, end: number): number {
  let lines = 0;
  for (let at = 0; at < end; at += 1) if (text.charCodeAt(at) === 0x0a) lines += 1;
  return lines;
}

export const lineCount = (text: string): number =>
  countLines(text, text.length) + (text === "" || text.endsWith("\n") ? 0 : 1);

/** True if comparing both sides line by line may take more than 30 ms. */
const isTooLong = ({ before, after }: ChangedPart): boolean =>
  [before, after].some((text) => text.length > 256 * 1024 || countLines(text, text.length) > 5000);

/** In UTF-16, as the text is held: nothing has to be encoded. */
const digest = (text: string): string => createHash("sha256").update(text, "utf16le").digest("base64url");

function hunkLines({ before }: TextChange, part: ChangedPart): string[] {
  const old = before === undefined ? [] : linesToCompare(part.before);
  let shift = 0;
  return closeHunks(hunksBetween(old, linesToCompare(part.after)), 2 * CONTEXT_LINES).flatMap((hunks) => {
    const { start, lines, added, removed } = signedLines(old, hunks, CONTEXT_LINES);
    const [first, count] = [part.line + start + 1, lines.length - added];
    const header = hunkHeader(first, count, first + shift, count - removed + added);
    shift += added - removed;
    return [header, ...lines.flatMap((line) => line.split("\n"))];
  });
}

/** Beginnings, before and after, of a part that is too long to compare. */
const beginnings = ({ line, before, after }: ChangedPart): string[] => [
  `@@ from line ${line + 1}: ${before.length} characters become ${after.length}; only the beginning of each is shown @@`,
  ...beginning(before, "-"),
  ...beginning(after, "+"),
];

function beginning(text: string, mark: "-" | "+"): string[] {
  const most = MAX_LINES / 2;
  const parts = text.split("\n", most + 1);
  const lines = splitLines(parts.join("\n")).map((line) => mark + line);
  const shown = firstLines(lines, MAX_LINE_CHARS, 0.5);
  const isWhole = shown.length === lines.length && parts.length <= most;
  return isWhole ? shown : [...shown, "[more of it is not shown]"];
}

const CONTEXT_LINES = 3;
const MAX_LINES = 1000;
const MAX_LINE_CHARS = 2000;
const MAX_CHARS = 40_000;
