import { oneLine } from "../../core/text.ts";
import type { RunView } from "../../runs/run.ts";
import type { RunService } from "../../runs/service.ts";
import { html } from "../page/html.ts";
import { newestEvents } from "../page/page-updates.ts";
import { renderApprovals } from "../page/render-approvals.ts";
import { renderRun } from "../page/render-run.ts";

/** What the app shows of a run: what the page shows, with nothing to press. */
export async function renderAppView(
  view: RunView,
  runs: RunService,
  openCommand: string | undefined,
): Promise<string> {
  const { run } = view;
  const events = await newestEvents(runs, view);
  return html`<header>
      <p class="brand">Deep agent run <code>${run.id}</code></p>
      <h1>${oneLine(run.task, 200)}</h1>
    </header>
    ${renderApprovals(view, { session: "app", openCommand })} ${renderRun(view, events, "app")}`.text;
}
