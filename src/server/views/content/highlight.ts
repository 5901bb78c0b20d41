/**
 * Colours code in the five ways that the page's style has. Reads each character about once, whatever the text, so it
 * needs no time limit; it knows words, not grammars.
 */
import { Html, html } from "../html.ts";
import type { Language, Syntax } from "./languages.ts";

/** Class names: keyword, string, number, comment, name of a function or key. */
type Look = "hk" | "hs" | "hn" | "hc" | "hf";

export interface Piece {
  text: string;
  look?: Look;
}

/** The lines of `code` in pieces of one look, which together are `code`. Above the limits, lines of one piece. */
export function highlightLines(code: string, syntax: Syntax | undefined): Piece[][] {
  const lines = code.split("\n");
  if (syntax === undefined || code.length > MAX_CHARACTERS || lines.length > MAX_LINES) {
    return lines.map((text) => [{ text }]);
  }
  if (syntax === "diff") return lines.map((text) => [piece(text, DIFF_LOOKS[text.slice(0, 1)])]);
  const scan = new Scan(code);
  if (syntax === "markup") scanMarkup(scan);
  else if (syntax === "markdown") scanMarkdown(scan);
  else scanProgram(scan, syntax);
  return scan.lines();
}

/** The same as HTML, each line for itself. */
export const highlightedLines = (code: string, syntax: Syntax | undefined): Html[] =>
  highlightLines(code, syntax).map((pieces) => html`${pieces.map(renderPiece)}`);

export const renderPiece = ({ text, look }: Piece): Html | string =>
  look === undefined ? text : html`<span class="${look}">${text}</span>`;

const MAX_CHARACTERS = 100_000;
const MAX_LINES = 2000;
const DIFF_LOOKS: Readonly<Record<string, Look>> = { "@": "hk", "+": "hs", "-": "hn" };

const piece = (text: string, look: Look | undefined): Piece =>
  look === undefined ? { text } : { text, look };

/** A position in a text and the looks of what is behind it. */
class Scan {
  readonly text: string;
  at = 0;
  readonly #marked: { start: number; end: number; look: Look }[] = [];

  constructor(text: string) {
    this.text = text;
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  /** Goes on to `end`. */
  take(end: number, look?: Look): void {
    if (look !== undefined) this.#marked.push({ start: this.at, end, look });
    this.at = end;
  }

  /** Goes on behind what a sticky expression finds here; whether it found anything. */
  takeMatch(expression: RegExp, look?: Look): boolean {
    const end = this.endOf(expression);
    if (end === undefined) return false;
    this.take(end, look);
    return true;
  }

  /** Where that ends which a sticky expression finds here. */
  endOf(expression: RegExp): number | undefined {
    expression.lastIndex = this.at;
    return expression.test(this.text) ? expression.lastIndex : undefined;
  }

  /** Goes on behind the next `close`, or to the end of the text. */
  takeThrough(close: string, look: Look, from = this.at): void {
    const found = this.text.indexOf(close, from);
    this.take(found === -1 ? this.text.length : found + close.length, look);
  }

  startsWith(text: string): boolean {
    return this.text.startsWith(text, this.at);
  }

  lines(): Piece[][] {
    const lines: Piece[][] = [[]];
    const add = (part: string, look?: Look): void => {
      for (const [index, text] of part.split("\n").entries()) {
        if (index > 0) lines.push([]);
        if (text !== "") lines.at(-1)?.push(piece(text, look));
      }
    };
    let from = 0;
    for (const { start, end, look } of this.#marked) {
      add(this.text.slice(from, start));
      add(this.text.slice(start, end), look);
      from = end;
    }
    add(this.text.slice(from));
    return lines;
  }
}

const BLANKS = /\s+/y;
const NAME = /@?[\p{L}_$][\p{L}\p{N}_$]*/uy;
const HYPHENATED = /[-@]{0,2}[\p{L}_$][\p{L}\p{N}_$-]*/uy;
const NUMBER = /#?\d[\w.]*/y;
const CALL = /\s?\(/y;
const COLON = /\s*:(?!:)/y;
const CHARACTER = /'(?:[^\\'\n]|\\[^\n]{1,8}?)'/y;
/** Its alternatives begin differently, so it is not tried in two ways. */
const EXPRESSION = /\/(?![*/])(?:[^\\/[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n]){0,100}\]){1,200}\/[a-z]{0,9}/y;
/** Marks that begin nothing in any of the languages. */
const MARKS = /[()[\]{}<>,;:.?!&|=+*%^~]+/y;

function scanProgram(scan: Scan, language: Language): void {
  // Whether a value may end here, behind which a slash divides.
  let isBehindValue = false;
  while (!scan.isAtEnd) {
    if (scan.takeMatch(BLANKS) || takeComment(scan, language)) continue;
    if (takeString(scan, language)) {
      isBehindValue = true;
    } else if (language.hasExpressions && !isBehindValue && scan.takeMatch(EXPRESSION, "hs")) {
      isBehindValue = true;
    } else if (scan.takeMatch(NUMBER, "hn")) {
      isBehindValue = true;
    } else {
      isBehindValue = takeName(scan, language);
    }
  }
}

function takeComment(scan: Scan, language: Language): boolean {
  const block = language.blockComments?.find(([open]) => scan.startsWith(open));
  if (block !== undefined) {
    scan.takeThrough(block[1], "hc", scan.at + block[0].length);
    return true;
  }
  const isFree = !language.spacedComments || scan.at === 0 || /\s/.test(scan.text.charAt(scan.at - 1));
  if (!isFree || !language.lineComments?.some((mark) => scan.startsWith(mark))) return false;
  const end = scan.text.indexOf("\n", scan.at);
  scan.take(end === -1 ? scan.text.length : end, "hc");
  return true;
}

function takeString(scan: Scan, language: Language): boolean {
  if (language.hasLifetimes && scan.takeMatch(CHARACTER, "hs")) return true;
  const long = language.longQuotes?.find((quote) => scan.startsWith(quote));
  const quote = long ?? scan.text.charAt(scan.at);
  if (long === undefined && !language.quotes.includes(quote)) return false;
  const end = stringEnd(scan, quote, long !== undefined);
  const start = scan.at;
  scan.at = end;
  const isKey = language.names === "keys" && scan.endOf(COLON) !== undefined;
  scan.at = start;
  scan.take(end, isKey ? "hf" : "hs");
  return true;
}

/** Behind the closing quote; at the end of the line or the text if there is none. */
function stringEnd({ text, at }: Scan, quote: string, isLong: boolean): number {
  for (let end = at + quote.length; end < text.length; end += 1) {
    if (text.startsWith(quote, end)) return end + quote.length;
    if (text[end] === "\\") end += 1;
    else if (text[end] === "\n" && !isLong) return end;
  }
  return text.length;
}

/** Takes a name or one other character; whether a value may end behind it. */
function takeName(scan: Scan, language: Language): boolean {
  const start = scan.at;
  const end = scan.endOf(language.hyphens ? HYPHENATED : NAME);
  if (end === undefined) {
    scan.take(scan.endOf(MARKS) ?? start + 1);
    return /[)\]}]/.test(scan.text.charAt(scan.at - 1));
  }
  const name = scan.text.slice(start, end);
  const isKeyword = language.keywords.has(language.ignoresCase ? name.toLowerCase() : name);
  scan.at = end;
  const isNamed = scan.endOf(language.names === "calls" ? CALL : COLON) !== undefined;
  scan.at = start;
  if (isKeyword || name.startsWith("@")) scan.take(end, "hk");
  else scan.take(end, isNamed ? "hf" : undefined);
  return !isKeyword;
}

const TAG = /<[/?!]?[\p{L}][\p{L}\p{N}:.-]*/uy;
const TAG_END = /[/?]?>/y;
const ATTRIBUTE = /[^\s"'<>/=]+/y;
const QUOTED = /"[^"]*"|'[^']*'/y;
const BETWEEN_TAGS = /[^<]+/y;

function scanMarkup(scan: Scan): void {
  for (let isInTag = false; !scan.isAtEnd;) {
    if (scan.startsWith("<!--")) scan.takeThrough("-->", "hc");
    else if (scan.takeMatch(TAG, "hk")) isInTag = true;
    else if (isInTag && scan.takeMatch(TAG_END, "hk")) isInTag = false;
    else if (isInTag && (scan.takeMatch(QUOTED, "hs") || scan.takeMatch(ATTRIBUTE, "hf"))) continue;
    else if (isInTag || !scan.takeMatch(BETWEEN_TAGS)) scan.take(scan.at + 1);
  }
}

const HEADING = /#{1,6} [^\n]*/y;
const FENCE = /[ \t]*(?:```|~~~)[^\n]*/y;
const MARK = /[ \t]*(?:[-*+]|\d{1,9}[.)]|>)(?= )/y;
const CODE = /`[^`\n]+`/y;
const WORDS = /[^`\n]+/y;

function scanMarkdown(scan: Scan): void {
  for (let isInFence = false; !scan.isAtEnd;) {
    if (scan.takeMatch(FENCE, "hc")) isInFence = !isInFence;
    else if (!isInFence && !scan.takeMatch(HEADING, "hk")) scan.takeMatch(MARK, "hk");
    while (!scan.isAtEnd && !scan.startsWith("\n")) {
      if (scan.takeMatch(isInFence ? LINE : WORDS, isInFence ? "hs" : undefined)) continue;
      if (!scan.takeMatch(CODE, "hs")) scan.take(scan.at + 1);
    }
    scan.take(scan.at + 1);
  }
}

const LINE = /[^\n]+/y;
