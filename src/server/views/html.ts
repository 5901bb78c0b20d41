/** The one HTML template that escapes, and the small pieces that pages are made of. */
import { stripControl } from "../../core/text.ts";
import pictures from "./icons.json" with { type: "json" };

/** Text that is HTML already. Everything else is escaped when it is put into a template. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Nothing is shown of `undefined` and `false`. */
type Part = Html | string | number | undefined | false | readonly Part[];

/** HTML with every interpolated text escaped, for element content and double-quoted attributes. */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Html =>
  new Html(strings.map((fixed, index) => fixed + renderPart(parts[index])).join(""));

/**
 * Renders a text area. A browser drops one line break at its beginning, and takes all other white space for text:
 * a template that a formatter lays out would change the text that a person saves.
 */
export const textArea = (attributes: Html, text: string): Html =>
  new Html(`<textarea ${attributes.text}>\n${escapeHtml(text)}</textarea>`);

function renderPart(part: Part): string {
  if (part === undefined || part === false) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(renderPart).join("");
  return escapeHtml(String(part));
}

/** Control characters and overrides of the writing direction, with which text can pretend, are left out. */
const escapeHtml = (text: string): string =>
  stripControl(text).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);

/** Drawn on 16 by 16 units, in the colour of the text around. */
const symbols = Object.entries(pictures).map(
  ([name, picture]) => `<symbol id="i-${name}" viewBox="0 0 16 16">${picture}</symbol>`,
);

/** Goes into a document once. */
export const SPRITE = new Html(
  `<svg class="hide" aria-hidden="true"><defs>${symbols.join("")}` +
    '<pattern id="hatch-amber" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6"/><path d="M0 0v6" stroke-width="3"/></pattern>' +
    '<pattern id="hatch-red" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="6" height="6"/><path d="M0 0v6" stroke-width="3"/></pattern>' +
    "</defs></svg>",
);

export type IconName = keyof typeof pictures;

export type Tone = "blue" | "green" | "amber" | "red" | "faint";

export const icon = (name: IconName, tone?: Tone): Html =>
  html`<svg class="${tone === undefined ? "i" : `i i-${tone}`}" aria-hidden="true">
    <use href="#i-${name}" />
  </svg>`;
