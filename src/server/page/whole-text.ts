/** Renders long texts of tools, in turns with everything else. */
import { ownTurn } from "../../core/concurrency.ts";
import { displayDiff } from "../../core/diff.ts";
import { displayText, headOf } from "../../core/text.ts";
import { highlightedLines } from "../views/content/highlight.ts";
import { syntaxOf } from "../views/content/languages.ts";
import { renderMarkdown } from "../views/content/markdown.ts";
import { type Html, html } from "../views/html.ts";
import { grouped } from "../views/room/figures.ts";
import { renderedDiff } from "./rendered-diff.ts";

export interface TextLook {
  kind: "plain" | "code" | "diff" | "markdown";
  /** What it is, for readers of the screen. */
  label: string;
  /** The end of its name says which language it is in. */
  path: string;
}

/** Characters of a text that are shown at all, that are shown as more than plain text, and as rows of a diff. */
const MAX = { shown: 1_000_000, looks: 60_000, diff: 15_000 };
/** Characters made into HTML in one turn. */
const PER_TURN = 50_000;

export async function renderedText(text: string, look: TextLook): Promise<Html> {
  const shown = headOf(text, MAX.shown);
  const missing = text.length - shown.length;
  const note =
    missing === 0
      ? undefined
      : html`<p class="note pad">
          ${grouped(missing)} more characters are not shown: a text is shown up to ${grouped(MAX.shown)}.
        </p>`;
  return html`${await bodyOf(shown, look)}${note}`;
}

async function bodyOf(text: string, { kind, label, path }: TextLook): Promise<Html> {
  await ownTurn();
  if (text === "") return html`<p class="note pad">Empty.</p>`;
  if (kind === "plain" || text.length > MAX.looks) return plainText(text, label);
  if (kind === "diff" && text.length <= MAX.diff) return renderedDiff(path, text);
  if (kind === "markdown") return html`<div class="prose pad">${renderMarkdown(text)}</div>`;
  const isDiff = kind === "diff";
  const shown = isDiff ? displayDiff(text) : displayText(text);
  const lines = highlightedLines(shown, syntaxOf(isDiff ? ".diff" : path));
  return block(
    label,
    lines.map((line, index) => (index === 0 ? line : html`${"\n"}${line}`)),
  );
}

/** The whole of a text, however long it is. `display`: shows a piece of it. */
export async function plainText(text: string, label: string, display = displayText): Promise<Html> {
  const pieces: Html[] = [];
  for (let at = 0; at < text.length;) {
    const piece = headOf(text.slice(at, at + PER_TURN + 1), PER_TURN);
    pieces.push(html`${display(piece)}`);
    at += piece.length;
    await ownTurn();
  }
  return block(label, pieces);
}

/** Parsers drop a line break right after the tag: this one, and not the first of the text. */
const block = (label: string, content: readonly Html[]): Html =>
  html`<pre class="json whole-text" tabindex="0" role="region" aria-label="${label}">${"\n"}${content}</pre>`;
