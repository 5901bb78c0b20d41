/** Unchanged lines around a change, where the file is still as the change says. */
import { ownTurn } from "../../core/concurrency.ts";
import { type DiffLine, diffLines, displayDiff } from "../../core/diff.ts";
import { displayMarked, displayText, oneLine } from "../../core/text.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { renderGap } from "../views/content/diff.ts";
import { html } from "../views/html.ts";
import type { Screen } from "../views/room/shell.ts";
import { changesOfRun, joinedChange } from "./file-changes.ts";
import { type ScreenContext, partScreen } from "./screens.ts";
import { linesPath } from "../contracts/viewer.ts";

/** Lines given at once, and of a file that is looked at at all. */
const MAX = { given: 1000, lines: 50_000, characters: 2_000_000 };

/** A change whose unchanged lines may be asked for, and the side of it that the file is. */
interface Change {
  path: string;
  diff: string;
  side: "oldLine" | "newLine";
}

/** The lines that a diff of the run leaves out. `undefined`: no such run, or no such change. */
export async function linesScreen(
  { runs, session }: ScreenContext,
  runId: string,
  query: URLSearchParams,
): Promise<Screen | undefined> {
  const [old, now, count] = ["old", "new", "count"].map((name) => numberOf(query.get(name)));
  const change = await changeOf({ runs, session }, runId, query);
  if (change === undefined || old === undefined || now === undefined || count === undefined) return undefined;
  const { path, side } = change;
  const lines = await linesBehind(runs, session.principal, runId, change);
  const first = (side === "oldLine" ? old : now) - 1;
  const address = linesPath(runId, subjectOf(query));
  const view = { label: `Unchanged lines of ${path}`, path, lines: address };
  const rest = Math.max((lines?.length ?? 0) - first, 0);
  const left = count === 0 ? rest : Math.min(count, rest);
  const shown =
    lines === undefined
      ? CHANGED
      : renderGap(
          { old, new: now, count: left },
          lines.slice(first, first + Math.min(left, MAX.given)),
          view,
        );
  return partScreen({ runs, session }, runId, {
    title: `Unchanged lines of ${oneLine(path, 80)}`,
    heading: displayText(path),
    body: html`<div class="panel top-gap">${shown}</div>`,
  });
}

const CHANGED = html`<p class="note pad" data-part>
  The file has changed since then, so its unchanged lines are not known any more.
</p>`;

/** True if a diff that was made in this run is the newest state of its file, so that lines around it are known. */
export async function isAsItIs(
  runs: PrincipalRuns,
  principal: string,
  runId: string,
  change: Change,
): Promise<boolean> {
  return (await linesBehind(runs, principal, runId, change)) !== undefined;
}

const subjectOf = (query: URLSearchParams): Readonly<Record<string, string>> => {
  const [approval, file] = [query.get("approval"), query.get("file")];
  if (file !== null) return { file };
  return approval === null ? { change: query.get("change") ?? "" } : { approval };
};

const numberOf = (text: string | null): number | undefined =>
  text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;

/** A change that waits for approval is not made yet; one in the journal is, and so are all of one file. */
async function changeOf(
  { runs, session: { principal } }: Pick<ScreenContext, "runs" | "session">,
  runId: string,
  query: URLSearchParams,
): Promise<Change | undefined> {
  const [approvalId, file] = [query.get("approval"), query.get("file")];
  if (file !== null) {
    const view = await runs.view(principal, runId);
    const joined = view && joinedChange(await changesOfRun(runs, view.run), file);
    return joined && { path: file, diff: joined.diff, side: "newLine" };
  }
  if (approvalId !== null) {
    const view = await runs.view(principal, runId);
    const approval = view?.approvals.find(({ id }) => id === approvalId);
    const path = approval?.args["file_path"];
    return approval?.status === "pending" && approval.preview.kind === "diff" && typeof path === "string"
      ? { path, diff: approval.preview.detail, side: "oldLine" }
      : undefined;
  }
  const seq = numberOf(query.get("change")) ?? 0;
  const [event] = (await runs.events(principal, runId, { after: seq - 1, limit: 1 })) ?? [];
  if (event?.kind !== "file_changed" || event.seq !== seq || event.data.diff === undefined) return undefined;
  return { path: event.data.path, diff: event.data.diff, side: "newLine" };
}

/** The lines of the file, if those that the diff shows are where it says. */
async function linesBehind(
  runs: PrincipalRuns,
  principal: string,
  runId: string,
  { path, diff, side }: Change,
): Promise<string[] | undefined> {
  const files = await runs.runFiles(principal, runId);
  const file = await files?.read(path, 0, MAX.lines);
  const text = file?.content;
  if (typeof text !== "string" || file?.nextOffset !== undefined || text.length > MAX.characters)
    return undefined;
  await ownTurn();
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const shown = diffLines(displayDiff(diff)).filter((line) => line[side] !== undefined);
  return shown.length > 0 && shown.every((line) => isAt(line, lines[(line[side] ?? 0) - 1]))
    ? lines.map(withoutReturn)
    : undefined;
}

const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line);

/** A long line is cut in a diff, which marks carriage returns only where line ends differ. */
function isAt({ text, kind }: DiffLine, line: string | undefined): boolean {
  if (line === undefined) return false;
  const display = kind === "context" ? displayText : displayMarked;
  const [own, real] = [text.slice(1), display(withoutReturn(line))];
  if (own === real || own === display(line)) return true;
  const cut = / \[\d+ characters? more not shown\]$/.exec(own);
  return cut !== null && real.startsWith(own.slice(0, cut.index));
}
