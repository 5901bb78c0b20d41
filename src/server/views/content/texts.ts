/**
 * Texts that the script of the page shows in a better way: it formats Markdown, and colours code and diffs. What the
 * server sends is the whole text already, for whoever reads it without the script.
 */
import { showControl } from "../../../core/text.ts";
import { type Html, html } from "../html.ts";

export const markdownText = (text: string): Html =>
  html`<md-text class="prose">${showControl(text)}</md-text>`;

/** `shown`: the code, with everything in it that hides. */
export const codeText = (shown: string | readonly Html[], language: string): Html =>
  html`<code-text data-language="${language}">${shown}</code-text>`;

/** Names the language of a file, which follows from the end of its name. */
export const languageOf = (path: string): string =>
  path.slice(Math.max(path.lastIndexOf("."), path.lastIndexOf("/")) + 1).toLowerCase();
