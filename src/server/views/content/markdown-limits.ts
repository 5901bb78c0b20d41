/**
 * How much of a Markdown text is read as Markdown. The lexer takes quadratic time for marks of emphasis that do not
 * pair up, and far more for each list item than for a line; so work is estimated before it is done, from what it
 * took, and what is beyond the limit is shown as it was written. Units of work are about 25 nanoseconds.
 */

/** The beginning of `text` that is read as Markdown, and the rest. */
export function readable(text: string): { markdown: string; rest: string } {
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
export function inlineBudget(text: string): (source: string) => boolean {
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
