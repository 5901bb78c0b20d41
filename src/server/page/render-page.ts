import { oneLine } from "../../core/text.ts";
import type { RunEvent, RunView } from "../../runs/run.ts";
import { html, type Html } from "./html.ts";
import { runPath, type PageSession } from "./page-sessions.ts";
import { renderApprovals, type Complaint } from "./render-approvals.ts";
import { ASSETS, layout } from "./render-layout.ts";
import { renderRun } from "./render-run.ts";

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
