/** Pieces that several screens are made of. */
import type { Viewer } from "../../contracts/viewer.ts";
import { displayName, displayText, tailOf } from "../../../core/text.ts";
import { type Html, html, textArea, type IconName, icon } from "../html.ts";
import { money } from "./figures.ts";

/** The main part of a screen. In the app it is one part of its host's page. */
export const mainOf = (viewer: Viewer, look: string, content: Html): Html =>
  viewer === "app"
    ? html`<div class="wrap ${look}">${content}</div>`
    : html`<main id="main" class="wrap ${look}">${content}</main>`;

/** Replaces a list without entries. */
export const emptyPanel = (sign: IconName, { title, text }: { title: string; text: Html | string }): Html =>
  html`<div class="panel empty">
    ${icon(sign)}
    <h2>${title}</h2>
    <p>${text}</p>
  </div>`;

/** A box of a form. `attributes`: its further ones. */
export const tickBox = (name: string, value: string, isTicked: boolean, attributes?: Html): Html =>
  html`<input
    type="checkbox"
    class="tick-box"
    name="${name}"
    value="${value}"
    ${attributes}
    ${isTicked && html` checked`}
  />`;

/** Marks the one of several links that is shown. `kind`: `page` for links to other screens. */
export const current = (isCurrent: boolean, kind: "true" | "page" = "true"): Html | false =>
  isCurrent && html` aria-current="${kind}"`;

/** Both sides of diffs below or beside each other: shown where there is room for that, and a script. */
export const diffLooks = (viewer: Viewer): Html | false =>
  viewer !== "app" &&
  html`<p class="diff-looks">
    <span class="seg"
      ><button type="button" data-diffs="unified" aria-pressed="true">Unified</button
      ><button type="button" data-diffs="split" aria-pressed="false">Split</button></span
    >
  </p>`;

/** A list below a heading, with a number or a sum at its end. */
export const listSection = (
  title: string,
  end: Html | string | number,
  items: readonly (Html | undefined | false)[],
  { list = "rows", look = "" }: { list?: "rows" | "cost"; look?: string } = {},
): Html =>
  html`<section class="${look}">
    <h2>${title}<span class="end${list === "cost" ? " num" : ""}">${end}</span></h2>
    <ul class="${list}">
      ${items}
    </ul>
  </section>`;

/** A meter with the share of one in a cost. */
export const share = (name: string, own: number, total: number): Html =>
  html`<li>
    <div><span class="cut">${name}</span><span class="num">${money(own, total)}</span></div>
    <svg class="meter quiet" aria-hidden="true">
      <rect width="${Math.round((100 * own) / total)}%" height="4" />
    </svg>
  </li>`;

/** A form of one button, which sends one field. `look`: classes of the button. */
export const buttonForm = (
  action: string,
  [name, value]: [string, string],
  text: string,
  look: string,
): Html =>
  html`<form method="post" action="${action}">
    <input type="hidden" name="${name}" value="${value}" />
    <button class="btn ${look}">${text}</button>
  </form>`;

/** Names with their values. False: there are none. */
export const terms = (look: string, rows: readonly (readonly [string, Html | string])[]): Html | false =>
  rows.length > 0 &&
  html`<dl class="${look}">
    ${rows.map(
      ([name, value]) =>
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`;

/** One of several views of the same. */
export const choice = (name: string, address: string, isCurrent: boolean): Html =>
  html`<a href="${address}" ${current(isCurrent)}>${name}</a>`;

export interface ChoiceLook {
  type?: "radio" | "checkbox";
  /** Class of the label. */
  look?: string;
  attributes?: Html;
  /** Behind the label. */
  more?: Html;
}

export const choiceInput = (
  name: string,
  value: string,
  label: string,
  isChosen: boolean,
  { type = "radio", look, attributes, more }: ChoiceLook = {},
): Html =>
  html`<label class="choice"
    ><input type="${type}" name="${name}" value="${value}" ${attributes} ${isChosen && html` checked`} /><span
      ${look && html`class="${look}"`}
      >${displayText(label)}</span
    >${more}</label
  >`;

export const labelled = (label: Html | string, field: Html): Html =>
  html`<label><span class="label">${label}</span> ${field}</label>`;

export const FACT_ICONS = {
  folder: "folder",
  model: "gear",
  changes: "diff",
  goal: "tick",
  limit: "clock",
} as const;

/** A fact about the run that a form starts. */
export type Fact = keyof typeof FACT_ICONS;

/** A text that the server did not take. It is shown again where it was written, with the reason. */
export interface Refused {
  /** Id of its field. */
  field: string;
  text: string;
  problem: string;
  /** The fact that is the reason. */
  fault?: Fact | undefined;
  /** Fields with the choices for the run. */
  chosen?: URLSearchParams | undefined;
}

/**
 * Copies a literal text, the Markdown in an element, or the response of an address. It is seen where a script can
 * copy; the script turns its sign into a tick for a moment.
 */
export function copyButton(
  name: string,
  copied: { text: string } | { of: string } | { address: string },
  look: "words" | "sign" = "words",
): Html {
  const source =
    "text" in copied
      ? html`data-copy="${copied.text}"`
      : "of" in copied
        ? html`data-copy-of="${copied.of}"`
        : html`data-copy-address="${copied.address}"`;
  return look === "words"
    ? html`<button type="button" class="btn small copy" ${source}>${icon("copy")}${name}</button>`
    : copySign(name, html`${source} class="btn small bare icon copy"`);
}

export const copySign = (name: string, attributes: Html): Html =>
  html`<button type="button" ${attributes} aria-label="${name}" title="${name}">${icon("copy")}</button>`;

/** The field where a task is written; the direct content of a form. */
export function composeBox(box: {
  id: string;
  label: string;
  placeholder: string;
  /** Text of the button. */
  send: string;
  /** Choices for the run. */
  choices?: Html | undefined;
  refused?: Refused | undefined;
  /** The text that it begins with; it has a draft of its own. */
  given?: string | undefined;
  /** Why nothing can be sent now. */
  off?: string | undefined;
}): Html {
  const { id, label, placeholder, send, given = "", off } = box;
  const refused = box.refused?.field === id ? box.refused : undefined;
  const field = html`id="${id}" name="task" rows="2" maxlength="100000" required data-draft="${given}"
  placeholder="${placeholder}"`;
  return html`<label class="hide" for="${id}">${label}</label>
    ${textArea(field, refused?.text ?? given)}
    ${refused && html`<p class="notice red" role="alert">${icon("fail", "red")}<span class="lines">${refused.problem}</span></p>`}
    <div class="compose-foot">
      ${box.choices}
      <span class="end"
        >${off === undefined ? html`<span class="small faint desk"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span>` : html`<span class="small dim">${off}</span>`}<button
          class="btn ink"
          ${off && html` disabled data-off="${off}"`}
        >
          ${refused === undefined ? send : "Try again"}
        </button></span
      >
    </div>`;
}

/** Shortens a long path in the middle: its start and its name are the most useful parts. */
export function cutPath(path: string, limit = 44): string {
  if (path.length <= limit) return path;
  const name = path.slice(path.lastIndexOf("/"));
  const kept = name.length < limit - 8 ? name : name.slice(-(limit - 8));
  return `${path.slice(0, limit - kept.length - 1)}…${kept}`;
}

/**
 * A path on one line, with its end visible in the narrowest place: its folders are shortened first, then the middle
 * of its name.
 */
export function shownPath(path: string): Html {
  const shown = displayName(path);
  const name = shown.slice(shown.lastIndexOf("/") + 1);
  const folder = shown.slice(0, shown.length - name.length).replace(/^\/workspace\//, "");
  const end = tailOf(name, 14);
  return html`<code class="path" title="${shown}"
    ><span>${folder}</span><span>${name.slice(0, name.length - end.length)}</span><span>${end}</span></code
  >`;
}

/** A search field; `/` focuses it. */
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

/** `text` with the first place of the searched words marked. */
export function marked(text: string, query: string): Html {
  const at = text.toLowerCase().indexOf(query.toLowerCase());
  // A letter whose other case is longer would shift the place.
  if (at === -1 || text.toLowerCase().length !== text.length) return html`${text}`;
  const end = at + query.length;
  return html`${text.slice(0, at)}<mark>${text.slice(at, end)}</mark>${text.slice(end)}`;
}
