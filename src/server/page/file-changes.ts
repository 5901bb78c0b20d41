/** Reads which runs changed which files, and who approved it, from the journals of the runs. */
import { defined } from "../../core/unknown.ts";
import { sumOfCounts } from "../../core/diff.ts";
import { groupBy } from "../../core/group-by.ts";
import type { Approval, Run } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { type CombinedDiff, combinedDiff } from "../views/content/combined-diff.ts";
import type { ChangedFile } from "../views/room/answer.ts";
import type { FileChange } from "../views/room/changes.ts";
import { MEMORIES, WORKSPACE } from "../views/room/file-tree.ts";
import { keyOf } from "../views/room/timeline.ts";
import { renderedDiff } from "./whole-text.ts";
import type { ScreenContext } from "./screen-context.ts";

/** `diffs`: characters that are rendered in one page; the others are a link away. */
const MAX = { perPage: 500, ofRun: 2000, runs: 30, ofOneOfMany: 200, diffs: 60_000 };

type ChangingRun = Pick<Run, "id" | "task" | "name" | "principal">;

/** The changes of one run, the newest first. */
export async function changesOfRun(runs: PrincipalRuns, run: ChangingRun): Promise<RunChanges> {
  const changes: FileChange[] = [];
  for (let before: number | undefined; changes.length < MAX.ofRun;) {
    const page = await readPage(runs, run, MAX.perPage, before);
    changes.push(...page);
    if (page.length < MAX.perPage) return { changes, isAll: true };
    before = page.at(-1)?.seq;
  }
  return { changes, isAll: false };
}

/** Omits changes that a proposing run made in its copy and nobody applied. */
export function inFolder<Known extends Pick<FileChange, "data">>(
  changes: readonly Known[],
  { changes: how, applied = {} }: Pick<Run, "changes" | "applied">,
): Known[] {
  if (how === undefined) return [...changes];
  return changes.flatMap((change): Known[] => {
    const { path, callId } = change.data;
    if (!path.startsWith(WORKSPACE)) return [change];
    const own = path.slice(WORKSPACE.length);
    // The journal has the whole change of a file, and the folder only a part.
    if (!Object.hasOwn(applied, own)) return [];
    return [applied[own] === "part" ? { ...change, data: { callId, path } } : change];
  });
}

export interface RunChanges {
  changes: readonly FileChange[];
  isAll: boolean;
}

/** The changes of one file by one run as one, where they can be joined. */
export function joinedChange({ changes, isAll }: RunChanges, path: string): CombinedDiff | undefined {
  const diffs = changes.filter(({ data }) => data.path === path).map(({ data: { diff } }) => diff);
  const known = diffs.filter((diff) => diff !== undefined);
  return isAll && known.length === diffs.length ? combinedDiff(known.toReversed()) : undefined;
}

async function readPage(runs: PrincipalRuns, run: ChangingRun, limit: number, before?: number) {
  const wanted = { kinds: ["file_changed" as const], limit, ...defined({ before }) };
  const events = (await runs.read.recentEvents(run.id, wanted)) ?? [];
  return events.flatMap((event) => (event.kind === "file_changed" ? [{ ...event, run }] : []));
}

/**
 * Returns changes by the newest runs to files that all runs share, newest first. A run's workspace is another folder
 * unless `isHere` returns true for it; all folders share the memories.
 */
export async function changesOfMany(context: ScreenContext): Promise<FileChange[]> {
  const { runs, isHere = () => true } = context;
  const newest = await runs.read.list({ limit: MAX.runs });
  const found = await Promise.all(
    newest.map(async (run) => {
      const roots = isHere(run) ? [MEMORIES, WORKSPACE] : [MEMORIES];
      const changes = await readPage(runs, run, MAX.ofOneOfMany);
      const own = changes.filter(({ data: { path } }) => roots.some((root) => path.startsWith(root)));
      const view = own.length === 0 ? undefined : await runs.read.view(run.id);
      return view === undefined ? [] : inFolder(own, view.run);
    }),
  );
  return found.flat().toSorted((one, other) => other.time - one.time);
}

/**
 * The approval with which each change was made; none for a change that needed no approval. `changes`: those of one
 * file, the newest first. An approval does not name its call, so it belongs to the first change after it by the same
 * agent.
 */
export function approvalsOfChanges(
  changes: readonly FileChange[],
  approvals: readonly Approval[],
): ReadonlyMap<number, Approval> {
  const found = new Map<number, Approval>();
  const used = new Set<string>();
  for (const { seq, time, agent, data } of changes.toReversed()) {
    const approval = approvals.findLast(
      (one) =>
        !used.has(one.id) &&
        (one.status === "approved" || one.status === "edited") &&
        (one.decidedAt ?? Infinity) <= time &&
        keyOf(one.agent) === keyOf(agent) &&
        [approvedPath(one), `/${String(approvedPath(one))}`].includes(data.path),
    );
    if (approval === undefined) continue;
    used.add(approval.id);
    found.set(seq, approval);
  }
  return found;
}

/** The path that the approved call was about. */
function approvedPath({ args, answer }: Approval): unknown {
  const ran = answer?.type === "edit" ? answer.editedAction.args : args;
  return ran["file_path"] ?? ran["path"];
}

/** Returns the files that a run changed in the folder, each compared with the file before the run. */
export async function changedFiles(known: RunChanges, run: Run): Promise<ChangedFile[]> {
  const files: ChangedFile[] = [];
  let left = MAX.diffs;
  const all = groupBy(inFolder(known.changes, run), ({ data }) => data.path);
  for (const path of Object.keys(run.applied ?? {}).map((own) => WORKSPACE + own))
    if (!all.has(path)) all.set(path, []);
  for (const [path, own] of all) {
    const joined = joinedChange({ ...known, changes: own }, path);
    const diffs = joined === undefined ? own.toReversed().map(({ data }) => data.diff ?? "") : [joined.diff];
    left -= diffs.reduce((sum, { length }) => sum + length, 0);
    const counts = sumOfCounts(joined === undefined ? own.map(({ data }) => data) : [joined]);
    const isShown = left >= 0 && diffs.every((diff) => diff !== "");
    files.push({
      path,
      time: own[0]?.time ?? run.updatedAt,
      changes: own.length,
      counts,
      diffs: isShown
        ? await Promise.all(diffs.map((diff) => renderedDiff(path, diff, joined && { counts })))
        : undefined,
    });
  }
  return files;
}
