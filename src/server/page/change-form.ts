/** The form of a proposed change: reads what a person chose, and has it carried out. */
import { defined } from "../../core/defined.ts";
import { type ProposedFile, type ReviewRecord, versionsOf } from "../../runs/proposals.ts";
import { alreadyAnswered } from "../../runs/run.ts";
import type { ReviewChoice } from "../../tools/tool.ts";
import { type ChosenOfFile, boxesOf } from "../views/room/proposed-file.ts";
import { filesText } from "../views/room/proposed-words.ts";
import { PROPOSED } from "../views/room/review.ts";
import { type StampedChange, chosenIn, plainFiles, stamped } from "./proposed.ts";
import { textOf } from "./responses.ts";
import type { ScreenContext } from "./screen.ts";

/** The part of a choice that is about single files. */
type OfFiles = Required<Pick<ReviewChoice, "apply" | "over" | "fit" | "refused">>;
type ReadChange = { ok: true; choice: ReviewChoice } | { ok: false; problem: string };

const MAX_MESSAGE = 4000;
const STALE =
  "changed since this page showed it, so nothing was applied. Look at it again: what else you chose is still chosen.";

/** Reads a form against the change as it is now. */
function readChange(read: StampedChange, form: URLSearchParams): ReadChange {
  const stale = staleIn(read, form);
  if (stale > 0) return { ok: false, problem: `${filesText(stale)} that you chose ${STALE}` };
  const chosen = chosenIn(read, form);
  const choice: OfFiles = { apply: {}, over: [], fit: [], refused: {} };
  for (const { file, stamp } of read.files) {
    const own = chosen.files.get(stamp);
    if (own !== undefined) choose(file, own, choice);
  }
  if (chosen.hasListed) for (const { path } of plainFiles(read)) choice.apply[path] = "all";
  const act = form.get("act");
  if (act !== "apply" && act !== "branch" && act !== "refuse")
    return { ok: false, problem: "Nothing was sent. Press one of the buttons." };
  if (act === "refuse") refuseRest(read, textOf(form, "restMessage"), choice);
  const branch = textOf(form, "branch");
  if (act === "branch" && branch === "") return { ok: false, problem: "Write a name for the branch." };
  const message = textOf(form, "message") || undefined;
  const into = act === "branch" ? { branch, ...(form.has("worktree") ? { worktree: true } : {}) } : {};
  return { ok: true, choice: { ...choice, ...defined({ message }), ...into } };
}

/** Files that something was chosen for, and that are not as they were shown any more. */
function staleIn({ files, listed }: StampedChange, form: URLSearchParams): number {
  const known = new Set(files.map(({ stamp }) => stamp));
  const named = [...form].flatMap(([name, value]) => {
    const [, kind, stamp = ""] = /^([pcx])\.(.+)$/.exec(name) ?? [];
    return kind === undefined || (kind === "c" && value === "keep") ? [] : [stamp];
  });
  const gone = new Set(named.filter((stamp) => !known.has(stamp)));
  return gone.size + Number(![null, listed].includes(form.get("listed")));
}

function choose(
  file: ProposedFile,
  { places, conflict, refused }: ChosenOfFile,
  { apply, over, fit, refused: reasons }: OfFiles,
): void {
  const { path } = file;
  if (refused !== undefined) reasons[path] = refused.slice(0, MAX_MESSAGE);
  else if (conflict === "fit") fit.push(path);
  else if (conflict === "take") {
    const boxes = new Set(boxesOf(file));
    const own = file.places.flatMap((_place, index) =>
      !boxes.has(index) || places === "all" || places.includes(index) ? [index] : [],
    );
    apply[path] = own.length === file.places.length ? "all" : own;
    over.push(path);
  } else if (places === "all") apply[path] = "all";
  else if (places.length > 0) apply[path] = places.length === file.places.length ? "all" : [...places];
}

function refuseRest({ files }: StampedChange, why: string, { apply, fit, refused }: OfFiles): void {
  for (const {
    file: { path },
  } of files) {
    if (!Object.hasOwn(apply, path) && !Object.hasOwn(refused, path) && !fit.includes(path))
      refused[path] = why.slice(0, MAX_MESSAGE);
  }
}

/** The outcome of a form. `refused`: nothing was stored, and the person sees the change again. */
export type SentChange =
  | { kind: "stored" }
  | { kind: "done"; text: string }
  | { kind: "refused"; requestId: string; problem: string };

/** Answers the question about a change, or applies what was left of it. `undefined`: there is no such run. */
export async function sendChange(
  { runs, session: { principal } }: ScreenContext,
  runId: string,
  form: URLSearchParams,
): Promise<SentChange | undefined> {
  const view = await runs.view(principal, runId);
  if (view === undefined) return undefined;
  const requestId = form.get("question") || PROPOSED;
  const refused = (problem: string): SentChange => ({ kind: "refused", requestId, problem });
  const question = view.questions.find(({ id }) => id === requestId);
  if (requestId !== PROPOSED && question?.question.kind !== "review")
    return refused("There is no such review in this run.");
  if (question !== undefined && question.status !== "pending") return refused(alreadyAnswered(question));
  const change = await runs.proposedChange(principal, runId);
  if (change === undefined) return refused("Nothing of this run is left to apply.");
  const read = readChange(stamped(change), form);
  if (!read.ok) return refused(read.problem);
  const shown = versionsOf(change.files);
  const choice = { ...read.choice, shown };
  if (question !== undefined) {
    const outcome = await runs.answer(principal, runId, question.id, { type: "review", choice }, "page");
    if (!outcome.ok) return refused(outcome.message);
    return outcome.how === "stored" ? { kind: "stored" } : refused(alreadyAnswered(outcome.question));
  }
  if (isEmpty(choice)) return refused("Choose the files to apply.");
  const outcome = await runs.reviewChange(principal, runId, choice, "page");
  return outcome.ok ? { kind: "done", text: doneText(outcome.record) } : refused(outcome.message);
}

const isEmpty = ({ apply, fit = [], refused = {} }: ReviewChoice): boolean =>
  Object.keys(apply).length + fit.length + Object.keys(refused).length === 0;

/** Says in words what was done. */
function doneText({ applied, partly, branch, worktree, refused, unapplied }: ReviewRecord): string {
  const count = applied.length + partly.length;
  const into =
    branch === undefined ? "" : ` as branch ${branch}${worktree === undefined ? "" : ` in ${worktree}`}`;
  const refusals = Object.keys(refused).length;
  return [
    count === 0 ? "Nothing was applied." : `Applied ${filesText(count)}${into}.`,
    ...(refusals === 0 ? [] : [`Refused ${filesText(refusals)}.`]),
    ...(unapplied === 0 ? ["Nothing is left."] : [`${filesText(unapplied)} left.`]),
  ].join(" ");
}
