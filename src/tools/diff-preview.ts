import { createHash } from "node:crypto";
import { structuredPatch } from "diff";
import { z } from "zod";
import type { Backend, FileData, ResolveOptions } from "../backends/backend.ts";
import { ownTurn } from "../core/concurrency.ts";
import { type DiffCounts, diffCut } from "../core/diff.ts";
import { displayName, displayText, headOf } from "../core/text.ts";
import { counted, splitLines } from "./format.ts";
import type { BoundPreview, FileDiff } from "./tool.ts";

export interface TextChange {
  path: string;
  /** `undefined`: the file does not exist yet. */
  before: string | undefined;
  after: string;
}

interface WholeDiff extends Required<FileDiff> {
  /**
   * All changed lines and those around them, wherever in the file they stand. For a part that is too long to compare
   * these are digests.
   */
  effect: () => readonly string[];
}

/**
 * A unified diff for a person to read, bounded in size and in work: cut lines and missing lines are
 * stated. Carriage returns of CRLF line breaks are not shown; other control characters are escaped.
 */
export function wholeDiff(change: TextChange): WholeDiff {
  const part = changedPart(change);
  if (isTooLong(part)) {
    const { before, after } = changedPart(change, 0);
    return {
      diff: withHeader(change, beginnings(part)),
      added: lineCount(after),
      removed: lineCount(before),
      effect: () => [digest(part.before), digest(part.after)],
    };
  }
  const hunks = hunkLines(change, part);
  return {
    diff: withHeader(change, boundedLines(hunks)),
    ...countsOf(hunks),
    effect: () => hunks.map((line) => (line.startsWith("@@") ? "@@" : line)),
  };
}

/** The same for the journal. */
export function fileDiff(change: TextChange): FileDiff {
  const { diff, added, removed } = wholeDiff(change);
  return { diff, added, removed };
}

/**
 * The same for text that was replaced, once or everywhere, when where it stands in the file is not known: hunks say
 * so instead of line numbers.
 */
export function replacementDiff(change: TextChange, everywhere: boolean): FileDiff {
  const part = changedPart(change);
  if (isTooLong(part)) return { diff: withHeader(change, beginnings(part)) };
  const lines = hunkLines(change, part).filter((line) => !line.startsWith("\\"));
  const place = everywhere ? "@@ every occurrence @@" : "@@ one place @@";
  const placed = lines.map((line) => (line.startsWith("@@") ? place : line));
  return { diff: withHeader(change, boundedLines(placed)), ...(everywhere ? {} : countsOf(lines)) };
}

/** A change in the artifact of the call that made it; the diff is computed in turns of its own. */
export async function artifactOf(change: TextChange | undefined): Promise<{ change?: FileDiff }> {
  if (change === undefined) return {};
  await ownTurn();
  return { change: fileDiff(change) };
}

/** The change in an artifact; `undefined` if there is none, as in those of other tools and earlier versions. */
export const diffIn = (artifact: unknown): FileDiff | undefined =>
  ChangeArtifact.safeParse(artifact).data?.change;

const ChangeArtifact = z.object({
  change: z.object({ diff: z.string(), added: z.number(), removed: z.number() }),
});

const countsOf = (hunks: readonly string[]): DiffCounts => ({
  added: hunks.filter((line) => line.startsWith("+")).length,
  removed: hunks.filter((line) => line.startsWith("-")).length,
});

function withHeader({ path, before }: TextChange, lines: readonly string[]): string {
  const name = displayName(path);
  const header = [`--- ${before === undefined ? "/dev/null" : name}`, `+++ ${name}`];
  return [...header, ...(lines.length === 0 ? ["[no change of content]"] : lines)].join("\n");
}

function boundedLines(hunks: readonly string[]): string[] {
  const shown = firstLines(hunks, MAX_LINES, MAX_CHARS);
  const missing = hunks.length - shown.length;
  return missing > 0 ? [...shown, diffCut(missing)] : shown;
}

/** Lines as they are displayed, until there are too many. */
function firstLines(lines: readonly string[], maxLines: number, maxChars: number): string[] {
  const shown: string[] = [];
  let used = 0;
  for (const each of lines) {
    const line = displayLine(each);
    used += line.length + 1;
    if (shown.length === maxLines || used > maxChars) break;
    shown.push(line);
  }
  return shown;
}

/** A change without the lines that both texts begin and end with, but for some of each. */
interface ChangedPart {
  /** Lines of the file before this part. */
  line: number;
  before: string;
  after: string;
}

function changedPart({ before = "", after }: TextChange, context = CONTEXT_LINES): ChangedPart {
  const head = commonLength(Math.min(before.length, after.length), (from, to) => {
    return before.slice(from, to) === after.slice(from, to);
  });
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

/** The largest number up to `limit` to which two texts are the same, halving what is left to compare. */
function commonLength(limit: number, isSame: (from: number, to: number) => boolean): number {
  let [least, most] = [0, limit];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (isSame(least, middle)) least = middle;
    else most = middle - 1;
  }
  return least;
}

/** Where the line at `position` starts, or one of the lines around it before that. */
function lineStart(text: string, position: number, context: number): number {
  let start = position;
  for (let lines = 0; lines <= context && start > 0; lines += 1) {
    start = text.lastIndexOf("\n", start - 1);
    if (start === -1) return 0;
  }
  return start === 0 ? 0 : start + 1;
}

/** Where a line behind `position` ends that is the last of those around it. */
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
  for (let at = 0; at < end; at += 1) if (text.charCodeAt(at) === LINE_FEED) lines += 1;
  return lines;
}

export const lineCount = (text: string): number =>
  countLines(text, text.length) + (text === "" || text.endsWith("\n") ? 0 : 1);

const isTooLong = ({ before, after }: ChangedPart): boolean =>
  [before, after].some(
    (text) => text.length > MAX_COMPARED || countLines(text, text.length) > MAX_COMPARED_LINES,
  );

/** In UTF-16, as the text is held: nothing has to be encoded. */
const digest = (text: string): string => createHash("sha256").update(text, "utf16le").digest("base64url");

function hunkLines({ path, before }: TextChange, part: ChangedPart): string[] {
  if (before === undefined) return oneHunk([], linesOf(part.after), 0);
  const patch = structuredPatch(path, path, part.before, part.after, "", "", {
    context: CONTEXT_LINES,
    stripTrailingCr: true,
    maxEditLength: MAX_EDIT_LENGTH,
  });
  if (!patch) return oneHunk(linesOf(part.before), linesOf(part.after), part.line);
  return patch.hunks.flatMap((hunk) => [
    hunkHeader(part.line + hunk.oldStart, hunk.oldLines, part.line + hunk.newStart, hunk.newLines),
    ...hunk.lines,
  ]);
}

/** How a part that is too long to compare begins, before and after. */
const beginnings = ({ line, before, after }: ChangedPart): string[] => [
  `@@ from line ${line + 1}: ${before.length} characters become ${after.length}; the beginning of each is shown @@`,
  ...beginning(before, "-"),
  ...beginning(after, "+"),
];

function beginning(text: string, mark: "-" | "+"): string[] {
  const most = MAX_LINES / 2;
  const parts = text.split("\n", most + 1);
  const lines = splitLines(parts.join("\n")).map((line) => mark + line);
  const shown = firstLines(lines, most, MAX_CHARS / 2);
  const isWhole = shown.length === lines.length && parts.length <= most;
  return isWhole ? shown : [...shown, "[more of it is not shown]"];
}

/** Everything between the common start and the common end as one replacement: coarse, but always cheap. */
function oneHunk(before: readonly string[], after: readonly string[], line: number): string[] {
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
  const start = line + head - lead.length;
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
const MAX_LINES = 1000;
const MAX_LINE_CHARS = 2000;
const MAX_CHARS = 40_000;
/** Edits the exact diff is computed for; above, the coarse one is shown. The time grows with the square: 20 ms. */
const MAX_EDIT_LENGTH = 300;
/** Characters and lines of either side of a change that is compared line by line: 30 ms. */
const MAX_COMPARED = 256 * 1024;
const MAX_COMPARED_LINES = 5000;
const LINE_FEED = 0x0a;

/** What a file holds at the moment a person is asked about changing it. */
export type CurrentText =
  | { kind: "absent" }
  | { kind: "text"; text: string; version: string | undefined }
  | { kind: "unreadable"; reason: string };

/** Reads the file through the backend, unless it is too large to compare. */
export async function currentText(path: string, backend: Backend, signal: AbortSignal): Promise<CurrentText> {
  const listed = await backend.ls(path, { signal });
  const [entry] = listed.files ?? [];
  if (entry && entry.path === path && (entry.size ?? 0) > MAX_PREVIEW_BYTES) {
    return { kind: "unreadable", reason: "the file is too large to compare" };
  }
  const { data, error, code, version } = await backend.readRaw(path, { signal });
  if (code === "not_found") return { kind: "absent" };
  if (error !== undefined || !data) return { kind: "unreadable", reason: displayName(error ?? "no content") };
  const text = textOf(data);
  return text === undefined
    ? { kind: "unreadable", reason: "the file is binary" }
    : { kind: "text", text, version };
}

/** A path a call names and, where links lead elsewhere, that place: an approval is bound to it. */
export interface Destination {
  place: string | undefined;
  /** For a summary. */
  name: string;
}

export async function destinationOf(
  path: string,
  backend: Backend,
  options: ResolveOptions = {},
): Promise<Destination> {
  const place = backend.followLinks === undefined ? path : await backend.followLinks(path, options);
  return { place, name: place === path || place === undefined ? path : `${path}, which leads to ${place}` };
}

/** A change of text as a diff, bound to where it is made and to every line of it; made in turns of its own. */
export async function diffPreview(
  summary: string,
  change: TextChange,
  place: string | undefined,
): Promise<BoundPreview> {
  await ownTurn();
  const { diff, effect } = wholeDiff(change);
  await ownTurn();
  return { kind: "diff", summary: displayName(summary), detail: diff, place, effect: effect() };
}

/** A call that cannot be shown as a diff: its arguments. */
export function argumentsPreview(
  summary: string,
  args: Record<string, unknown>,
  place?: string,
): BoundPreview {
  const pretty = JSON.stringify(args, null, 2);
  const missing = pretty.length - MAX_ARGUMENT_CHARS;
  const detail =
    missing > 0 ? `${headOf(pretty, MAX_ARGUMENT_CHARS)}\n[${missing} more characters not shown]` : pretty;
  const shown = { summary: displayName(summary), detail: displayText(detail) };
  return { kind: "arguments", ...shown, place, effect: null };
}

function textOf({ content }: FileData): string | undefined {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.join("\n") : undefined;
}

const MAX_PREVIEW_BYTES = 10 * 1024 * 1024;
const MAX_ARGUMENT_CHARS = 20_000;
