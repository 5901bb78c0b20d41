/**
 * Markdown as HTML of our own. `marked` only reads it; what it finds goes through the template that escapes, and
 * what is not found here does not exist: HTML in the text is shown as text.
 */
import type { MarkedToken, Token, Tokens } from "marked";
import { displayText, headOf } from "../../../core/text.ts";
import { Html, html } from "../html.ts";
import { decodeEntities } from "./entities.ts";
import { highlightedLines } from "./highlight.ts";
import { syntaxNamed } from "./languages.ts";
import { readMarkdown } from "./read-markdown.ts";

/**
 * The blocks of a Markdown text, for an element with the class `prose`. The highest heading becomes `h2`. A text that
 * is too long, or too expensive to read, ends as plain text under a note.
 */
export function renderMarkdown(text: string): Html {
  const { tokens, rest } = readMarkdown(text);
  const depths = tokens.flatMap((token) =>
    token.type === "heading" ? [(token as Tokens.Heading).depth] : [],
  );
  const blocks = new Blocks(Math.min(...depths, 6));
  return html`${blocks.render(tokens, 0)}${rest === "" ? undefined : plain(rest)}`;
}

const plain = (text: string): Html =>
  html`<p class="small dim">
      From here on the text is shown as it was written: it is too long or too involved.
    </p>
    <pre class="plain" tabindex="0">${displayText(text)}</pre>`;

/** Deeper than the limits of what is read let it become; a second lock. */
const MAX_DEPTH = 40;

class Blocks {
  readonly #highest: number;

  /** `highest`: depth of the heading that becomes `h2`. */
  constructor(highest: number) {
    this.#highest = highest;
  }

  render(tokens: readonly Token[], depth: number): (Html | string | undefined)[] {
    if (depth > MAX_DEPTH) return tokens.map(({ raw }) => raw);
    // Tokens of extensions, of which there are none.
    return tokens.map((token) => this.#block(token as MarkedToken, depth + 1));
  }

  #block(token: MarkedToken, depth: number): Html | string | undefined {
    switch (token.type) {
      case "heading":
        return heading(Math.max(token.depth - this.#highest, 0), inline(token.tokens, depth));
      case "paragraph":
        return html`<p>${inline(token.tokens, depth)}</p>`;
      case "text":
        return token.tokens === undefined ? decodeEntities(token.text) : html`${inline(token.tokens, depth)}`;
      case "checkbox":
        return checkbox(token.checked);
      case "code":
        return codeBlock(token);
      case "blockquote":
        return html`<blockquote>${this.render(token.tokens, depth)}</blockquote>`;
      case "list":
        return this.#list(token, depth);
      case "table":
        return table(token, depth);
      case "hr":
        return html`<hr />`;
      case "html":
        return html`<p>${token.text.trim()}</p>`;
      case "def":
        return token.tag.startsWith("^") ? html`<p>${token.raw.trim()}</p>` : undefined;
      case "space":
        return undefined;
      default:
        return inlineToken(token, depth);
    }
  }

  #list({ ordered, start, items }: Tokens.List, depth: number): Html {
    const rendered = items.map((item) => html`<li>${this.render(item.tokens, depth)}</li> `);
    if (!ordered)
      return html`<ul>
        ${rendered}
      </ul>`;
    return start === 1
      ? html`<ol>
          ${rendered}
        </ol>`
      : html`<ol start="${start}">
          ${rendered}
        </ol>`;
  }
}

/** `below`: levels below the highest one. */
function heading(below: number, content: Inline): Html {
  switch (below) {
    case 0:
      return html`<h2>${content}</h2>`;
    case 1:
      return html`<h3>${content}</h3>`;
    case 2:
      return html`<h4>${content}</h4>`;
    case 3:
      return html`<h5>${content}</h5>`;
    default:
      return html`<h6>${content}</h6>`;
  }
}

const checkbox = (isChecked: boolean | undefined): Html =>
  isChecked
    ? html`<span class="task" role="img" aria-label="Done">☑</span> `
    : html`<span class="task" role="img" aria-label="To do">☐</span> `;

function codeBlock({ text, lang = "" }: Tokens.Code): Html {
  const lines = highlightedLines(displayText(text), syntaxNamed(lang));
  const code = lines.flatMap((line, index) => (index === 0 ? [line] : ["\n", line]));
  return html`<pre tabindex="0"><code>${code}</code></pre>`;
}

/** Wide tables scroll inside their box. */
function table({ header, rows }: Tokens.Table, depth: number): Html {
  const headings = header.map((cell) =>
    cell.align === "right"
      ? html`<th class="num">${inline(cell.tokens, depth)}</th>`
      : html`<th>${inline(cell.tokens, depth)}</th>`,
  );
  const body = rows.map((cells) => {
    const rendered = cells.map((cell) =>
      cell.align === "right"
        ? html`<td class="num">${inline(cell.tokens, depth)}</td>`
        : html`<td>${inline(cell.tokens, depth)}</td>`,
    );
    return html`<tr>
      ${rendered}
    </tr> `;
  });
  return html`<div class="table" tabindex="0">
    <table>
      <thead>
        <tr>
          ${headings}
        </tr>
      </thead>
      <tbody>
        ${body}
      </tbody>
    </table>
  </div>`;
}

type Inline = (Html | string | undefined)[];

function inline(tokens: readonly Token[], depth: number): Inline {
  if (depth > MAX_DEPTH) return tokens.map(({ raw }) => raw);
  return tokens.map((token) => inlineToken(token as MarkedToken, depth + 1)); // no extensions
}

function inlineToken(token: MarkedToken, depth: number): Html | string {
  switch (token.type) {
    case "text":
      return token.tokens === undefined ? decodeEntities(token.text) : html`${inline(token.tokens, depth)}`;
    case "escape":
      return token.text;
    case "strong":
      return html`<strong>${inline(token.tokens, depth)}</strong>`;
    case "em":
      return html`<em>${inline(token.tokens, depth)}</em>`;
    case "del":
      return html`<del>${inline(token.tokens, depth)}</del>`;
    case "codespan":
      return html`<code>${displayText(token.text)}</code>`;
    case "br":
      return html`<br />`;
    case "checkbox":
      return checkbox(token.checked);
    case "link":
      return link(token.href, inline(token.tokens.map(withoutLink), depth));
    case "image":
      return link(token.href, [decodeEntities(token.text) || "picture"]);
    default:
      return token.raw;
  }
}

/** A token for the text of a link, in which a picture cannot be another link. */
function withoutLink(token: Token): Token {
  if (token.type === "image") return { ...(token as Tokens.Image), type: "text" };
  return "tokens" in token && token.tokens ? { ...token, tokens: token.tokens.map(withoutLink) } : token;
}

/**
 * A link to the web or to a mailbox. Any other target is named behind the text, because it leads nowhere from here; so
 * is one with the name of a user, which looks like another host.
 */
function link(href: string, content: Inline): Html {
  const target = decodeEntities(href);
  const url = URL.canParse(target) ? new URL(target) : undefined;
  if (url === undefined || !PROTOCOLS.has(url.protocol) || url.username !== "") {
    return html`${content} (<code>${headOf(displayText(target), MAX_TARGET)}</code>)`;
  }
  return html`<a class="link" href="${url.href}" rel="noreferrer noopener">${content}</a>`;
}

const PROTOCOLS: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);
const MAX_TARGET = 200;
