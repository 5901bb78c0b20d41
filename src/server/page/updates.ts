/** Renders a run outside the page: for the app, and as a file. */
import { type RunView, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { html, SPRITE } from "../views/html.ts";
import { runDocument } from "../views/run-document.ts";
import { transcriptOf } from "../views/transcript.ts";
import { renderAnswer } from "../views/room/answer.ts";
import { renderRequests, requestsIn } from "../views/room/review.ts";
import { renderRunHead } from "../views/room/run-head.ts";
import type { ScreenContext } from "./screen-context.ts";
import { workBody } from "./screens.ts";

/** Renders a run for the app, of the same pieces as the page, without buttons. */
export async function renderAppView(
  view: RunView,
  runs: PrincipalRuns,
  openCommand: string | undefined,
  now: number,
): Promise<string> {
  const viewer = { session: "app" as const, openCommand };
  const requests = renderRequests({ requests: requestsIn(view, new Map()), viewer, now });
  const answer = isFinal(view.run.status)
    ? renderAnswer({ view, viewer: "app", files: [], points: [] })
    : undefined;
  const work = await workBody(runs, view, "app", new URLSearchParams());
  return html`${SPRITE}${renderRunHead(view, "app", { tab: "work", now })}${requests}${answer}${work(now)}`
    .text;
}

/** A run as Markdown for people, or as the JSON that clients get. `undefined`: no such run, or no such form. */
export async function exportText({ runs }: ScreenContext, runId: string, query: URLSearchParams) {
  const view = await runs.read.view(runId);
  const form = query.get("as");
  if (view === undefined) return undefined;
  if (form === "json") return `${JSON.stringify(runDocument(view), null, 2)}\n`;
  if (form !== "markdown") return undefined;
  const events = (await runs.read.recentEvents(runId, { limit: 1000 })) ?? [];
  return transcriptOf(view, events.toReversed());
}
