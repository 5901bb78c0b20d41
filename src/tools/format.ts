/** Format of tool output: names, line numbers, long lines, notices. Pure text in, text out. */

/** `text` in pieces of at most `size` UTF-16 units (at least two), none ending inside a surrogate pair. */
export function splitLine(text: string, size: number): string[] {
  const step = Math.max(size, 2);
  if (text.length <= step) return [text];
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + step, text.length);
    if (end < text.length && (text.codePointAt(end - 1) ?? 0) > 0xffff) end -= 1;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

/**
 * One source line as output lines: `12⇥text` when it shows its number, else `⇥text`. Numbers stand on every fifth
 * line (on each, they would be a sixth of the code that a model reads), and if `isFirst` begins a page. A
 * line over `maxLineChars` shows its number and continues on lines labelled `12.1`, `12.2`, ….
 */
export function numberLine(
  line: string,
  lineNumber: number,
  { maxLineChars, isFirst = false }: { maxLineChars: number; isFirst?: boolean },
): string[] {
  const pieces = splitLine(line, maxLineChars);
  const isNumbered = isFirst || pieces.length > 1 || lineNumber % 5 === 0;
  const label = isNumbered ? String(lineNumber) : "";
  return pieces.map((piece, index) => `${index === 0 ? label : `${lineNumber}.${index}`}\t${piece}`);
}

/**
 * The lines of a page. A final line break ends the last line; with `count` known, exactly that many lines are meant, so
 * that a page ending in an empty line keeps it. The carriage return of a CRLF line break is not part of the line.
 */
export function splitLines(content: string, count?: number): string[] {
  const lines = content.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  if (count !== undefined) return lines.slice(0, count);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** `count` things in words: `1 file`, `2 files`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

export const applyFilesText = (some: number, all: number): string =>
  some === all ? `Apply ${all === 1 ? "the file" : `all ${all} files`}` : `Apply ${some} of ${all} files`;

/** `text`, and below it the notices there are, after a blank line. */
export const withNotices = (text: string, notices: readonly string[]): string =>
  notices.length === 0 ? text : `${text}\n\n${notices.join("\n")}`;
