/** Shows what a run proposes to change, and applies what a person chooses of it. */
import type { FlagValues } from "../config/load.ts";
import { defined } from "../core/defined.ts";
import { displayName, displayText } from "../core/text.ts";
import { type ProposedChange, type ReviewRecord, hasConflict, versionsOf } from "../runs/proposals.ts";
import { LOCAL, type OpenQuestion, type RunView, isFinal, waitingIn, isQuestion } from "../runs/run.ts";
import type { ReviewChoice } from "../tools/tool.ts";
import { counted } from "../tools/format.ts";
import { type ExitCode, textOf, textsOf } from "./command.ts";
import { howToResume } from "./answer-run.ts";
import { type LocalRuns, unknownRun } from "./local-runs.ts";
import { complain, say, sayJson } from "./output.ts";
import { changeLines } from "./terminal/proposed.ts";
import { colorsFor, columnsOf } from "./terminal/text.ts";

const NOTHING = "Nothing of this run is left to apply.";

/** Every file with its places, and what stands in the way of each. */
export async function reviewRun(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const view = await local.runs.view(LOCAL, runId);
  if (view === undefined) return unknownRun(local, runId);
  const change = await local.runs.proposedChange(LOCAL, runId);
  if (flags["json"] === true) return sayJson(change ?? { files: [] });
  if (change === undefined)
    return say(view.run.changes === "propose" ? NOTHING : "This run works in the folder itself.");
  const colors = colorsFor(process.stdout, process.env);
  const style = { colors, width: columnsOf(process.stdout) };
  const ways = reviewOf(view) !== undefined || isFinal(view.run.status) ? waysOf(local, view, change) : [];
  return say(...changeLines(change, style), "", ...ways);
}

function waysOf({ runsCommand }: LocalRuns, { run }: RunView, { files }: ProposedChange): string[] {
  const conflict = files.find(hasConflict)?.path;
  return [
    `Apply all of it: ${runsCommand("apply", run.id)}`,
    `Apply some of it: ${runsCommand("apply", run.id, "--file", files[0]?.path ?? "FILE")}`,
    ...(conflict === undefined
      ? []
      : [`Replace what is in the way, or let the agent fit its change: --over FILE, --fit FILE`]),
  ];
}

const reviewOf = (view: RunView): OpenQuestion | undefined =>
  waitingIn(view)
    .filter(isQuestion)
    .find(({ question }) => question.kind === "review");

/** Applies all that nothing is in the way of, or what the flags name. A run that waits for it continues. */
export async function applyRun(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const { runs } = local;
  const view = await runs.view(LOCAL, runId);
  if (view === undefined) return unknownRun(local, runId);
  const change = await runs.proposedChange(LOCAL, runId);
  if (change === undefined) return complain(NOTHING);
  const shown = versionsOf(change.files);
  const choice = { ...choiceOf(change, flags), shown };
  const asked = reviewOf(view);
  if (asked !== undefined) {
    const outcome = await runs.answer(LOCAL, runId, asked.id, { type: "review", choice }, "terminal");
    if (!outcome.ok) return complain(displayText(outcome.message));
    return say(`Run ${runId} carries it out and continues. ${howToResume(local, view.run)}`);
  }
  const outcome = await runs.reviewChange(LOCAL, runId, choice, "terminal");
  if (!outcome.ok) return complain(displayText(outcome.message));
  return say(recordText(outcome.record));
}

function recordText({ applied, partly, branch, worktree, unapplied }: ReviewRecord): string {
  const count = counted(applied.length + partly.length, "file");
  const into = branch === undefined ? "" : ` as branch ${displayName(branch)}`;
  const at = worktree === undefined ? "" : ` in ${displayName(worktree)}`;
  return `Applied ${count}${into}${at}. ${counted(unapplied, "file is", "files are")} left.`;
}

function choiceOf(change: ProposedChange, flags: FlagValues): ReviewChoice {
  const { files } = change;
  const named = (textsOf(flags["file"]) ?? []).map((word) => placesIn(word, files));
  const [over = [], fit = [], refused = []] = ["over", "fit", "refuse"].map((name) =>
    (textsOf(flags[name]) ?? []).map((path) => newPath(path, files)),
  );
  const plainFiles = files.filter(
    (file) => !hasConflict(file) && !file.ignored && !file.decided && !file.stays,
  );
  const isAll = [named, over, fit, refused].every((list) => list.length === 0);
  const whole = isAll ? plainFiles.map(({ path }) => path) : over;
  const said = textOf(flags["message"]) ?? "";
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

type Files = ProposedChange["files"];

/** A path, or a path with the numbers of its places behind `#`. */
function placesIn(word: string, files: Files): [string, "all" | number[]] {
  const [, path = word, numbers] = /^(.+)#([\d,]+)$/s.exec(word) ?? [];
  if (numbers === undefined || files.some((file) => [file.path, file.from].includes(word)))
    return [newPath(word, files), "all"];
  return [newPath(path, files), numbers.split(",").map((number) => Number(number) - 1)];
}

/** The path of a proposed file that is named by its new or its old path. */
const newPath = (path: string, files: Files): string => files.find(({ from }) => from === path)?.path ?? path;

/** Deletes the copy of a run that has ended, with all that was not applied. */
export async function discardRun({ runs }: LocalRuns, runId: string): Promise<ExitCode> {
  const outcome = await runs.discardChange(LOCAL, runId);
  if (!outcome.ok) return complain(outcome.message);
  return say(`Deleted the copy of run ${runId}, and what was not applied.`);
}
