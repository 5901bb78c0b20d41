/** Reads Markdown for the page, whose script renders it in the browser, and for the terminal. Runs in both. */
import MarkdownIt, { type Token } from "markdown-it";
import { displayText, headOf } from "../../../core/text.ts";
import { parsedUrl } from "../../../core/unknown.ts";

const markdown = new MarkdownIt({ html: false, linkify: true });
// A picture would be fetched from elsewhere, so it stays a link behind its mark.
markdown.disable("image");
// Names of files, such as `notes.md`, are not addresses.
markdown.linkify.set({ fuzzyLink: false });

/** Marks items such as `- [x] done`, and replaces the brackets with a box. */
markdown.core.ruler.after("block", "tasks", ({ tokens }) => {
  for (const [index, item] of tokens.entries()) {
    const text = tokens[index + 2];
    const isItem = item.type === "list_item_open" && text?.type === "inline";
    const box = isItem && /^\[([ xX])\]\s/.exec(text.content);
    if (!box) continue;
    item.attrSet("class", TASK);
    text.content = (box[1] === " " ? "☐ " : "☑ ") + text.content.slice(box[0].length);
  }
});

/** Class of an item that begins with a box. */
export const TASK = "task";
/** The highest heading becomes `h2`, because a screen has a heading of its own. */
markdown.core.ruler.push("levels", ({ tokens }) => {
  const headings = tokens.filter(({ type }) => type.startsWith("heading_"));
  const highest = headings.reduce((least, { tag }) => Math.min(least, headingLevel(tag)), 6);
  for (const heading of headings) heading.tag = `h${Math.min(headingLevel(heading.tag) - highest + 2, 6)}`;
});

const headingLevel = (tag: string): number => Number(tag.slice(1));

const { escapeHtml } = markdown.utils;
const RULES: typeof markdown.renderer.rules = {
  fence: (tokens, index) => codeBlock(tokens[index]),
  code_block: (tokens, index) => codeBlock(tokens[index]),
  code_inline: (tokens, index) => `<code>${escapeHtml(displayText(tokens[index]?.content ?? ""))}</code>`,
  link_open: (tokens, index) => {
    const address = webAddress(targetOf(tokens[index]));
    if (address === undefined) return "";
    return `<a class="link" href="${escapeHtml(address)}" rel="noreferrer noopener">`;
  },
  link_close: (tokens, index) => {
    // Links do not nest.
    let at = index;
    while (at > 0 && tokens[at]?.type !== "link_open") at -= 1;
    const target = targetOf(tokens[at]);
    return webAddress(target) === undefined
      ? ` (<code>${escapeHtml(headOf(displayText(target), MAX.target))}</code>)`
      : "</a>";
  },
  // Wide tables scroll inside their box.
  table_open: () => `<div class="table" tabindex="0"><table>`,
  table_close: () => "</table></div>",
  th_open: (tokens, index) => (isRight(tokens[index]) ? `<th class="num">` : "<th>"),
  td_open: (tokens, index) => (isRight(tokens[index]) ? `<td class="num">` : "<td>"),
};
Object.assign(markdown.renderer.rules, RULES);

function codeBlock({ content, info }: Pick<Token, "content" | "info"> = { content: "", info: "" }): string {
  const language = info.trim().split(/[\s,{]/, 1)[0] ?? "";
  const code = displayText(content.replace(/\n$/, ""));
  return `<pre tabindex="0"><code-text data-language="${escapeHtml(language)}">${escapeHtml(code)}</code-text></pre>\n`;
}

const isRight = (cell: Token | undefined): boolean => cell?.attrGet("style") === "text-align:right";

export const targetOf = (link: Token | undefined): string => String(link?.attrGet("href") ?? "");

/**
 * The address of a link to the web or to a mailbox. Any other target leads nowhere from here; neither does one with
 * the name of a user, which looks like another host.
 */
function webAddress(target: string): string | undefined {
  const url = parsedUrl(target);
  return url !== undefined && /^(?:https?|mailto):$/.test(url.protocol) && url.username === ""
    ? url.href
    : undefined;
}

/** `text`: the worst text of this length takes less than a second. */
const MAX = { target: 200, text: 100_000 };

/**
 * The tokens of a text; `undefined` for one that is shown as it was written, because it is too long or nests so deeply
 * that the parser would leave out a part.
 */
export function markdownTokens(text: string): Token[] | undefined {
  if (text.length > MAX.text) return undefined;
  const tokens = markdown.parse(text, {});
  const deepest = (markdown.options.maxNesting ?? 0) - 1;
  return tokens.some(({ level, nesting }) => nesting > 0 && level >= deepest) ? undefined : tokens;
}

/** A text as HTML of our own, in which everything that the text holds is text; `undefined` as for the tokens. */
export function markdownHtml(text: string): string | undefined {
  const tokens = markdownTokens(text);
  return tokens && markdown.renderer.render(tokens, markdown.options, {});
}
