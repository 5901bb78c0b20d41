/** Markdown as lines for a terminal. */
import type { MarkedToken, Token, Tokens } from "marked";
import { showControl } from "../../core/text.ts";
import { readMarkdown } from "../../server/views/content/read-markdown.ts";
import { type Colors, columnsOf, displayWidth, padded } from "./text.ts";

/** Nobody reads lines that are longer with ease. */
const MAX_WIDTH = 100;

/**
 * A text of a model for `output`: rendered for a terminal as far as it is
 * cheap to read, as it is for a pipe; control characters as escapes.
 */
export function shownMarkdown(
  markdown: string,
  output: { isTTY?: boolean; columns?: number },
  colors: Colors,
): string {
  const text = showControl(markdown.trim());
  if (output.isTTY !== true) return text;
  const width = Math.min(columnsOf(output), MAX_WIDTH) - 1;
  const { tokens, rest } = readMarkdown(text);
  return [...new Renderer(colors).blocks(tokens, width), ...(rest === "" ? [] : [rest])].join("\n");
}

/** Styled text that has no breaks of its own. */
interface Span {
  text: string;
  paint: (text: string) => string;
}

const BREAK = "\n";

class Renderer {
  readonly #colors: Colors;

  constructor(colors: Colors) {
    this.#colors = colors;
  }

  /** Blocks with an empty line between them, each in at most `width` columns where words allow it. */
  blocks(tokens: readonly Token[], width: number): string[] {
    const shown = tokens.filter(({ type }) => type !== "space" && type !== "def");
    return shown.flatMap((token, index) => [...(index === 0 ? [] : [""]), ...this.#block(token, width)]);
  }

  #block(token: Token, width: number): string[] {
    const { bold, cyan, dim } = this.#colors;
    // The lexer makes tokens of its own kinds only; their names tell which.
    const known = token as MarkedToken;
    switch (known.type) {
      case "heading":
        return this.#wrapped(known.tokens, width, (text) => bold(cyan(text)));
      case "code":
        return known.text.split("\n").map((line) => `    ${cyan(line)}`);
      case "blockquote":
        return this.blocks(known.tokens, width - 2).map((line) => `${dim("│")} ${line}`);
      case "list":
        return this.#list(known, width);
      case "table":
        return this.#table(known, width);
      case "hr":
        return [dim("─".repeat(Math.min(width, 40)))];
      default:
        return this.#wrapped("tokens" in known ? known.tokens : undefined, width, String, known.raw);
    }
  }

  #list({ items, ordered, start, loose }: Tokens.List, width: number): string[] {
    const first = typeof start === "number" ? start : 1;
    return items.flatMap((item, index) => {
      const box = item.checked === true ? "☑" : "☐";
      const mark = item.task ? box : ordered ? `${first + index}.` : "•";
      const indent = displayWidth(mark) + 1;
      const tokens = item.tokens.filter(({ type }) => type !== "checkbox");
      const inner = Math.max(width - indent, 10);
      const lines = loose ? this.blocks(tokens, inner) : tokens.flatMap((token) => this.#block(token, inner));
      const shown = lines.map((line, row) =>
        row === 0 ? `${this.#colors.cyan(mark)} ${line}` : `${" ".repeat(indent)}${line}`,
      );
      return loose && index > 0 ? ["", ...shown] : shown;
    });
  }

  /** Columns that fit, cells wrapped; on a terminal too narrow for that, one line for each cell. */
  #table({ header, rows, align }: Tokens.Table, width: number): string[] {
    const { bold, dim } = this.#colors;
    const all = [header, ...rows];
    const natural = header.map((_, column) =>
      Math.max(...all.map((row) => Math.max(...this.#cell(row[column], Infinity).map(displayWidth)))),
    );
    const widths = shrunk(natural, width - 3 * (header.length - 1));
    if (widths === undefined) {
      return rows.flatMap((row, index) => [
        ...(index === 0 ? [] : [""]),
        ...row.flatMap((cell, column) => {
          const name = header[column]?.text ?? "";
          return this.#wrapped(cell.tokens, width, String, "", [{ text: `${name}:`, paint: bold }]);
        }),
      ]);
    }
    const line = (row: readonly Tokens.TableCell[], paint: (text: string) => string): string[] => {
      const cells = widths.map((columns, column) => this.#cell(row[column], columns));
      const height = Math.max(...cells.map(({ length }) => length));
      return Array.from({ length: height }, (_, index) =>
        cells
          .map((cell, column) => aligned(cell[index] ?? "", widths[column] ?? 0, align[column]))
          .map(paint)
          .join(` ${dim("│")} `),
      );
    };
    const rule = dim(widths.map((columns) => "─".repeat(columns)).join("─┼─"));
    return [...line(header, bold), rule, ...rows.flatMap((row) => line(row, String))];
  }

  #cell(cell: Tokens.TableCell | undefined, width: number): string[] {
    return this.#wrapped(cell?.tokens, width, String);
  }

  #wrapped(
    tokens: readonly Token[] | undefined,
    width: number,
    paint: Span["paint"],
    raw = "",
    before: readonly Span[] = [],
  ): string[] {
    const spans = tokens?.flatMap((token) => this.#spans(token, paint)) ?? [{ text: raw.trimEnd(), paint }];
    return laidOut([...before, ...(before.length > 0 ? [{ text: " ", paint }] : []), ...spans], width);
  }

  #spans(token: Token, paint: Span["paint"]): Span[] {
    const { bold, cyan, dim, italic, strikethrough, underline, isColorSupported } = this.#colors;
    const known = token as MarkedToken; // as in #block
    const within = (tokens: readonly Token[], inner: Span["paint"]): Span[] =>
      tokens.flatMap((part) => this.#spans(part, (text) => paint(inner(text))));
    switch (known.type) {
      case "strong":
        return within(known.tokens, bold);
      case "em":
        return within(known.tokens, italic);
      case "del":
        return within(known.tokens, strikethrough);
      case "codespan":
        return [{ text: isColorSupported ? known.text : known.raw, paint: (text) => paint(cyan(text)) }];
      case "br":
        return [{ text: BREAK, paint }];
      case "link": {
        const isSame = known.text === known.href || `mailto:${known.text}` === known.href;
        const address = isSame ? [] : [{ text: ` (${known.href})`, paint: dim }];
        return [...within(known.tokens, underline), ...address];
      }
      case "image":
        return [{ text: `${known.text} (${known.href})`, paint: dim }];
      case "text":
      case "escape":
        if ("tokens" in known && known.tokens !== undefined) return within(known.tokens, String);
        return [{ text: known.text.replaceAll(BREAK, " "), paint }];
      default:
        return [{ text: known.raw.replaceAll(BREAK, " "), paint }];
    }
  }
}

/** Spans in lines of at most `width`, broken between words. A longer word stands on a line of its own. */
function laidOut(spans: readonly Span[], width: number): string[] {
  const lines: string[] = [];
  let line = { text: "", width: 0 };
  let word = { text: "", width: 0 };
  const endWord = (): void => {
    const isFirst = line.width === 0;
    if (word.width === 0) return;
    if (!isFirst && line.width + 1 + word.width > width) {
      lines.push(line.text);
      line = word;
    } else {
      line = isFirst ? word : { text: `${line.text} ${word.text}`, width: line.width + 1 + word.width };
    }
    word = { text: "", width: 0 };
  };
  for (const { text, paint } of spans) {
    for (const [index, piece] of text.split(/[ \t\n]+/).entries()) {
      if (index > 0) endWord();
      if (piece !== "") word = { text: word.text + paint(piece), width: word.width + displayWidth(piece) };
    }
    if (text !== BREAK) continue;
    lines.push(line.text);
    line = { text: "", width: 0 };
  }
  endWord();
  return [...lines, line.text];
}

/** The widest columns give way first; `undefined` when there is no room for all of them. */
function shrunk(natural: readonly number[], room: number): number[] | undefined {
  const widths = [...natural];
  for (let excess = widths.reduce((sum, width) => sum + width, 0) - room; excess > 0; excess -= 1) {
    const widest = Math.max(...widths);
    if (widest <= MIN_COLUMN) return undefined;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}

const MIN_COLUMN = 10;

function aligned(
  text: string,
  columns: number,
  align: "left" | "center" | "right" | null | undefined,
): string {
  const free = Math.max(columns - displayWidth(text), 0);
  const before = align === "right" ? free : align === "center" ? Math.floor(free / 2) : 0;
  return padded(" ".repeat(before) + text, columns);
}
