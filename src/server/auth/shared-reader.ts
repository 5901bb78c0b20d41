/** Reduces runs for readers of a shared link: to the texts and acts of agents, without anything they only read. */
import { changedLines } from "../../core/diff.ts";
import type { RunEvent } from "../../runs/events.ts";
import { type Principal, type RunView, STATUS_WORDS } from "../../runs/run.ts";
import type { PrincipalRuns, RunsByHolder } from "../../runs/service.ts";

/** Binds runs for such a reader. Every screen, export and stream reads through these methods alone. */
export function sharedRuns(runs: RunsByHolder, principal: Principal): PrincipalRuns {
  const { read, watch, files } = runs.as({ principal });
  const refused = runs.as({ principal, scopes: [] });
  return {
    ...refused,
    read: {
      ...refused.read,
      view: async (...args) => {
        const view = await read.view(...args);
        return view && sharedView(view);
      },
      recentEvents: async (...args) => (await read.recentEvents(...args))?.map(sharedEvent),
    },
    watch: {
      ...refused.watch,
      async *events(...args) {
        for await (const event of watch.events(...args)) yield sharedEvent(event);
      },
    },
    files: { ...refused.files, ofRun: (runId) => files.ofRun(runId) },
  };
}

/** Removes the first line of a call's result, which may be of a file, a command, a page or another server. */
function sharedEvent(event: RunEvent): RunEvent {
  if (event.kind === "tool_finished") return { ...event, data: { ...event.data, summary: "" } };
  if (event.kind !== "file_changed" || event.data.diff === undefined) return event;
  return { ...event, data: { ...event.data, diff: changedLines(event.data.diff) } };
}

/** The newest lines of a run and its agents may be those of a failed call. */
const sharedView = (view: RunView): RunView => ({
  ...view,
  activity: STATUS_WORDS[view.run.status],
  subagents: view.subagents.map((subagent) => ({ ...subagent, step: subagent.status })),
  requests: view.requests.map((request) =>
    request.kind === "approval" && request.preview.kind === "diff"
      ? { ...request, preview: { ...request.preview, detail: changedLines(request.preview.detail) } }
      : request,
  ),
});
