import { wellFormed } from "../core/text.ts";
/**
 * A page of a text file as the model reads it: numbered lines, cut to size, and where to go on.
 */
import { numberLine, withNotices } from "./format.ts";

/** Characters kept free for the footer when a page is cut to size. */
const FOOTER_ROOM = 300;
/** What the label of a piece may take of its line. */
const LABEL_ROOM = 24;

/** A page of a text file as a backend returned it. */
export interface Page {
  lines: readonly string[];
  /** Number of the first line, counted from 0. */
  start: number;
  /** Piece of the first line to begin with, counted from 0. Default 0. */
  piece?: number;
  /** Lines of the file, when known. */
  total?: number;
  /** Whether the file has lines after this page. */
  more: boolean;
}

export interface PageLimits {
  /** Size of a piece. */
  maxLineChars: number;
  /** Size of the whole output in characters; `undefined`: no limit. */
  maxChars: number | undefined;
}

export interface FormattedPage {
  text: string;
  /** One past the last line shown, counted from 0. */
  end: number;
  /** Where to go on; absent when nothing remains. */
  nextOffset?: number;
  /** Piece of the line at `nextOffset` to go on with; absent when that is its first. */
  nextPiece?: number;
}

/**
 * A page with line numbers (see `numberLine`) and, if anything remains, a footer that names where to continue. The output is
 * cut to size on a line end; a line that is larger than the output is cut between its pieces. `remarks` are
 * added to the footer.
 */
export function formatPage(page: Page, limits: PageLimits, remarks: readonly string[] = []): FormattedPage {
  const room = roomFor(limits.maxChars);
  const pieceSize = Math.min(limits.maxLineChars, room - LABEL_ROOM);
  const shown: string[] = [];
  const notices = [...remarks];
  let used = 0;
  let lines = 0;
  for (const [index, line] of page.lines.entries()) {
    const from = index === 0 ? (page.piece ?? 0) : 0;
    const pieces = numberLine(wellFormed(line), page.start + index + 1, {
      maxLineChars: pieceSize,
      isFirst: shown.length === 0,
    }).slice(from);
    if (from > 0 && pieces.length === 0) notices.push(`[line ${page.start + 1} has no piece ${from}]`);
    const fitting = howManyFit(pieces, room - used);
    if (fitting < pieces.length && index > 0) break;
    shown.push(...pieces.slice(0, Math.max(fitting, 1)));
    if (fitting < pieces.length) {
      const next = from + Math.max(fitting, 1);
      const footer = cutLineFooter(page.start, line.length, { next, of: from + pieces.length });
      const text = withNotices(shown.join("\n"), [...notices, footer]);
      return { text, end: page.start + 1, nextOffset: page.start, nextPiece: next };
    }
    lines += 1;
    used += pieces.reduce((sum, piece) => sum + piece.length + 1, 0);
  }
  const end = page.start + lines;
  const remains = page.more || lines < page.lines.length;
  if (remains) notices.push(pageFooter(page.start, end, page.total));
  return { text: withNotices(shown.join("\n"), notices), end, ...(remains ? { nextOffset: end } : {}) };
}

/** `[lines 1-50 of 120; continue with offset=50]`; `start` and `end` count from 0, `end` is exclusive. */
function pageFooter(start: number, end: number, total: number | undefined): string {
  const of = total === undefined ? "" : ` of ${total}`;
  return `[lines ${start + 1}-${end}${of}; continue with offset=${end}]`;
}

function cutLineFooter(offset: number, characters: number, pieces: { next: number; of: number }): string {
  return (
    `[line ${offset + 1} has ${characters} characters in ${pieces.of} pieces; ` +
    `continue with offset=${offset} piece=${pieces.next}, or find text in it with grep]`
  );
}

function roomFor(maxChars: number | undefined): number {
  return maxChars === undefined ? Infinity : Math.max(maxChars - FOOTER_ROOM, Math.ceil(maxChars / 2));
}

function howManyFit(pieces: readonly string[], room: number): number {
  let used = -1;
  const tooMany = pieces.findIndex((piece) => (used += piece.length + 1) > room);
  return tooMany < 0 ? pieces.length : tooMany;
}
