/** Pieces that several screens are made of. */
import type { Viewer } from "../../page/sessions.ts";
import { type Html, html } from "../html.ts";
import { icon } from "./icons.ts";

/** What a screen is about. In the app it is one part of the page of its host. */
export const mainOf = (viewer: Viewer, look: string, content: Html): Html =>
  viewer === "app"
    ? html`<div class="wrap ${look}">${content}</div>`
    : html`<main id="main" class="wrap ${look}">${content}</main>`;

/** Marks the one of several links that is shown. */
export const current = (isCurrent: boolean): Html | undefined =>
  isCurrent ? html` aria-current="true"` : undefined;

/** Both sides of diffs below or beside each other: shown where there is room for that, and a script. */
export const diffLooks = (viewer: Viewer): Html | undefined =>
  viewer === "app"
    ? undefined
    : html`<p class="diff-looks">
        <span class="seg"
          ><button type="button" data-diffs="unified" aria-pressed="true">Unified</button
          ><button type="button" data-diffs="split" aria-pressed="false">Split</button></span
        >
      </p>`;

/** One of several views of the same. */
export const choice = (name: string, address: string, isCurrent: boolean): Html =>
  html`<a href="${address}" ${current(isCurrent)}>${name}</a>`;

/** A text to copy: given here, the Markdown in an element, or what an address answers. */
export type Copied = { text: string } | { of: string } | { address: string };

/** Copies a text. It is seen where a script can copy; the script turns its sign into a tick for a moment. */
export function copyButton(name: string, copied: Copied, look: "words" | "sign" = "words"): Html {
  const source =
    "text" in copied
      ? html`data-copy="${copied.text}"`
      : "of" in copied
        ? html`data-copy-of="${copied.of}"`
        : html`data-copy-address="${copied.address}"`;
  return look === "words"
    ? html`<button type="button" class="btn small copy" ${source}>${icon("copy")}${name}</button>`
    : html`<button
        type="button"
        class="btn small bare icon copy"
        ${source}
        aria-label="${name}"
        title="${name}"
      >
        ${icon("copy")}
      </button>`;
}

export interface ComposeBox {
  id: string;
  label: string;
  placeholder: string;
  /** What the button says. */
  send: string;
  /** Facts about what it will start, in a few words each. */
  facts?: readonly string[];
}

/** Where a task is written; inside a form. */
export const composeBox = ({ id, label, placeholder, send, facts = [] }: ComposeBox): Html =>
  html`<label class="hide" for="${id}">${label}</label>
    <textarea
      id="${id}"
      name="task"
      rows="2"
      maxlength="100000"
      required
      data-draft
      placeholder="${placeholder}"
    ></textarea>
    <div class="compose-foot">
      ${facts.map((fact) => html`<span class="chip still">${fact}</span>`)}
      <span class="end"
        ><span class="small faint desk"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span
        ><button class="btn ink">${send}</button></span
      >
    </div>`;

/** `/` gives it the focus. */
export const searchField = (label: string, placeholder: string, limit: number, value = ""): Html =>
  html`<label class="hide" for="q">${label}</label>
    <input
      id="q"
      name="q"
      class="field"
      type="search"
      maxlength="${limit}"
      placeholder="${placeholder}"
      value="${value}"
    />`;
