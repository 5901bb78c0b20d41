/** The one HTML template that escapes, and the small pieces that pages are made of. */
import { isoTime } from "../../core/clock.ts";
import { diffLines } from "../../core/diff.ts";
import { stripControl } from "../../core/text.ts";

/** Text that is HTML already. Everything else is escaped when it is put into a template. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | readonly Part[];

/** HTML with every interpolated text escaped, for element content and double-quoted attributes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((fixed, index) => fixed + textOf(parts[index])).join(""));
}

function textOf(part: Part): string {
  if (part === undefined) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(textOf).join("");
  return escapeHtml(String(part));
}

/** Control characters and overrides of the writing direction, with which text can pretend, are left out. */
function escapeHtml(text: string): string {
  return stripControl(text).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A unified diff with its changed lines coloured. Every line keeps its line break and its indentation. */
export function renderDiff(diff: string, label: string): Html {
  const lines = diffLines(diff).map(({ kind, text }, index) => {
    const lineBreak = index === 0 ? "" : "\n";
    return kind === "context" || kind === "note"
      ? `${lineBreak}${text}`
      : html`${lineBreak}<span class="${kind}">${text}</span>`;
  });
  return html`<pre class="detail" tabindex="0" aria-label="${label}">${lines}</pre>`;
}

/** Hours, minutes and seconds in UTC. */
export const clockTime = (milliseconds: number): string => isoTime(milliseconds).slice(11, 19);

export function renderTime(milliseconds: number): Html {
  const iso = isoTime(milliseconds);
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${clockTime(milliseconds)} UTC</time>`;
}
