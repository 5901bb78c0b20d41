/** Shows the changes that a run proposes, and applies those that a person chooses. */
import { recordText } from "../runs/review-events.ts";
import { hasTerminal } from "./setup.ts";
import type { FlagValues } from "../config/load.ts";
import { displayDiff } from "../core/diff.ts";
import { displayName, displayText, oneLine } from "../core/text.ts";
import { type ProposedChange, digestOf, hasConflict, versionsOf, isPlain } from "../runs/proposals.ts";
import { type OpenQuestion, type RunView, isFinal, waitingIn, isQuestion } from "../runs/run.ts";
import type { ReviewChoice } from "../tools/request.ts";
import { applyFilesText } from "../tools/format.ts";
import { type ExitCode, textOf, textsOf } from "./command.ts";
import { howToResume } from "./answer-run.ts";
import { type LocalRuns, unknownRun } from "./local-runs.ts";
import { complain, say, sayJson } from "./output.ts";
import { terminalAsker } from "./terminal/asker.ts";
import { textBody } from "./terminal/body.ts";
import { Keyboard } from "./terminal/keyboard.ts";
import { changeLines } from "./terminal/proposed.ts";
import { outputStyle } from "./terminal/text.ts";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { parsedJson, defined } from "../core/unknown.ts";

const NOTHING = "This run has nothing left to apply.";

/** Shows every file with its places and conflicts. With --file: all of some files, however long. */
export async function reviewRun(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const view = await local.runs.read.view(runId);
  if (view === undefined) return unknownRun(local, runId);
  const change = await local.runs.changes.proposed(runId);
  if (flags["json"] === true)
    return sayJson(change === undefined ? { files: [] } : { ...change, digest: digestOf(change) });
  if (change === undefined)
    return say(view.run.changes === "propose" ? NOTHING : "This run edits the folder directly.");
  const isOpen = openReview(view) !== undefined || isFinal(view.run.status);
  const names = textsOf(flags["file"]);
  const paths = names?.map((name) => newPath(name, change.files));
  const whole = paths && (await local.runs.changes.proposed(runId, paths));
  const versions = versionsOf(change.files);
  for (const path of paths ?? []) {
    const found = whole?.files.find((file) => file.path === path);
    if (found === undefined || found.version !== versions[path])
      return complain(
        `The change has no file ${displayName(path)}. ${local.runsCommand("review", runId)} shows it.`,
      );
    const text = displayDiff(found.places.map(({ diff }) => diff).join("\n"));
    say("", displayName(path), ...textBody(text, outputStyle()));
  }
  if (paths === undefined) say(...changeLines(change, outputStyle()));
  await noteShown(local, runId, change, paths);
  return isOpen ? say("", ...nextCommands(local, view, change, paths)) : 0;
}

function nextCommands(
  { runsCommand }: LocalRuns,
  { run }: RunView,
  change: ProposedChange,
  read?: readonly string[],
): string[] {
  const { files } = change;
  const unread = files.find(({ path, unshown }) => unshown === "text" && !read?.includes(path))?.path;
  const apply = (...words: string[]) => runsCommand("apply", run.id, ...words, "--digest", digestOf(change));
  return [
    ...(read === undefined ? [`Apply all of it: ${apply()}`] : []),
    `Apply some of it: ${apply("--file", read?.[0] ?? files[0]?.path ?? "FILE")}`,
    ...(unread === undefined
      ? []
      : [`Read a file to its end: ${runsCommand("review", run.id, "--file", unread)}`]),
    ...(files.some(hasConflict)
      ? ["Resolve a conflict: --over FILE uses the agent's version, --fit FILE asks the agent to merge."]
      : []),
  ];
}

const openReview = (view: RunView): OpenQuestion | undefined =>
  waitingIn(view)
    .filter(isQuestion)
    .find(({ kind }) => kind === "review");

/**
 * Applies all parts without conflicts, or those named by flags, of a change that was shown here. A run that waits for
 * it continues. `word`: the run as named on the command line.
 */
export async function applyRun(local: LocalRuns, runId: string, flags: FlagValues, word = runId) {
  const { runs } = local;
  const view = await runs.read.view(runId);
  if (view === undefined) return unknownRun(local, runId);
  const change = await runs.changes.proposed(runId);
  if (change === undefined) return complain(NOTHING);
  const shown = (await shownReviews(local)).find(({ run }) => run === runId);
  const read = change.files.flatMap(({ path, version }) => (shown?.read[path] === version ? [path] : []));
  const choice = { ...parseChoice(change, flags, read), shown: versionsOf(change.files), read };
  const unread = change.files.find(
    ({ path, unshown }) => unshown === "text" && Object.hasOwn(choice.apply, path) && !read.includes(path),
  );
  if (unread !== undefined) {
    const command = local.runsCommand("review", runId, "--file", unread.path);
    return complain(`${displayName(unread.path)} is longer than the review shows. Read it first: ${command}`);
  }
  const decided = Object.keys({ ...choice.apply, ...choice.refused });
  if (decided.length === 0 && !choice.fit?.length && !choice.message)
    return complain(
      "Nothing was applied: the remaining files were rejected, are in conflict, are ignored by Git or were not fully shown. Name files with --file, --over or --fit.",
    );
  // A script that names a run by its id decides without a look; which run is the last may change under it.
  const isBlind = shown === undefined && flags["digest"] === undefined && word !== "last" && !hasTerminal();
  const problem = isBlind ? undefined : unseen(local, view, change, textOf(flags["digest"]), shown);
  if (problem !== undefined && !(await confirms(local, runId, change, choice, problem))) return 1;
  const asked = openReview(view);
  if (asked !== undefined) {
    const given = { requestId: asked.id, answer: { type: "review" as const, choice } };
    const outcome = await runs.requests.answer(runId, given, "terminal");
    if (!outcome.ok) return complain(displayText(outcome.message));
    return say(`Run ${runId} applies it and continues. ${howToResume(local, view.run)}`);
  }
  const outcome = await runs.changes.review(runId, choice, "terminal");
  if (!outcome.ok) return complain(displayText(outcome.message));
  return say(recordText(outcome.record));
}

/** Returns why a change differs from the one the person saw, or undefined if it does not. */
function unseen(
  { runsCommand }: LocalRuns,
  { run }: RunView,
  change: ProposedChange,
  digest: string | undefined,
  shown: Shown | undefined,
): string | undefined {
  const known = digest === undefined || digest === shown?.digest ? shown : undefined;
  const others = change.files.filter(({ path, version }) => known?.versions[path] !== version);
  if (digest === digestOf(change) || (known !== undefined && others.length === 0)) return undefined;
  const names = known === undefined ? "the change" : others.map(({ path }) => displayName(path)).join(", ");
  const isNew = known === undefined && digest === undefined;
  const why = isNew ? "the change was not shown here" : `${oneLine(names, 300)} changed since it was shown`;
  return `Nothing was applied: ${why}. To see it: ${runsCommand("review", run.id)}`;
}

/** Shows the change and asks for confirmation in a terminal; elsewhere prints the problem. */
async function confirms(
  local: LocalRuns,
  runId: string,
  change: ProposedChange,
  { apply }: ReviewChoice,
  problem: string,
): Promise<boolean> {
  if (!hasTerminal()) return complain(problem) < 1;
  const style = outputStyle();
  const asker = terminalAsker(style.colors, new Keyboard(), () => local.interrupt.abort());
  say(...changeLines(change, style), "");
  await noteShown(local, runId, change);
  const question = `${applyFilesText(Object.keys(apply).length, change.files.length)}? y or n › `;
  try {
    return (await asker.key(question, true)).toLowerCase() === "y";
  } catch (error) {
    if (local.interrupt.signal.aborted) return false;
    throw error;
  }
}

function parseChoice(change: ProposedChange, flags: FlagValues, read: readonly string[]): ReviewChoice {
  const { files } = change;
  const named = (textsOf(flags["file"]) ?? []).map((word) => {
    // A path, or a path with the numbers of its places behind `#`.
    const [, path = word, numbers] = /^(.+)#([\d,]+)$/s.exec(word) ?? [];
    if (numbers === undefined || files.some((file) => [file.path, file.from].includes(word)))
      return [newPath(word, files), "all"];
    return [newPath(path, files), numbers.split(",").map((number) => Number(number) - 1)];
  });
  const [over = [], fit = [], refused = []] = ["over", "fit", "refuse"].map((name) =>
    (textsOf(flags[name]) ?? []).map((path) => newPath(path, files)),
  );
  const said = textOf(flags["message"]) ?? "";
  const isAll = [named, over, fit, refused].every((list) => list.length === 0);
  const whole = isAll
    ? files.filter((file) => isPlain(file, read.includes(file.path))).map(({ path }) => path)
    : over;
  const branch = textOf(flags["branch"]);
  return {
    apply: Object.fromEntries([...whole.map((path) => [path, "all"] as const), ...named]),
    over,
    fit,
    refused: Object.fromEntries(refused.map((path) => [path, said])),
    ...(said === "" || refused.length > 0 ? {} : { message: said }),
    ...defined({ branch }),
    ...(flags["worktree"] === true ? { worktree: true } : {}),
  };
}

/** The path of a proposed file that is named by its new or its old path. */
const newPath = (path: string, files: ProposedChange["files"]): string =>
  files.find(({ from }) => from === path)?.path ?? path;

/** Deletes the copy of a run that has ended, with all that was not applied. */
export async function discardRun({ runs }: LocalRuns, runId: string): Promise<ExitCode> {
  const outcome = await runs.changes.discard(runId);
  if (!outcome.ok) return complain(outcome.message);
  return say(`Deleted the copy of run ${runId}, and what was not applied.`);
}

const Versions = z.record(z.string(), z.string());
const Shown = z.object({
  run: z.string(),
  digest: z.string(),
  /** Versions of its files, by path. */
  versions: Versions,
  /** Those of files that were shown to their end by themselves. */
  read: Versions,
});
type Shown = z.output<typeof Shown>;

const FILE = "shown-reviews.json";

/** The newest first. A file that cannot be read is none. */
async function shownReviews({ config }: LocalRuns): Promise<Shown[]> {
  const text = await readFile(join(config.dataDir, FILE), "utf8").catch(() => "");
  return z.array(Shown).safeParse(parsedJson(text)).data ?? [];
}

/** Notes that a change was shown: all of it, or some of its files to their end. */
async function noteShown(local: LocalRuns, run: string, change: ProposedChange, paths?: readonly string[]) {
  const all = await shownReviews(local);
  const before = all.find((one) => one.run === run);
  const versions = versionsOf(change.files);
  const read = Object.fromEntries((paths ?? []).map((path) => [path, versions[path] ?? ""]));
  const shown = {
    run,
    ...(paths === undefined
      ? { digest: digestOf(change), versions }
      : { digest: "", versions: {}, ...before }),
    read: { ...before?.read, ...read },
  };
  const file = join(local.config.dataDir, FILE);
  const next = JSON.stringify([shown, ...all.filter((one) => one !== before)].slice(0, 50));
  await writeFile(`${file}.${process.pid}`, next, { mode: 0o600 });
  await rename(`${file}.${process.pid}`, file);
}
