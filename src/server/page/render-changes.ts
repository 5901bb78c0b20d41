import { oneLine } from "../../core/text.ts";
import { html, type Html } from "./html.ts";
import type { FileChange } from "./page-changes.ts";
import { runPath } from "./page-sessions.ts";
import { renderDiff } from "./render-diff.ts";
import { layout } from "./render-layout.ts";
import { renderTime } from "./render-time.ts";

/** What a run did to one file, newest first. It stands still: the run's own page links here when there is more. */
export function renderChanges(run: string, path: string, changes: readonly FileChange[]): Html {
  const items = changes.toReversed().map(renderChange);
  return layout(
    `Changes of ${oneLine(path, 80)}`,
    html`<main>
      <header>
        <p class="brand"><a href="${runPath(run)}">Back to the run</a> <code>${run}</code></p>
        <h1>${path}</h1>
      </header>
      ${items.length === 0 ? html`<p class="none">This run has not changed that file.</p>` : items}
    </main>`,
  );
}

function renderChange({ time, agent, diff }: FileChange): Html {
  return html`<section>
    <h2>${agent} <small>${renderTime(time)}</small></h2>
    ${diff === undefined ? html`<p class="none">What changed was not told.</p>` : renderDiff(diff, "What changed")}
  </section>`;
}
