/** Reads a run for the app, and what a run did to a file. */
import type { RunEvent } from "../../runs/events.ts";
import { type Principal, type RunView, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { agentLabel } from "../views/approval-form.ts";
import { type Html, html } from "../views/html.ts";
import { SPRITE } from "../views/room/icons.ts";
import { renderAnswer } from "../views/room/answer.ts";
import { renderRequests, requestsOf } from "../views/room/review.ts";
import { renderRunHead } from "../views/room/run-head.ts";
import { renderedDiff } from "./rendered-diff.ts";
import { workBody } from "./screens.ts";
import { linesPath } from "./sessions.ts";
import { isAsItIs } from "./unchanged.ts";

/** One change of a file by a call of the run. */
export interface FileChange {
  time: number;
  /** Agent that changed it. */
  agent: string;
  /** `undefined` when the call did not report it, as tools of other servers do not. */
  diff: Html | undefined;
}

const EVENTS_PER_PAGE = 500;
const MAX_CHANGES = 100;

/** The newest changes of `path` in this run, the newest first; `undefined`: no such run. */
export async function readChanges(
  runs: PrincipalRuns,
  principal: Principal,
  run: string,
  path: string,
): Promise<FileChange[] | undefined> {
  const changes: Extract<RunEvent, { kind: "file_changed" }>[] = [];
  for (let before: number | undefined; ;) {
    const wanted = { kinds: ["file_changed" as const], limit: EVENTS_PER_PAGE };
    const events = await runs.recentEvents(principal, run, {
      ...wanted,
      ...(before === undefined ? {} : { before }),
    });
    if (events === undefined) return undefined;
    for (const event of events)
      if (event.kind === "file_changed" && event.data.path === path) changes.push(event);
    if (changes.length >= MAX_CHANGES || events.length < EVENTS_PER_PAGE) break;
    before = events.at(-1)?.seq;
  }
  return Promise.all(
    changes.slice(0, MAX_CHANGES).map(async ({ seq, time, agent, data: { diff } }, index) => {
      // Behind an earlier change is a file that the later ones have changed.
      const isKnown =
        index === 0 &&
        diff !== undefined &&
        (await isAsItIs(runs, principal, run, { path, diff, side: "newLine" }));
      const lines = isKnown ? linesPath(run, { change: String(seq) }) : undefined;
      const shown = diff === undefined ? undefined : await renderedDiff(path, diff, lines);
      return { time, agent: agentLabel(agent), diff: shown };
    }),
  );
}

/** Renders a run for the app, of the same pieces as the page, without buttons. */
export async function renderAppView(
  view: RunView,
  runs: PrincipalRuns,
  openCommand: string | undefined,
  now: number,
): Promise<string> {
  const viewer = { session: "app" as const, openCommand };
  const requests = renderRequests({ requests: requestsOf(view, new Map()), viewer, now });
  const answer = isFinal(view.run.status)
    ? renderAnswer({ view, viewer: "app", changes: [], points: [] })
    : undefined;
  const work = await workBody(runs, view, "app", new URLSearchParams());
  return html`${SPRITE}${renderRunHead(view, "app", "work", now)}${requests}${answer}${work(now)}`.text;
}
