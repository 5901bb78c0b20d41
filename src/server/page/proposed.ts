/** Reads the change that a run proposes, for its screen and its form. */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { displayName, oneLine } from "../../core/text.ts";
import { type ProposedChange, type ProposedFile, hasConflict } from "../../runs/proposals.ts";
import { type AgentPath, type Run, isFinal } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { isShared } from "../contracts/viewer.ts";
import { type Html, html } from "../views/html.ts";
import { WORKSPACE } from "../views/room/file-tree.ts";
import type { ChosenOfChange, ProposedScreen, ShownChange } from "../views/room/proposed.ts";
import {
  type ChosenOfFile,
  type ShownFile,
  boxesOf,
  hasOneBox,
  linesOf,
  plainChoice,
} from "../views/room/proposed-file.ts";
import { changesOfRun } from "./file-changes.ts";
import { renderedDiff } from "./whole-text.ts";
import { textOf } from "./responses.ts";
import { type PartScreen, type ScreenContext, partScreen } from "./screen.ts";

/** Files with a place of their own on the screen, and the lines and characters of diffs that stand there at once. */
const MAX = { files: 300, lines: 3000, chars: 400_000, reads: 100 };
/** Time for which the change of a run at work is not read again. */
const FRESH_MS = 5000;

/** A change with the stamps of its files. */
export interface StampedChange {
  change: ProposedChange;
  /** In the order of the change. */
  files: readonly { file: ProposedFile; stamp: string }[];
  /** Number of files that have a place of their own on the screen. */
  shown: number;
  /** Stamp of all the others. */
  listed: string;
}

export function stamped(change: ProposedChange): StampedChange {
  const files = change.files.map((file) => ({ file, stamp: stampOf(file) }));
  const listed = stampIn(files.slice(MAX.files).map(({ stamp }) => stamp));
  return { change, files, shown: Math.min(files.length, MAX.files), listed };
}

const stampOf = ({ path, version, conflict, places }: ProposedFile): string =>
  stampIn([path, version, conflict ?? null, ...places.map((place) => place.conflict ?? null)]);

const stampIn = (parts: readonly (string | null)[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 20);

/** Files of the list below the others that all of it means. */
export const plainFiles = ({ files, shown }: StampedChange): ProposedFile[] =>
  files
    .slice(shown)
    .map(({ file }) => file)
    .filter((file) => plainChoice(file).places.length > 0);

/** Reads changes. That of a run at work is asked for at each of its events, and comparing folders takes time. */
export class ChangeReader {
  readonly #clock: Clock;
  readonly #newest = new Map<string, { at: number; change: Promise<ProposedChange | undefined> }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async read(runs: PrincipalRuns, run: Run): Promise<ProposedChange | undefined> {
    const read = () => runs.proposedChange(run.principal, run.id);
    if (run.status !== "working") return read();
    const now = this.#clock();
    const before = this.#newest.get(run.id);
    if (before !== undefined && now - before.at < FRESH_MS) return before.change;
    const change = read();
    this.#newest.delete(run.id);
    this.#newest.set(run.id, { at: now, change });
    const [oldest] = this.#newest.keys();
    if (this.#newest.size > MAX.reads && oldest !== undefined) this.#newest.delete(oldest);
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
  const about = { run, folder: folderOf?.(run), other: await otherAtWork(runs, run) };
  try {
    const change = await changeOf(runs, run);
    if (change === undefined) return { ...about, change };
    const read = stamped(change);
    const chosen = form && chosenIn(read, form);
    return { ...about, chosen, change: await shown(read, await agentsOf(runs, run)) };
  } catch (error) {
    logger.warn("page.change_unread", { runId: run.id, error });
    return { ...about, change: "unread" };
  }
}

/** Reads the boxes of a form, for those files that are still as they were shown. */
export function chosenIn({ files, listed }: StampedChange, form: URLSearchParams): ChosenOfChange {
  const seen = new Set(form.getAll("seen"));
  const own = files.filter(({ stamp }) => seen.has(stamp));
  return {
    files: new Map(own.map(({ file, stamp }) => [stamp, chosenOf(file, stamp, form)])),
    hasListed: form.get("listed") === listed,
  };
}

function chosenOf(file: ProposedFile, stamp: string, form: URLSearchParams): ChosenOfFile {
  const [ticked, conflict] = [form.getAll(`p.${stamp}`), form.get(`c.${stamp}`)];
  const all = ticked.includes("all") ? ("all" as const) : [];
  return {
    places: hasOneBox(file) ? all : boxesOf(file).filter((place) => ticked.includes(String(place))),
    conflict: hasConflict(file) && (conflict === "take" || conflict === "fit") ? conflict : "keep",
    ...(form.has(`x.${stamp}`) ? { refused: textOf(form, `m.${stamp}`) } : {}),
  };
}

/** The run that works in the copy of one that has ended: a later one of the same conversation. */
async function otherAtWork(runs: PrincipalRuns, run: Run): Promise<string | undefined> {
  if (!isFinal(run.status)) return undefined;
  const [newest] = await runs.summaries(
    run.principal,
    { threadId: run.threadId, tasksOnly: true },
    { limit: 1 },
  );
  return newest === undefined || isFinal(newest.status) ? undefined : newest.id;
}

/** The agent that changed each file last, by its path. */
async function agentsOf(runs: PrincipalRuns, run: Run): Promise<ReadonlyMap<string, AgentPath>> {
  const { changes } = await changesOfRun(runs, run);
  return new Map(
    changes.toReversed().map(({ data: { path }, agent }) => [path.slice(WORKSPACE.length), agent]),
  );
}

async function shown(read: StampedChange, agents: ReadonlyMap<string, AgentPath>): Promise<ShownChange> {
  const { change, files } = read;
  const { more, copiedAt, isRepository, reviews } = change;
  const own: ShownFile[] = [];
  const left = { lines: MAX.lines, chars: MAX.chars };
  for (const { file, stamp } of files.slice(0, read.shown)) {
    const diffs: (Html | undefined)[] = [];
    for (const place of file.places) {
      const [lines, chars] = [place.diff.split("\n").length, place.diff.length];
      const fits = lines <= left.lines && chars <= left.chars;
      diffs.push(fits ? await renderedDiff(file.path, place.diff, { isPlace: true }) : undefined);
      if (!fits) continue;
      left.lines -= lines;
      left.chars -= chars;
    }
    own.push({ file, stamp, diffs, agent: agents.get(file.path) });
  }
  const listed = {
    paths: files.slice(read.shown).map(({ file }) => file.path),
    plain: plainFiles(read).length,
    stamp: read.listed,
  };
  return { files: own, listed, more, copiedAt, isRepository, reviews };
}

/**
 * The screen of one place, for a place that is too long for the screen of them all. `undefined`: it is not as it was
 * any more.
 */
export const placeScreen: PartScreen = async (context, runId, query) => {
  const { runs, session, changeOf } = context;
  const run = (await runs.view(session.principal, runId))?.run;
  const change = run?.changes === "propose" ? await changeOf(runs, run) : undefined;
  const found = change && stamped(change).files.find(({ stamp }) => stamp === query.get("file"))?.file;
  const place = found?.places[Number(query.get("place"))];
  if (found === undefined || place === undefined) return undefined;
  const diff = await renderedDiff(found.path, place.diff);
  const title = oneLine(displayName(found.path), 200);
  const body = html`<h2 class="part-name">${linesOf(place)}</h2>
    <div class="panel" data-part>${diff}</div>`;
  return partScreen(context, runId, { title, heading: title, body });
};
