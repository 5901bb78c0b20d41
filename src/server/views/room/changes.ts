/** What a run did to one file. */
import type { Viewer } from "../../page/sessions.ts";
import type { FileChange } from "../../page/updates.ts";
import { type Html, html } from "../html.ts";
import { dayAndTime } from "./figures.ts";
import { diffLooks } from "./pieces.ts";

/** The newest first. */
export function renderChanges(viewer: Viewer, changes: readonly FileChange[]): Html {
  if (changes.length === 0) return html`<p class="note">This run has not changed that file.</p>`;
  const items = changes.map(
    ({ time, agent, diff }) =>
      html`<section class="section">
        <h2>${agent} <span class="small dim">${dayAndTime(time)}</span></h2>
        <div class="panel">${diff ?? html`<p class="note pad">What changed was not told.</p>`}</div>
      </section>`,
  );
  return html`${diffLooks(viewer)}${items}`;
}
