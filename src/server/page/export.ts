/** Gives a run as a file: Markdown for people, or the JSON that clients get. */
import { runDocument, transcriptOf } from "../views/run-document.ts";
import type { ScreenContext } from "./screens.ts";

/** The newest events in an export as Markdown. */
const MAX_EVENTS = 1000;

/** `undefined`: there is no such run, or no such form. */
export async function exportText(
  { runs, session: { principal } }: ScreenContext,
  runId: string,
  query: URLSearchParams,
): Promise<string | undefined> {
  const view = await runs.view(principal, runId);
  const form = query.get("as");
  if (view === undefined) return undefined;
  if (form === "json") return `${JSON.stringify(runDocument(view), null, 2)}\n`;
  if (form !== "markdown") return undefined;
  const events = (await runs.recentEvents(principal, runId, { limit: MAX_EVENTS })) ?? [];
  return transcriptOf(view, events.toReversed());
}
