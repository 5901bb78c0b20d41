import { html, type Html } from "./html.ts";

/** A unified diff with its lines coloured. */
export function renderDiff(diff: string, label: string): Html {
  return html`<pre class="detail" tabindex="0" aria-label="${label}">${diff.split("\n").map(diffLine)}</pre>`;
}

function diffLine(line: string): Html {
  return html`<span class="${kindOf(line)}">${line} </span>`;
}

function kindOf(line: string): string {
  if (line.startsWith("+")) return "add";
  if (line.startsWith("-")) return "del";
  return line.startsWith("@@") ? "hunk" : "";
}
