/** Reads the change that a run proposes, for its screen and its form. */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { displayDiff } from "../../core/diff.ts";
import { NewestOf } from "../../core/newest-of.ts";
import { displayName, headOf, oneLine } from "../../core/text.ts";
import { type ProposedChange, type ProposedFile, hasConflict } from "../../runs/proposals.ts";
import { type AgentPath, type Run, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { type PageSession, isShared } from "../contracts/viewer.ts";
import { type Html, html } from "../views/html.ts";
import { WORKSPACE } from "../views/room/file-tree.ts";
import type { ChosenOfChange, ProposedScreen, ShownChange } from "../views/room/proposed.ts";
import type { ChosenOfFile, ShownFile } from "../views/room/proposed-file.ts";
import { boxesOf, endOfFile, hasOneBox, partLink } from "../views/room/proposed-file.ts";
import { changesOfRun } from "./file-changes.ts";
import { plainText, renderedDiff, renderedText } from "./whole-text.ts";
import { textOf } from "./responses.ts";
import { type PartScreen, type ScreenContext, partScreen } from "./screen-context.ts";

/**
 * Limits: files of one screen, lines and characters of the diffs shown at once, and characters of a file part that is
 * loaded separately.
 */
const MAX = { files: 300, lines: 3000, chars: 400_000, reads: 100, part: 200_000 };

export interface StampedChange {
  change: ProposedChange;
  /** In the order of the change. One whose diff the screen has no room for is read by itself, as a long one is. */
  files: readonly { file: ProposedFile; stamp: string }[];
}

export function stamped(change: ProposedChange): StampedChange {
  const left = { lines: MAX.lines, chars: MAX.chars };
  const files = change.files.slice(0, MAX.files).map((file) => {
    const texts = file.places.map(({ diff }) => diff);
    const chars = texts.reduce((sum, { length }) => sum + length, 0);
    const lines = texts.reduce((sum, diff) => sum + diff.split("\n").length, 0);
    const fits = chars <= left.chars && lines <= left.lines && file.unshown !== "text";
    if (fits) [left.chars, left.lines] = [left.chars - chars, left.lines - lines];
    const own = fits ? file : { ...file, unshown: "text" as const };
    const { path, version, conflict, places } = file;
    const facts = [path, version, conflict, ...places.map((place) => place.conflict)];
    return { file: own, stamp: factsDigest(facts).slice(0, 20) };
  });
  return { change, files };
}

/** Digest of facts that a form proves: it shows that they were seen. */
export const factsDigest = (facts: readonly unknown[]): string =>
  createHash("sha256").update(JSON.stringify(facts)).digest("base64url");

/** A field of the form behind the end of a file that was read by itself. It grants nothing to a session. */
const readingProof = (session: PageSession, stamp: string): string =>
  factsDigest(["read to its end", session.id, stamp]);

/** True if the form comes from a screen that showed all of the file. */
export const hasRead = (session: PageSession, stamp: string, form: URLSearchParams): boolean =>
  form.getAll("read").includes(readingProof(session, stamp));

/** Reads changes. That of a run at work is asked for at each of its events, and comparing folders takes time. */
export class ChangeReader {
  readonly #clock: Clock;
  readonly #newest = new NewestOf<{ at: number; change: Promise<ProposedChange | undefined> }>(MAX.reads);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async read(runs: PrincipalRuns, run: Run): Promise<ProposedChange | undefined> {
    const read = () => runs.changes.proposed(run.id);
    if (run.status !== "working") return read();
    const now = this.#clock();
    const before = this.#newest.get(run.id);
    // The change of a run at work is read again after 5 seconds.
    if (before !== undefined && now - before.at < 5000) return before.change;
    const change = read();
    this.#newest.keep(run.id, { at: now, change });
    return change;
  }
}

/** `form`: one that was not taken. `undefined`: the run makes its changes itself, or its change is not for this page. */
export async function proposedScreen(
  context: ScreenContext,
  run: Run,
  form?: URLSearchParams,
): Promise<ProposedScreen | undefined> {
  const { runs, session, folderOf, changeOf, logger } = context;
  if (run.changes !== "propose" || isShared(session)) return undefined;
  // A later run of the same conversation may work in the copy of one that has ended.
  const later = { threadId: run.threadId, tasksOnly: true };
  const [newest] = isFinal(run.status) ? await runs.read.summaries(later, { limit: 1 }) : [];
  const other = newest === undefined || isFinal(newest.status) ? undefined : newest.id;
  const about = { run, folder: folderOf?.(run), other };
  try {
    const change = await changeOf(runs, run);
    if (change === undefined)
      return { ...about, change: (await runs.changes.hasCopy(run.id)) ? change : "elsewhere" };
    const read = stamped(change);
    const chosen = form && chosenIn(read, form);
    const proofs = (stamp: string) =>
      form && hasRead(session, stamp, form) ? readingProof(session, stamp) : undefined;
    const { changes } = await changesOfRun(runs, run);
    // The agent that changed each file last, by its path.
    const agents = new Map(
      changes.toReversed().map(({ data: { path }, agent }) => [path.slice(WORKSPACE.length), agent]),
    );
    return { ...about, chosen, change: await shown(read, agents, proofs) };
  } catch (error) {
    logger.warn("page.change_unread", { runId: run.id, error });
    return { ...about, change: "unread" };
  }
}

/** Reads the boxes of a form, for those files that are still as they were shown. */
export function chosenIn({ files }: StampedChange, form: URLSearchParams): ChosenOfChange {
  const seen = seenIn(form);
  const own = files.filter(({ stamp }) => seen.has(stamp));
  return new Map(own.map(({ file, stamp }) => [stamp, readChoice(file, stamp, form)]));
}

/** The paths of the files that a form showed, by their stamps. */
export const seenIn = (form: URLSearchParams): Map<string, string> =>
  new Map(
    form.getAll("seen").map((seen) => [seen.slice(0, seen.indexOf(" ")), seen.slice(seen.indexOf(" ") + 1)]),
  );

function readChoice(file: ProposedFile, stamp: string, form: URLSearchParams): ChosenOfFile {
  const [ticked, conflict] = [form.getAll(`p.${stamp}`), form.get(`c.${stamp}`)];
  const all = ticked.includes("all") ? ("all" as const) : [];
  return {
    places:
      hasOneBox(file) || file.unshown === "text"
        ? all
        : boxesOf(file).filter((place) => ticked.includes(String(place))),
    conflict: hasConflict(file) && (conflict === "take" || conflict === "fit") ? conflict : "keep",
    ...(form.has(`x.${stamp}`) ? { refused: textOf(form, `m.${stamp}`) } : {}),
  };
}

async function shown(
  { change, files }: StampedChange,
  agents: ReadonlyMap<string, AgentPath>,
  proofOfRead: (stamp: string) => string | undefined,
): Promise<ShownChange> {
  const own: ShownFile[] = [];
  for (const { file, stamp } of files) {
    const diffs: Html[] = [];
    for (const { diff } of file.unshown === "text" ? [] : file.places)
      diffs.push(await renderedDiff(file.path, diff, { isPlace: true }));
    own.push({ file, stamp, agent: agents.get(file.path), proof: proofOfRead(stamp), diffs });
  }
  const { copiedAt, isRepository, reviews, commits = [] } = change;
  const more = change.more + change.files.length - files.length;
  return { files: own, more, copiedAt, isRepository, reviews, commits };
}

/**
 * The screen of one file that is read by itself, part by part; behind its end it can be chosen. `undefined`: it is not
 * as it was any more.
 */
export const fileScreen: PartScreen = async (context, runId, query) => {
  const { runs, session, changeOf } = context;
  const run = (await runs.read.view(runId))?.run;
  const change = run?.changes === "propose" && !isShared(session) ? await changeOf(runs, run) : undefined;
  const found = change && stamped(change).files.find(({ stamp }) => stamp === query.get("file"));
  const all = found && (await runs.changes.proposed(runId, [found.file.path]));
  const whole = all?.files.find(({ path }) => path === found?.file.path);
  if (found === undefined || whole?.version !== found.file.version) return undefined;
  const { stamp, file } = found;
  const parts = splitText(whole.places.map(({ diff }) => diff).join("\n"));
  const asked = Math.trunc(Number(query.get("part"))) || 0;
  const index = Math.max(Math.min(asked, parts.length - 1), 0);
  const [text = "", label] = [parts[index], `Change of ${file.path}`];
  const shownPart =
    parts.length > 1
      ? plainText(text, label, displayDiff)
      : renderedText(text, { kind: "diff", label, path: file.path });
  const rest =
    index + 1 < parts.length
      ? partLink(runId, stamp, index + 1, `Read part ${index + 2} of ${parts.length}`)
      : endOfFile(stamp, readingProof(session, stamp), true);
  const body = html`<div data-part>${await shownPart} ${rest}</div>`;
  const title = oneLine(displayName(file.path), 200);
  return partScreen(context, runId, { title, heading: title, body });
};

/** A text in parts that end with a line, unless a line is too long. */
function splitText(text: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    const piece = headOf(text.slice(at, at + MAX.part + 1), MAX.part);
    const end = at + piece.length < text.length ? piece.lastIndexOf("\n") + 1 : 0;
    parts.push(piece.slice(0, end || piece.length));
    at += end || piece.length;
  }
  return parts;
}
