import {
  type BackendFailure,
  emptyOldString,
  identicalStrings,
  stringAmbiguous,
  stringNotFound,
} from "./errors.ts";

export type TextEdit = { ok: true; text: string; occurrences: number } | ({ ok: false } & BackendFailure);

export const BYTE_ORDER_MARK = "\ufeff";

/**
 * Replaces literal text; nothing in either string has a special meaning. Matches do not overlap and are
 * counted in the original. A byte order mark and the line ends of the file stay: strings written with LF
 * match lines that end in CRLF, and what they put in gets the line ends of the file. A string that names
 * carriage returns and matches as written is taken as written.
 */
export function editText(text: string, oldString: string, newString: string, replaceAll = false): TextEdit {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const body = text.slice(mark.length);
  const old = mark !== "" && oldString.startsWith(mark) ? oldString.slice(1) : oldString;
  const replacement = mark !== "" && newString.startsWith(mark) ? newString.slice(1) : newString;
  if (old === "") {
    if (body !== "") return { ok: false, ...emptyOldString() };
    return replacement === ""
      ? { ok: false, ...identicalStrings() }
      : { ok: true, text: mark + replacement, occurrences: 1 };
  }
  if (old === replacement) return { ok: false, ...identicalStrings() };
  const plan = planEdit(body, old, replacement);
  const count = plan.matches.length;
  if (count === 0) return { ok: false, ...stringNotFound(oldString) };
  if (count > 1 && !replaceAll) return { ok: false, ...stringAmbiguous(oldString, count) };
  const edited = splice(body, plan);
  if (edited === body) return { ok: false, ...identicalStrings() };
  return { ok: true, text: mark + edited, occurrences: count };
}

interface EditPlan {
  /** Ranges of the original, in order. */
  matches: [start: number, end: number][];
  replacement: string;
}

function planEdit(body: string, old: string, replacement: string): EditPlan {
  if (LONE_SURROGATE.test(old)) return { matches: [], replacement };
  if (old.includes("\r")) {
    const exact = rangesOf(body, old);
    if (exact.length > 0) return { matches: exact, replacement };
  }
  const lineEnd = lineEndOf(body);
  const adapted = lineEnd === "\n" ? toLf(replacement) : toLf(replacement).replaceAll("\n", lineEnd);
  const needle = toLf(old);
  if (!body.includes("\r\n") || !needle.includes("\n")) {
    return {
      matches: rangesOf(body, needle),
      replacement: body.includes("\r\n") || old.includes("\r") ? adapted : replacement,
    };
  }
  return { matches: toOriginal(body, rangesOf(toLf(body), needle)), replacement: adapted };
}

// With the `u` flag a surrogate class matches only halves that stand alone.
const LONE_SURROGATE = /[\ud800-\udfff]/u;

const toLf = (text: string): string => text.replaceAll("\r\n", "\n");

/** The line end most lines of `text` have; LF when it has none. */
function lineEndOf(text: string): "\n" | "\r\n" {
  const pairs = rangesOf(text, "\r\n").length;
  return pairs > 0 && pairs * 2 > rangesOf(text, "\n").length ? "\r\n" : "\n";
}

function rangesOf(text: string, part: string): [number, number][] {
  const ranges: [number, number][] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    ranges.push([at, at + part.length]);
  }
  return ranges;
}

/** Translates ranges of the text with LF line ends to the text with CRLF ones. Both run left to right once. */
function toOriginal(body: string, ranges: readonly [number, number][]): [number, number][] {
  let removed = 0;
  let next = body.indexOf("\r\n");
  const original = (position: number): number => {
    while (next !== -1 && next - removed < position) {
      removed += 1;
      next = body.indexOf("\r\n", next + 2);
    }
    return position + removed;
  };
  return ranges.map(([start, end]) => [original(start), original(end)]);
}

function splice(body: string, { matches, replacement }: EditPlan): string {
  const pieces: string[] = [];
  let from = 0;
  for (const [start, end] of matches) {
    pieces.push(body.slice(from, start), replacement);
    from = end;
  }
  return pieces.join("") + body.slice(from);
}
