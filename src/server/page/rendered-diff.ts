/** Renders diffs in turns with everything else: one of many lines takes most of a turn. */
import { ownTurn } from "../../core/concurrency.ts";
import { type DiffView, renderDiff } from "../views/content/diff.ts";
import type { Html } from "../views/html.ts";

export async function renderedDiff(
  path: string,
  diff: string,
  view: Pick<DiffView, "lines" | "counts" | "remark" | "isPlace"> = {},
): Promise<Html> {
  await ownTurn();
  return renderDiff(diff, { label: `Change of ${path}`, path, ...view });
}
