/** The screen of one place of a proposed change. */
import { displayName, oneLine } from "../../core/text.ts";
import { html } from "../views/html.ts";
import { linesOf } from "../views/room/proposed-file.ts";
import type { Screen } from "../views/room/shell.ts";
import { stamped } from "./proposed.ts";
import { renderedDiff } from "./rendered-diff.ts";
import { type ScreenContext, partScreen } from "./screens.ts";

/** A place that is too long for the screen of them all. `undefined`: it is not as it was any more. */
export async function placeScreen(
  context: ScreenContext,
  runId: string,
  query: URLSearchParams,
): Promise<Screen | undefined> {
  const { runs, session, changes } = context;
  const run = (await runs.view(session.principal, runId))?.run;
  const change = run?.changes === "propose" ? await changes.read(runs, run) : undefined;
  const found = change && stamped(change).files.find(({ stamp }) => stamp === query.get("file"))?.file;
  const place = found?.places[Number(query.get("place"))];
  if (found === undefined || place === undefined) return undefined;
  const diff = await renderedDiff(found.path, place.diff);
  const title = oneLine(displayName(found.path), 200);
  const body = html`<h2 class="part-name">${linesOf(place)}</h2>
    <div class="panel" data-part>${diff}</div>`;
  return partScreen(context, runId, { title, heading: title, body });
}
