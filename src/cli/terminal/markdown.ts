/** Markdown as lines for a terminal. */
import type { Token } from "markdown-it";
import { showControl } from "../../core/text.ts";
import { TASK, markdownTokens, targetOf } from "../../server/views/content/markdown.ts";
import { type Colors, columnsOf, displayWidth, padded, wrapText } from "./text.ts";

/**
 * A text of a model for `output`: rendered for a terminal, and as it is for a pipe or if it is too long; control
 * characters as escapes.
 */
export function shownMarkdown(
  markdown: string,
  output: { isTTY?: boolean; columns?: number },
  colors: Colors,
): string {
  const text = showControl(markdown.trim());
  const tokens = output.isTTY === true ? markdownTokens(text) : undefined;
  if (tokens === undefined) return text;
  // Nobody reads lines that are longer with ease.
  const width = Math.min(columnsOf(output), 100) - 1;
  return new Renderer(colors).blocks(nested(tokens), width).join("\n");
}

/** A token with those that stand between it and its end. */
interface Node {
  token: Token;
  nodes: Node[];
}

function nested(tokens: readonly Token[]): Node[] {
  const root: Node[] = [];
  const open = [root];
  for (const token of tokens) {
    if (token.nesting < 0) {
      open.pop();
      continue;
    }
    const node: Node = { token, nodes: nested(token.children ?? []) };
    open.at(-1)?.push(node);
    if (token.nesting > 0) open.push(node.nodes);
  }
  return root;
}

/** Styled text that has no breaks of its own. */
interface Span {
  text: string;
  paint: (text: string) => string;
}

type Align = "left" | "right" | "center";
interface Cell {
  spans: Span[];
  align: Align;
}

const BREAK = "\n";

class Renderer {
  readonly #colors: Colors;

  constructor(colors: Colors) {
    this.#colors = colors;
  }

  /** Blocks with an empty line between them, each in at most `width` columns where words allow it. */
  blocks(nodes: readonly Node[], width: number): string[] {
    return nodes.flatMap((node, index) => [...(index === 0 ? [] : [""]), ...this.#block(node, width)]);
  }

  #block(node: Node, width: number): string[] {
    const { bold, cyan, dim } = this.#colors;
    const { token, nodes } = node;
    switch (token.type) {
      case "heading_open": {
        const spans = this.#spansOf(nodes, (text) => bold(cyan(text)));
        return laidOut(spans, width);
      }
      case "fence":
      case "code_block":
        return token.content
          .replace(/\n$/, "")
          .split("\n")
          .map((line) => `    ${cyan(line)}`);
      case "blockquote_open":
        return this.blocks(nodes, width - 2).map((line) => `${dim("│")} ${line}`);
      case "bullet_list_open":
      case "ordered_list_open":
        return this.#list(node, width);
      case "table_open":
        return this.#table(node, width);
      case "hr":
        return [dim("─".repeat(Math.min(width, 40)))];
      default:
        return laidOut(this.#spansOf(nodes, String), width);
    }
  }

  #list({ token, nodes: items }: Node, width: number): string[] {
    const first = Number(token.attrGet("start") ?? 1);
    return items.flatMap(({ token: item, nodes }, index) => {
      const mark = token.type === "ordered_list_open" ? `${first + index}.` : "•";
      const indent = displayWidth(mark) + 1;
      const inner = Math.max(width - indent, 10);
      // The paragraphs of a list without blank lines are hidden.
      const isTight = nodes.every(({ token: { type, hidden } }) => type !== "paragraph_open" || hidden);
      const lines = isTight ? nodes.flatMap((node) => this.#block(node, inner)) : this.blocks(nodes, inner);
      // An item with a box has no other mark.
      const hasBox = item.attrGet("class") === TASK;
      const shown = (lines.length === 0 ? [""] : lines).map((line, row) => {
        if (row > 0) return `${" ".repeat(indent)}${line}`;
        return hasBox ? line : `${this.#colors.cyan(mark)} ${line}`;
      });
      return !isTight && index > 0 ? ["", ...shown] : shown;
    });
  }

  /** Columns that fit, cells wrapped; on a terminal too narrow for that, one line for each cell. */
  #table({ nodes: parts }: Node, width: number): string[] {
    const { bold, dim } = this.#colors;
    const all = parts.flatMap(({ nodes }) => nodes).map(({ nodes }) => nodes.map((cell) => this.#cell(cell)));
    const [header = [], ...rows] = all;
    const natural = header.map((_, column) =>
      Math.max(
        ...all.map((row) => Math.max(...laidOut(row[column]?.spans ?? [], Infinity).map(displayWidth))),
      ),
    );
    const widths = shrunk(natural, width - 3 * (header.length - 1));
    if (widths === undefined) {
      return rows.flatMap((row, index) => [
        ...(index === 0 ? [] : [""]),
        ...row.flatMap(({ spans }, column) => {
          const name = (header[column]?.spans ?? []).map(({ text }) => text).join("");
          return laidOut([{ text: `${name}:`, paint: bold }, { text: " ", paint: String }, ...spans], width);
        }),
      ]);
    }
    const line = (row: readonly Cell[], paint: (text: string) => string): string[] => {
      const cells = widths.map((columns, column) => laidOut(row[column]?.spans ?? [], columns));
      const height = Math.max(...cells.map(({ length }) => length));
      return Array.from({ length: height }, (_, index) =>
        cells
          .map((cell, column) => aligned(cell[index] ?? "", widths[column] ?? 0, row[column]?.align))
          .map(paint)
          .join(` ${dim("│")} `),
      );
    };
    const rule = dim(widths.map((columns) => "─".repeat(columns)).join("─┼─"));
    return [...line(header, bold), rule, ...rows.flatMap((row) => line(row, String))];
  }

  #cell({ token, nodes }: Node): Cell {
    const [, align = "left"] = /text-align:(right|center)/.exec(String(token.attrGet("style"))) ?? [];
    return { spans: this.#spansOf(nodes, String), align: align as Align }; // the expression matches only these
  }

  #spansOf(nodes: readonly Node[], paint: Span["paint"]): Span[] {
    return nodes.flatMap((node) => this.#spans(node, paint));
  }

  #spans({ token, nodes }: Node, paint: Span["paint"]): Span[] {
    const { bold, cyan, dim, italic, strikethrough, underline, isColorSupported } = this.#colors;
    const within = (inner: Span["paint"]): Span[] => this.#spansOf(nodes, (text) => paint(inner(text)));
    switch (token.type) {
      case "inline":
        return within(String);
      case "strong_open":
        return within(bold);
      case "em_open":
        return within(italic);
      case "s_open":
        return within(strikethrough);
      case "code_inline": {
        const { content, markup } = token;
        const text = isColorSupported ? content : markup + content + markup;
        return [{ text, paint: (shown) => paint(cyan(shown)) }];
      }
      case "softbreak":
        return [{ text: " ", paint }];
      case "hardbreak":
        return [{ text: BREAK, paint }];
      case "link_open": {
        const [target, text] = [targetOf(token), plainText(nodes)];
        const address =
          text === target || `mailto:${text}` === target ? [] : [{ text: ` (${target})`, paint: dim }];
        return [...within(underline), ...address];
      }
      default:
        return [{ text: token.content, paint }];
    }
  }
}

const plainText = (nodes: readonly Node[]): string =>
  nodes.map(({ token, nodes: inner }) => token.content + plainText(inner)).join("");

/** Spans in lines of at most `width`, broken between words. A longer word stands on a line of its own. */
function laidOut(spans: readonly Span[], width: number): string[] {
  const painted = spans.flatMap(({ text, paint }) =>
    text === BREAK
      ? [BREAK]
      : text.split(/([ \t\n]+)/).map((piece, at) => (at % 2 === 0 ? piece && paint(piece) : " ")),
  );
  const lines = painted.join("").replace(/ +/g, " ").split(BREAK);
  return wrapText(lines.map((line) => line.replace(/^ | $/g, "")).join(BREAK), width);
}

/** Shrinks the widest columns first. Returns undefined if there is no room for all of them. */
function shrunk(natural: readonly number[], room: number): number[] | undefined {
  const widths = [...natural];
  for (let excess = widths.reduce((sum, width) => sum + width, 0) - room; excess > 0; excess -= 1) {
    const widest = Math.max(...widths);
    if (widest <= 10) return undefined;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}

function aligned(text: string, columns: number, align: Align | undefined): string {
  const free = Math.max(columns - displayWidth(text), 0);
  const before = align === "right" ? free : align === "center" ? Math.floor(free / 2) : 0;
  return padded(" ".repeat(before) + text, columns);
}
