/** Reads a run for the app. */
import { type RunView, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { html } from "../views/html.ts";
import { SPRITE } from "../views/room/icons.ts";
import { renderAnswer } from "../views/room/answer.ts";
import { renderRequests, requestsOf } from "../views/room/review.ts";
import { renderRunHead } from "../views/room/run-head.ts";
import { workBody } from "./screens.ts";

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
