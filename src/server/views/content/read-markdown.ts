/**
 * Reads Markdown with `marked`, within limits. It takes quadratic time for marks of emphasis that do not pair up, and
 * far more for each list item than for a line; so work is estimated before it is done, from what it took, and what
 * is beyond the limit is left as it was written. Units of work are about 25 nanoseconds.
 */
import { Lexer, type Token } from "marked";

/** What was read of a text, and the rest, which is too long or too expensive to be read. */
export function readMarkdown(text: string): { tokens: Token[]; rest: string } {
  const { markdown, rest } = readable(text.replaceAll("\r\n", "\n"));
  try {
    return { tokens: tokensOf(markdown), rest };
  } catch {
    // It gives up on some texts by throwing, for one when they are nested too deeply for the stack.
    return { tokens: [], rest: text };
  }
}

function tokensOf(markdown: string): Token[] {
  const lexer = new Lexer({ gfm: true });
  lexer.blockTokens(markdown, lexer.tokens);
  // Footnotes are not links.
  for (const tag of Object.keys(lexer.tokens.links)) if (tag.startsWith("^")) delete lexer.tokens.links[tag];
  const isCheap = inlineBudget(markdown);
  for (const { src, tokens } of lexer.inlineQueue) {
    if (isCheap(src)) lexer.inlineTokens(src, tokens);
    else tokens.push({ type: "text", raw: src, text: src, escaped: false });
  }
  return lexer.tokens;
}

/** The beginning of `text` that is read as Markdown, and the rest. */
function readable(text: string): { markdown: string; rest: string } {
  if (text.length > MAX_CHARACTERS) return { markdown: "", rest: text };
  let budget = BASE_WORK + WORK_PER_CHARACTER * text.length;
  let isBehindBlank = true;
  for (let start = 0; start < text.length;) {
    const end = text.indexOf("\n", start) + 1 || text.length;
    const line = text.slice(start, Math.min(end, start + MAX_MARGIN));
    const isBlank = line.trim() === "";
    const depth = depthOf(line);
    const mayBeginBlock = isBehindBlank || BLOCK.test(line);
    budget -= isBlank
      ? WORK_PER_LINE
      : WORK_PER_LINE + (mayBeginBlock ? WORK_PER_BLOCK : 0) + depth * WORK_PER_LEVEL;
    if (depth > MAX_DEPTH || budget < 0) return { markdown: text.slice(0, start), rest: text.slice(start) };
    isBehindBlank = isBlank;
    start = end;
  }
  return { markdown: text, rest: "" };
}

/** Levels of lists and quotations that a line may open, or stand in by its indentation. */
function depthOf(line: string): number {
  let depth = 0;
  let indent = 0;
  for (const [blanks] of line.matchAll(MARGIN)) {
    if (blanks.trim() === "") indent += blanks.replaceAll("\t", "    ").length;
    else depth += 1;
  }
  return depth === 0 ? 0 : depth + Math.floor(indent / 4);
}

/** A line that may be a block by itself, without a blank line before it. */
const BLOCK = /^[ \t]{0,9}[-+*>`~|=#<[\d]/;
/** Blanks, or one mark of a list or a quotation, before the text of a line. */
const MARGIN = /[ \t]+|>|[-*+](?=\s)|\d{1,9}[.)](?=\s)/gy;

/** Decides for one paragraph, heading or cell after the other whether its marks inside are read. */
function inlineBudget(text: string): (source: string) => boolean {
  let budget = BASE_WORK + WORK_PER_CHARACTER * text.length;
  return (source) => {
    const marks = source.match(EMPHASIS)?.length ?? 0;
    const others = source.match(SPECIAL)?.length ?? 0;
    const work = source.length + marks * source.length + others * WORK_PER_MARK;
    if (work > MAX_PARAGRAPH_WORK || work > budget) return false;
    budget -= work;
    return true;
  };
}

const EMPHASIS = /[*_~]/g;
const SPECIAL = /[*_~<>[\]`\\&!:@]/g;

const MAX_CHARACTERS = 200_000;
/** Of a line only this much is looked at for its margin. */
const MAX_MARGIN = 200;
const MAX_DEPTH = 12;
const BASE_WORK = 400_000;
const WORK_PER_CHARACTER = 8;
const WORK_PER_LINE = 60;
const WORK_PER_BLOCK = 400;
const WORK_PER_LEVEL = 300;
const WORK_PER_MARK = 80;
const MAX_PARAGRAPH_WORK = 200_000;
