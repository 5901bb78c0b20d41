/** Renders diffs in turns with everything else: one of many lines takes most of a turn. */
import { ownTurn } from "../../core/concurrency.ts";
import { renderDiff } from "../views/content/diff.ts";
import type { Html } from "../views/html.ts";

/** `lines`: address of its unchanged lines, if they are known. */
export async function renderedDiff(path: string, diff: string, lines?: string): Promise<Html> {
  await ownTurn();
  return renderDiff(diff, { label: `Change of ${path}`, path, lines });
}
