import { diffLines } from "../diff-lines.ts";
import { html, type Html } from "./html.ts";

/** A unified diff with its changed lines coloured. Every line keeps its line break and its indentation. */
export function renderDiff(diff: string, label: string): Html {
  const lines = diffLines(diff).map(({ kind, text }, index) => {
    const lineBreak = index === 0 ? "" : "\n";
    return kind === "context"
      ? `${lineBreak}${text}`
      : html`${lineBreak}<span class="${kind}">${text}</span>`;
  });
  return html`<pre class="detail" tabindex="0" aria-label="${label}">${lines}</pre>`;
}
