/** The pictures of the page: one sprite for a document, and references to its symbols. */
import { Html, html } from "../html.ts";

/** Drawn on 16 by 16 units, in the colour of the text around. */
const PICTURES = {
  done: '<circle cx="8" cy="8" r="6.2"/><path d="m5.4 8.2 1.8 1.8 3.5-3.8"/>',
  fail: '<path d="M5.4 1.8h5.2l3.6 3.6v5.2l-3.6 3.6H5.4l-3.6-3.6V5.4z"/><path d="m6 6 4 4m0-4-4 4"/>',
  work: '<circle cx="8" cy="8" r="6.2" opacity=".28"/><path class="spin" d="M8 1.8A6.2 6.2 0 0 1 14.2 8"/>',
  ask: '<path d="M8 1.4 14.6 8 8 14.6 1.4 8z"/><path d="M8 5.2v3.2m0 2.3v.1"/>',
  queue: '<circle cx="8" cy="8" r="6.2" stroke-dasharray="2 2.2"/>',
  stop: '<circle cx="8" cy="8" r="6.2"/><path d="m4 12 8-8"/>',
  todo: '<circle cx="8" cy="8" r="6.2"/>',
  now: '<circle cx="8" cy="8" r="6.2"/><circle cx="8" cy="8" r="2.6" fill="currentColor" stroke="none"/>',
  chev: '<path d="m6 3.5 4.5 4.5L6 12.5"/>',
  down: '<path d="m3.5 6 4.5 4.5L12.5 6"/>',
  file: '<path d="M4 1.8h5.2L13 5.6v8.6H4z"/><path d="M9 2v4h4"/>',
  folder: '<path d="M1.8 4h4.4l1.4 1.8h6.6v7.4H1.8z"/>',
  diff: '<path d="M4 1.8h5.2L13 5.6v8.6H4z"/><path d="M8.5 5.5v4M6.5 7.5h4M6.5 11.5h4"/>',
  term: '<rect x="1.8" y="2.8" width="12.4" height="10.4" rx="1.6"/><path d="m4.6 6 2 2-2 2m4 0h3"/>',
  plug: '<path d="M5.5 1.8v3m5-3v3M3.5 4.8h9v2.7a4.5 4.5 0 0 1-9 0zM8 12v2.4"/>',
  say: '<path d="M2 3h12v8H7.5L4.5 13.8V11H2z"/>',
  find: '<circle cx="7" cy="7" r="4.6"/><path d="m10.5 10.5 3.5 3.5"/>',
  mind: '<path d="M3 2.5h7.5A2.5 2.5 0 0 1 13 5v8.5H5.5A2.5 2.5 0 0 1 3 11z"/><path d="M3 11a2.5 2.5 0 0 1 2.5-2.5H13"/>',
  fork: '<circle cx="4" cy="3.5" r="1.7"/><circle cx="12" cy="3.5" r="1.7"/><circle cx="8" cy="12.5" r="1.7"/><path d="M4 5.2c0 3 4 2.3 4 5.6m4-5.6c0 3-4 2.3-4 5.6"/>',
  dots: '<path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2.2"/>',
  up: '<path d="M8 13V3m-4 4 4-4 4 4"/>',
  clock: '<circle cx="8" cy="8" r="6.2"/><path d="M8 4.5V8l2.4 1.6"/>',
  copy: '<rect x="5.2" y="5.2" width="8.6" height="8.6" rx="1.4"/><path d="M3 10.5H2.2V2.2h8.3V3"/>',
  tick: '<path d="m3 8.5 3.2 3.2L13 4.8"/>',
  eye: '<path d="M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z"/><circle cx="8" cy="8" r="1.9"/>',
  help: '<circle cx="8" cy="8" r="6.2"/><path d="M6.2 6.3a1.9 1.9 0 1 1 2.7 1.8c-.6.3-.9.7-.9 1.3m0 2.2v.1"/>',
  list: '<path d="M5.5 4h8.5M5.5 8h8.5M5.5 12h8.5M2 4h.01M2 8h.01M2 12h.01"/>',
  wrap: '<path d="M2 3.5h12M2 8h9.5a2.2 2.2 0 0 1 0 4.5H8m0 0 1.6-1.6M8 12.5l1.6 1.6M2 12.5h3"/>',
  again: '<path d="M13.5 8A5.5 5.5 0 1 1 11.8 4M13.5 2v3h-3"/>',
  link: '<path d="M9 2.5h4.5V7M13.5 2.5 7.5 8.5M11.5 9v4.5h-9v-9H7"/>',
  lock: '<rect x="3" y="7" width="10" height="6.8" rx="1.4"/><path d="M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2"/>',
  gear: '<path d="M2 4.5h7m3 0h2M2 11.5h2m3 0h7"/><circle cx="10.5" cy="4.5" r="1.6"/><circle cx="5.5" cy="11.5" r="1.6"/>',
  bell: '<path d="M3.5 11.5c1-1.2 1-2.5 1-4.5a3.5 3.5 0 0 1 7 0c0 2 0 3.3 1 4.5zM6.8 13.7h2.4"/>',
  pen: '<path d="m3 13 .7-3.2 7-7 2.5 2.5-7 7zM9.2 4.3l2.5 2.5"/>',
  out: '<path d="M8 2.2v7.6m-3.2-3.2L8 9.8l3.2-3.2M2.5 11v2.5h11V11"/>',
  bin: '<path d="M2.5 4.2h11M6 4V2.2h4V4m-6 .3.7 9.5h6.6l.7-9.5M6.7 7v4m2.6-4v4"/>',
} as const;

const symbols = Object.entries(PICTURES).map(
  ([name, picture]) => `<symbol id="i-${name}" viewBox="0 0 16 16">${picture}</symbol>`,
);

/** Goes into a document once. */
export const SPRITE = new Html(
  `<svg class="hide" aria-hidden="true"><defs>${symbols.join("")}` +
    '<pattern id="hatch-amber" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6"/><path d="M0 0v6" stroke-width="3"/></pattern>' +
    '<pattern id="hatch-red" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="6" height="6"/><path d="M0 0v6" stroke-width="3"/></pattern>' +
    "</defs></svg>",
);

export type IconName = keyof typeof PICTURES;

export type Tone = "blue" | "green" | "amber" | "red" | "faint";

export const icon = (name: IconName, tone?: Tone): Html =>
  html`<svg class="${tone === undefined ? "i" : `i i-${tone}`}" aria-hidden="true">
    <use href="#i-${name}" />
  </svg>`;
