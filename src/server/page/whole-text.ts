/** Renders long texts and diffs, in turns with everything else: one of many lines takes most of a turn. */
import { grouped } from "../views/cost-words.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { displayDiff } from "../../core/diff.ts";
import { displayText, headOf } from "../../core/text.ts";
import { type DiffView, renderDiff } from "../views/content/diff.ts";
import { codeText, languageOf, markdownText } from "../views/content/texts.ts";
import { type Html, html } from "../views/html.ts";

export interface TextLook {
  kind: "plain" | "code" | "diff" | "markdown";
  /** Its name, for readers of the screen. */
  label: string;
  /** Its suffix determines the language. */
  path: string;
}

/** Characters of a text that are shown at all, that are shown as rows of a diff, and that become HTML in one turn. */
const MAX = { shown: 1_000_000, diff: 15_000, inTurn: 50_000 };

export async function renderedDiff(
  path: string,
  diff: string,
  view: Pick<DiffView, "lines" | "counts" | "remark" | "isPlace"> = {},
): Promise<Html> {
  await ownTurn();
  return renderDiff(diff, { label: `Change of ${path}`, path, ...view });
}

export async function renderedText(text: string, look: TextLook): Promise<Html> {
  const shown = headOf(text, MAX.shown);
  const missing = text.length - shown.length;
  const note = html`<p class="note pad">
    ${grouped(missing)} more characters are not shown: a text is shown up to ${grouped(MAX.shown)}.
  </p>`;
  return html`${await renderBody(shown, look)}${missing > 0 && note}`;
}

async function renderBody(text: string, { kind, label, path }: TextLook): Promise<Html> {
  await ownTurn();
  if (text === "") return EMPTY;
  if (kind === "plain") return plainText(text, label);
  if (kind === "markdown") return html`<div class="pad">${markdownText(text)}</div>`;
  if (kind === "code") return block(label, codeText(await shownText(text, displayText), languageOf(path)));
  if (text.length <= MAX.diff) return renderedDiff(path, text);
  return block(label, codeText(await shownText(text, displayDiff), "diff"));
}

export const EMPTY = html`<p class="note pad">Empty.</p>`;

type Display = (text: string) => string;

/** The whole of a text, however long it is. `display`: shows a piece of it. */
export const plainText = async (text: string, label: string, display: Display = displayText): Promise<Html> =>
  block(label, await shownText(text, display));

async function shownText(text: string, display: Display): Promise<Html[]> {
  const pieces: Html[] = [];
  for (let at = 0; at < text.length;) {
    const piece = headOf(text.slice(at, at + MAX.inTurn + 1), MAX.inTurn);
    pieces.push(html`${display(piece)}`);
    at += piece.length;
    await ownTurn();
  }
  return pieces;
}

/** Parsers drop a line break right after the tag: this one, and not the first of the text. */
const block = (label: string, content: Html | readonly Html[]): Html =>
  html`<pre class="json whole-text" tabindex="0" role="region" aria-label="${label}">${"\n"}${content}</pre>`;
