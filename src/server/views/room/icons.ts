/** The pictures of the page: one sprite for a document, and references to its symbols. */
import { Html, html } from "../html.ts";
import pictures from "./icons.json" with { type: "json" };

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
