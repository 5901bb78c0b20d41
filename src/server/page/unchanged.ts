/** Unchanged lines around a change, where the file still matches the change. */
import { ownTurn } from "../../core/concurrency.ts";
import { type DiffLine, diffLines, displayDiff } from "../../core/diff.ts";
import { displayMarked, displayText, oneLine } from "../../core/text.ts";
import { isApproval } from "../../runs/run.ts";
import { renderGap } from "../views/content/diff.ts";
import { html } from "../views/html.ts";
import { changesOfRun, joinedChange } from "./file-changes.ts";
import { type PartScreen, type ScreenContext, partScreen } from "./screen-context.ts";
import { isShared, linesPath } from "../contracts/viewer.ts";

/** Limits of the lines returned at once, and of the files that are read at all. */
const MAX = { given: 1000, lines: 50_000, characters: 2_000_000 };

/** A change whose unchanged lines may be asked for, and the side of it that the file is. */
interface Change {
  path: string;
  diff: string;
  side: "oldLine" | "newLine";
}

/** The lines that a diff of the run leaves out. `undefined`: no such run, or no such change. */
export const linesScreen: PartScreen = async (context, runId, query) => {
  const [old, now, count] = ["old", "new", "count"].map((name) => readNumber(query.get(name)));
  const found = await findChange(context, runId, query);
  if (found === undefined || old === undefined || now === undefined || count === undefined) return undefined;
  const { subject, ...change } = found;
  const { path, side } = change;
  const lines = await linesBehind(context, runId, change);
  const first = (side === "oldLine" ? old : now) - 1;
  const view = { label: `Unchanged lines of ${path}`, path, lines: linesPath(runId, subject) };
  const rest = Math.max((lines?.length ?? 0) - first, 0);
  const left = count === 0 ? rest : Math.min(count, rest);
  const given = lines?.slice(first, first + Math.min(left, MAX.given));
  const shown = given
    ? renderGap({ old, new: now, count: left }, given, view)
    : html`<p class="note pad" data-part>
        The file has changed since then, so its unchanged lines are not known any more.
      </p>`;
  return partScreen(context, runId, {
    title: `Unchanged lines of ${oneLine(path, 80)}`,
    heading: displayText(path),
    body: html`<div class="panel top-gap">${shown}</div>`,
  });
};

/** True if a diff that was made in this run is the newest state of its file, so that lines around it are known. */
export const isAsItIs = async (context: ScreenContext, runId: string, change: Change): Promise<boolean> =>
  !isShared(context.session) && (await linesBehind(context, runId, change)) !== undefined;

const readNumber = (text: string | null): number | undefined =>
  text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;

/**
 * The change that an address means, and the part of the address that names it. A change that waits for approval is not
 * made yet; one in the journal is, and so are all of one file.
 */
async function findChange(
  { runs }: ScreenContext,
  runId: string,
  query: URLSearchParams,
): Promise<(Change & { subject: Record<string, string> }) | undefined> {
  const [approval, file, change] = ["approval", "file", "change"].map((name) => query.get(name));
  const view = await runs.read.view(runId);
  if (typeof file === "string") {
    const joined = view && joinedChange(await changesOfRun(runs, view.run), file);
    return joined && { subject: { file }, path: file, diff: joined.diff, side: "newLine" };
  }
  if (typeof approval === "string") {
    const { status, preview, args } =
      view?.requests.filter(isApproval).find(({ id }) => id === approval) ?? {};
    const path = args?.["file_path"];
    return status === "pending" && preview?.kind === "diff" && typeof path === "string"
      ? { subject: { approval }, path, diff: preview.detail, side: "oldLine" }
      : undefined;
  }
  const seq = readNumber(change ?? null) ?? 0;
  const [event] = (await runs.read.events(runId, { after: seq - 1, limit: 1 })) ?? [];
  if (event?.kind !== "file_changed" || event.seq !== seq || event.data.diff === undefined) return undefined;
  const { path, diff } = event.data;
  return { subject: { change: String(seq) }, path, diff, side: "newLine" };
}

/** Returns the file's lines, if those of the diff are at the stated place. */
async function linesBehind({ runs }: ScreenContext, runId: string, { path, diff, side }: Change) {
  const files = await runs.files.ofRun(runId);
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
