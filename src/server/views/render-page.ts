/** Whole pages: a run, the changes of one file, and notices. */
import { oneLine } from "../../core/text.ts";
import type { RunEvent } from "../../runs/events.ts";
import type { RunView } from "../../runs/run.ts";
import { type PageSession, runPath } from "../page/sessions.ts";
import type { FileChange } from "../page/updates.ts";
import { type Html, html, renderDiff, renderTime } from "./html.ts";
import { type Complaint, renderApprovals, renderRun } from "./render-run.ts";

export interface RunPage {
  view: RunView;
  events: readonly RunEvent[];
  session: PageSession;
  openCommand?: string | undefined;
  complaint?: Complaint;
}

/** A whole page of one run; complete without the script, which only keeps it up to date. */
export function renderRunPage({ view, events, session, openCommand, complaint }: RunPage): Html {
  const { run } = view;
  return layout(
    `Run: ${oneLine(run.task, 80)}`,
    html`<main data-run="${runPath(run.id)}" data-status="${run.status}">
      <header>
        <p class="brand">Deep agent run <code>${run.id}</code> <span id="connection" role="status"></span></p>
        <h1>${oneLine(run.task, 200)}</h1>
      </header>
      <div id="approvals" aria-live="polite">
        ${renderApprovals(view, { session, openCommand }, complaint)}
      </div>
      <div id="run">${renderRun(view, events, session)}</div>
      <noscript><p class="none">Scripts are off: reload the page to see what is new.</p></noscript>
    </main>`,
    ASSETS.script,
  );
}

/** Follows a link only on request: programs that look at links ahead of a person do not use them up. */
export function renderOpening(token: string): Html {
  return layout(
    "Open the run",
    html`<main class="notice">
      <h1>Deep agent run</h1>
      <form method="post" action="/open" id="open">
        <input type="hidden" name="token" value="${token}" />
        <button autofocus>Open the run</button>
      </form>
    </main>`,
    ASSETS.opener,
  );
}

export function renderNotice(title: string, text: string): Html {
  return layout(
    title,
    html`<main class="notice">
      <h1>${title}</h1>
      <p>${text}</p>
    </main>`,
  );
}

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

export const ASSETS = { style: "/page.css", script: "/page.js", opener: "/open.js" } as const;

/** A whole document around `body`. */
function layout(title: string, body: Html, script?: string): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${title}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="stylesheet" href="${ASSETS.style}" />
        ${script === undefined ? undefined : html`<script src="${script}" defer></script>`}
      </head>
      <body>
        ${body}
      </body>
    </html> `;
}
