import { displayName, wellFormed } from "../core/text.ts";
import type { GrepMatch } from "../backends/backend.ts";
import { type LineMatcher, MAX_LINE_LENGTH, excerpt } from "../backends/search.ts";
import { counted } from "./format.ts";

export type GrepOutputMode = "content" | "files_with_matches" | "count";

export interface FormattedMatches {
  text: string;
  /** What the reader must know about lines that are not shown whole. */
  notices: string[];
}

/**
 * Search results as the model reads them; files and lines keep the backend's order. `matcher` finds the
 * match in a line that a backend returned whole although it is too long to show.
 */
export function formatMatches(
  matches: readonly GrepMatch[],
  mode: GrepOutputMode,
  matcher: LineMatcher,
): FormattedMatches {
  const files = [...groupByFile(matches)].map(([path, found]) => ({ name: displayName(path), found }));
  if (mode === "files_with_matches") return { text: files.map(({ name }) => name).join("\n"), notices: [] };
  if (mode === "count") {
    return { text: files.map(({ name, found }) => `${name}: ${found.length}`).join("\n"), notices: [] };
  }
  const sections = files.map(({ name, found }) => ({ name, lines: fileLines(found, matcher) }));
  const cut = sections.flatMap(({ lines }) => lines).filter((line) => isExcerpt(line.text)).length;
  const text = sections
    .map(({ name, lines }) => [
      `${name}:`,
      ...lines.map((line) => `  ${line.number}${line.mark} ${line.text}`),
    ])
    .map((rows) => rows.join("\n"))
    .join("\n");
  return { text, notices: cut > 0 ? [cutNotice(cut)] : [] };
}

function groupByFile(matches: readonly GrepMatch[]): Map<string, GrepMatch[]> {
  const byFile = new Map<string, GrepMatch[]>();
  for (const match of matches) {
    const found = byFile.get(match.path);
    if (found) found.push(match);
    else byFile.set(match.path, [match]);
  }
  return byFile;
}

interface ShownLine {
  number: number;
  /** `:` of a match, `-` of context. */
  mark: ":" | "-";
  text: string;
}

/** Matching lines and their context, each line once, in order. */
function fileLines(found: readonly GrepMatch[], matcher: LineMatcher): ShownLine[] {
  const lines = new Map<number, ShownLine>();
  const addContext = (number: number, text: string): void => {
    lines.set(number, { number, mark: "-", text: shownText(text, () => undefined) });
  };
  for (const { line, before = [], after = [] } of found) {
    for (const [index, text] of before.entries()) addContext(line - before.length + index, text);
    for (const [index, text] of after.entries()) addContext(line + 1 + index, text);
  }
  for (const { line, text } of found) {
    lines.set(line, { number: line, mark: ":", text: shownText(text, matcher) });
  }
  return [...lines.values()].sort((a, b) => a.number - b.number);
}

/** Backends cut long lines and mark the cuts; what one returned whole is cut here. */
function shownText(text: string, matcher: LineMatcher): string {
  const line = text.endsWith("\r") ? text.slice(0, -1) : text;
  if (line.length <= MAX_LINE_LENGTH + 2 * ELLIPSIS.length) return wellFormed(line);
  const { start, end } = matcher(line) ?? { start: 0, end: 0 };
  return wellFormed(excerpt(line, start, end));
}

/** Whether a line shows only part of a long line; a cut may move by one unit to keep a character whole. */
function isExcerpt(text: string): boolean {
  return text.length >= MAX_LINE_LENGTH - 2 && (text.startsWith(ELLIPSIS) || text.endsWith(ELLIPSIS));
}

function cutNotice(lines: number): string {
  return `[${counted(lines, "line", "lines")} over ${MAX_LINE_LENGTH} characters shown in part; read a whole line with read_file, offset = its number - 1, limit = 1]`;
}

const ELLIPSIS = "…";
