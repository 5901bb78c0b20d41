import type { GrepMatch } from "../backends/backend.ts";
import { headOf } from "../core/text.ts";
import { counted, displayName, wellFormed } from "./format.ts";

export type GrepOutputMode = "content" | "files_with_matches" | "count";

/** Finds where in a line the pattern matches: start and length in UTF-16 units. */
export type MatchLocator = (line: string) => { start: number; length: number } | undefined;

export interface FormattedMatches {
  text: string;
  /** What the reader must know about lines that are not shown whole. */
  notices: string[];
}

/** Search results as the model reads them; files and lines keep the backend's order. */
export function formatMatches(
  matches: readonly GrepMatch[],
  mode: GrepOutputMode,
  locate: MatchLocator,
): FormattedMatches {
  const byFile = groupByFile(matches);
  const names = [...byFile].map(([path, found]) => ({ name: displayName(path), found }));
  if (mode === "files_with_matches") return { text: names.map(({ name }) => name).join("\n"), notices: [] };
  if (mode === "count") {
    return { text: names.map(({ name, found }) => `${name}: ${found.length}`).join("\n"), notices: [] };
  }
  let cut = 0;
  const show = (line: number, mark: string, text: string, range?: ReturnType<MatchLocator>): string => {
    const shown = cutAround(text.endsWith("\r") ? text.slice(0, -1) : text, range);
    if (shown.cut) cut += 1;
    return `  ${line}${mark} ${wellFormed(shown.text)}`;
  };
  const text = names
    .map(({ name, found }) => [`${name}:`, ...fileLines(found, locate, show)].join("\n"))
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

type ShowLine = (line: number, mark: string, text: string, range?: ReturnType<MatchLocator>) => string;

/** Matching lines and their context, each line once, in order. */
function fileLines(found: readonly GrepMatch[], locate: MatchLocator, show: ShowLine): string[] {
  const context = new Map<number, string>();
  for (const { line, before = [], after = [] } of found) {
    for (const [index, text] of before.entries()) context.set(line - before.length + index, text);
    for (const [index, text] of after.entries()) context.set(line + 1 + index, text);
  }
  for (const { line } of found) context.delete(line);
  const rows = [
    ...found.map(({ line, text }) => ({ line, mark: ":", text, range: rangeOf(text, locate) })),
    ...[...context].map(([line, text]) => ({ line, mark: "-", text, range: undefined })),
  ];
  return rows
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, mark, text, range }) => show(line, mark, text, range));
}

function rangeOf(text: string, locate: MatchLocator): ReturnType<MatchLocator> {
  return text.length > MAX_LINE_CHARS ? locate(headOf(text, MAX_LOCATE_CHARS)) : undefined;
}

/** `text`, or of a long line the part around `range`, with an ellipsis where something is missing. */
function cutAround(text: string, range: ReturnType<MatchLocator>): { text: string; cut: boolean } {
  if (text.length <= MAX_LINE_CHARS) return { text, cut: false };
  const { start, length } = range ?? { start: 0, length: 0 };
  const lead = Math.floor(Math.max(MAX_LINE_CHARS - length, 0) / 2);
  const from = Math.max(Math.min(start - lead, text.length - MAX_LINE_CHARS), 0);
  const begin = isLowSurrogate(text, from) ? from + 1 : from;
  const part = headOf(text.slice(begin), MAX_LINE_CHARS);
  const end = begin + part.length;
  return { text: `${begin > 0 ? "…" : ""}${part}${end < text.length ? "…" : ""}`, cut: true };
}

function isLowSurrogate(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function cutNotice(lines: number): string {
  return `[${counted(lines, "line", "lines")} over ${MAX_LINE_CHARS} characters shown in part; read a whole line with read_file, offset = its number - 1, limit = 1]`;
}

const MAX_LINE_CHARS = 1000;
/** Of a very long line, how much is searched for the place of the match. */
const MAX_LOCATE_CHARS = 1_000_000;
