/** The files that a run changed, each with what it did to them against the file before the run. */
import type { DiffCounts } from "../../core/diff.ts";
import type { ChangedFile } from "../views/room/answer.ts";
import type { FileChange } from "../views/room/changes.ts";
import { type RunChanges, joinedChange } from "./file-changes.ts";
import { renderedDiff } from "./rendered-diff.ts";

/** So many characters of diffs are rendered in one page; the others are a link away. */
const MAX_DIFFS = 60_000;

export async function changedFiles(known: RunChanges): Promise<ChangedFile[]> {
  const byPath = new Map<string, FileChange[]>();
  for (const change of known.changes) {
    const own = byPath.get(change.data.path);
    if (own === undefined) byPath.set(change.data.path, [change]);
    else own.push(change);
  }
  const files: ChangedFile[] = [];
  let left = MAX_DIFFS;
  for (const [path, own] of byPath) {
    const joined = joinedChange({ ...known, changes: own }, path);
    const diffs = joined === undefined ? own.toReversed().map(({ data }) => data.diff ?? "") : [joined.diff];
    left -= diffs.reduce((sum, { length }) => sum + length, 0);
    const counts = joined === undefined ? sumOf(own) : { added: joined.added, removed: joined.removed };
    const isShown = left >= 0 && diffs.every((diff) => diff !== "");
    files.push({
      path,
      time: own[0]?.time ?? 0,
      changes: own.length,
      counts,
      diffs: isShown
        ? await Promise.all(diffs.map((diff) => renderedDiff(path, diff, joined && { counts })))
        : undefined,
    });
  }
  return files;
}

/** Lines of all changes together; `undefined` as soon as those of one are not known. */
function sumOf(changes: readonly FileChange[]): DiffCounts | undefined {
  const counts = changes.flatMap(({ data: { added, removed } }) =>
    added === undefined || removed === undefined ? [] : [{ added, removed }],
  );
  if (counts.length < changes.length) return undefined;
  return {
    added: counts.reduce((sum, { added }) => sum + added, 0),
    removed: counts.reduce((sum, { removed }) => sum + removed, 0),
  };
}
