/** The changes of one file by runs. */
import type { RunEvent } from "../../../runs/events.ts";
import { byRuleText } from "../../../runs/asked-words.ts";
import { type Approval, BY_RULE, agentName, nameOf, type Run } from "../../../runs/run.ts";
import { displayName, oneLine } from "../../../core/text.ts";
import { type Viewer, runPath } from "../../contracts/viewer.ts";
import { renderDiffCounts } from "../content/diff.ts";
import { type Html, html, icon } from "../html.ts";
import { dayAndTime, timeOf } from "./figures.ts";
import { diffLooks } from "./pieces.ts";
import { keyOf } from "./timeline.ts";

type ChangeEvent = Extract<RunEvent, { kind: "file_changed" }>;

export interface FileChange extends Pick<ChangeEvent, "seq" | "time" | "agent"> {
  run: Pick<Run, "id" | "task" | "name">;
  data: ChangeEvent["data"];
}

export interface ShownChange extends FileChange {
  /** True if the page shows files of several runs, so that the run has to be named. */
  isOfMany: boolean;
  approval: Approval | undefined;
  /** Undefined if the call did not report its change, like tools of other servers. */
  shown: Html | undefined;
}

/** The agent, time and approval of a change, and its size unless its diff shows it. */
export function changeFacts({ run, agent, time, data, approval, isOfMany, shown }: ShownChange): Html {
  const { added, removed } = data;
  const last = agent.at(-1);
  const name = last === undefined ? "Main agent" : agentName(last);
  const key = keyOf(agent);
  const by = isOfMany ? nameOf(run) : name;
  const { decidedBy = "", status } = approval ?? {};
  const where = { page: "on this page", terminal: "in a terminal" }[decidedBy] ?? "in an MCP client";
  const decided = decidedBy.startsWith(BY_RULE)
    ? byRuleText(decidedBy)
    : decidedBy.startsWith("same as ")
      ? "approved as before"
      : `approved by you, ${where}`;
  const approved = status === "edited" ? `${decided}, with changes` : decided;
  const address = `${runPath(run.id)}/work${key === "" ? "" : `?agent=${key}`}`;
  return html`<span
      >Changed by <a class="link" href="${address}">${displayName(oneLine(by, 80))}</a>,
      ${isOfMany ? dayAndTime(time) : timeOf(time)}</span
    >
    ${approval && html`<span class="approved">${icon("done", "green")}${approved}</span>`}
    ${shown === undefined && added !== undefined && removed !== undefined && renderDiffCounts({ added, removed })}`;
}

/** The newest first; at least one. */
export function renderChanges(viewer: Viewer, changes: readonly ShownChange[]): Html {
  const items = changes.map(
    (change) =>
      html`<section class="change">
        <h2 class="view-meta">${changeFacts(change)}</h2>
        <div class="panel">
          ${change.shown ?? html`<p class="note pad">The tool did not report what it changed.</p>`}
        </div>
      </section>`,
  );
  return html`${diffLooks(viewer)}${items}`;
}
