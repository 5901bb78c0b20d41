import { BYTE_ORDER_MARK } from "./encoding.ts";
import { type BackendFailure, errors } from "./errors.ts";

export type TextEdit = { ok: true; text: string; occurrences: number } | ({ ok: false } & BackendFailure);

/**
 * Replaces literal text; nothing in either string has a special meaning. Matches do not overlap and are counted in the
 * original. Keeps a byte order mark and the line ends of the file: strings with LF match lines that end in CRLF, and
 * the new text gets the line ends of the file. A string with carriage returns that matches exactly is taken exactly.
 */
export function editText(text: string, oldString: string, newString: string, replaceAll = false): TextEdit {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const body = text.slice(mark.length);
  const old = mark !== "" && oldString.startsWith(mark) ? oldString.slice(1) : oldString;
  const replacement = mark !== "" && newString.startsWith(mark) ? newString.slice(1) : newString;
  if (old === "" && body !== "") return { ok: false, ...errors.emptyOldString() };
  if (old === replacement) return { ok: false, ...errors.identicalStrings() };
  if (old === "") return { ok: true, text: mark + replacement, occurrences: 1 };
  const plan = planEdit(body, old, replacement);
  const count = plan.matches.length;
  if (count > MAX_MATCHES) return { ok: false, ...errors.tooManyMatches(oldString, MAX_MATCHES) };
  if (count === 0) return { ok: false, ...errors.stringNotFound(oldString) };
  if (count > 1 && !replaceAll) return { ok: false, ...errors.stringAmbiguous(oldString, count) };
  const pieces: string[] = [];
  let from = 0;
  for (const [start, end] of plan.matches) {
    pieces.push(body.slice(from, start), plan.replacement);
    from = end;
  }
  const edited = pieces.join("") + body.slice(from);
  if (edited === body) return { ok: false, ...errors.identicalStrings() };
  return { ok: true, text: mark + edited, occurrences: count };
}

/**
 * Adapts a new text to the byte order mark and the line ends of the text that it replaces. A text with line ends of
 * both kinds keeps them. `kept` names the adapted properties.
 */
export function keepForm(old: string, text: string): { text: string; kept: string[] } {
  const isMarked = old.startsWith(BYTE_ORDER_MARK) && !text.startsWith(BYTE_ORDER_MARK);
  const lineEnd = detectLineEnd(old);
  const plain = toLf(text);
  const hasOneKind = plain === text || plain.length === text.length - (plain.split("\n").length - 1);
  const adapted = lineEnd === "\n" ? plain : plain.replaceAll("\n", lineEnd);
  const isAdapted = hasOneKind && old.includes("\n") && adapted !== text;
  return {
    text: (isMarked ? BYTE_ORDER_MARK : "") + (isAdapted ? adapted : text),
    kept: [
      ...(isAdapted ? [`${lineEnd === "\n" ? "LF" : "CRLF"} line ends`] : []),
      ...(isMarked ? ["byte order mark"] : []),
    ],
  };
}

/** Most occurrences that an edit replaces. A file of line breaks alone has millions. */
const MAX_MATCHES = 100_000;

/** Finds the ranges of the original in order, at most one above the limit. */
function planEdit(
  body: string,
  old: string,
  replacement: string,
): { matches: [start: number, end: number][]; replacement: string } {
  // Half of a character, a lone surrogate, would match inside of whole characters.
  if (!old.isWellFormed()) return { matches: [], replacement };
  if (old.includes("\r")) {
    const exact = findRanges(body, old);
    if (exact.length > 0) return { matches: exact, replacement };
  }
  const lineEnd = detectLineEnd(body);
  const adapted = lineEnd === "\n" ? toLf(replacement) : toLf(replacement).replaceAll("\n", lineEnd);
  const needle = toLf(old);
  if (!body.includes("\r\n") || !needle.includes("\n")) {
    return {
      matches: findRanges(body, needle),
      replacement: body.includes("\r\n") || old.includes("\r") ? adapted : replacement,
    };
  }
  // Translates ranges of the text with LF line ends to those of the original, in one pass over both.
  let pairs = 0;
  let next = body.indexOf("\r\n");
  const original = (position: number): number => {
    for (; next !== -1 && next < position + pairs; next = body.indexOf("\r\n", next + 2)) pairs += 1;
    return position + pairs;
  };
  const ranges = findRanges(toLf(body), needle);
  return {
    matches: ranges.map(([start, end]) => [original(start), original(end)]),
    replacement: adapted,
  };
}

/** Splitting is faster than `replaceAll`, which takes a second for millions of pairs. */
const toLf = (text: string): string => text.split("\r\n").join("\n");

/** The line end of most lines at the beginning of `text`; LF if there is none. */
function detectLineEnd(text: string): "\n" | "\r\n" {
  const feeds = text.slice(0, 64 * 1024).split("\n");
  const pairs = feeds.slice(0, -1).filter((line) => line.endsWith("\r")).length;
  return pairs * 2 > feeds.length - 1 ? "\r\n" : "\n";
}

function findRanges(text: string, part: string): [number, number][] {
  const ranges: [number, number][] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    ranges.push([at, at + part.length]);
    if (ranges.length > MAX_MATCHES) break;
  }
  return ranges;
}
