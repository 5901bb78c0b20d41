/** What a run did to one file. */
import { oneLine } from "../../../core/text.ts";
import { type PageSession, runPath } from "../../page/sessions.ts";
import type { FileChange } from "../../page/updates.ts";
import { renderDiff } from "../content/diff.ts";
import { html } from "../html.ts";
import { dayAndTime } from "./figures.ts";
import { icon } from "./icons.ts";
import { mainOf } from "./pieces.ts";
import type { Screen } from "./shell.ts";

/** The newest first. It stands still: the run's own page links here when there is more. */
export function renderChanges(
  session: PageSession,
  run: string,
  path: string,
  changes: readonly FileChange[],
): Screen {
  const items = changes.toReversed().map(
    ({ time, agent, diff }) =>
      html`<section class="section">
        <h2>${agent} <span class="small dim">${dayAndTime(time)}</span></h2>
        <div class="panel">
          ${diff === undefined ? html`<p class="note pad">What changed was not told.</p>` : renderDiff(diff, { label: "What changed", path })}
        </div>
      </section>`,
  );
  return {
    title: `Changes of ${oneLine(path, 80)}`,
    place: "runs",
    waiting: 0,
    isLive: false,
    hasNavigation: session.run === undefined,
    main: mainOf(
      session,
      "",
      html` <p class="crumbs top-space">
          <a href="${runPath(run)}">Back to the run</a>${icon("chev")}<code>${run}</code>
        </p>
        <h1 class="anywhere">${path}</h1>
        ${items.length === 0 ? html`<p class="note">This run has not changed that file.</p>` : items}`,
    ),
  };
}
