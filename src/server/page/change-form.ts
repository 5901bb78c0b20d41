/** The form of a proposed change: reads a person's choices, and carries them out. */
import { recordText } from "../../runs/review-events.ts";
import { defined } from "../../core/unknown.ts";
import { displayName, oneLine } from "../../core/text.ts";
import { type ProposedFile, versionsOf } from "../../runs/proposals.ts";
import { alreadyAnswered } from "../../runs/run.ts";
import type { ReviewChoice } from "../../tools/request.ts";
import type { PageSession } from "../contracts/viewer.ts";
import { type ChosenOfFile, boxesOf } from "../views/room/proposed-file.ts";
import { counted } from "../../tools/format.ts";
import { PROPOSED } from "../views/room/review.ts";
import { type StampedChange, chosenIn, hasRead, seenIn, stamped } from "./proposed.ts";
import { textOf } from "./responses.ts";
import type { ScreenContext } from "./screen-context.ts";

/** The part of a choice that is about single files. */
type OfFiles = Required<Pick<ReviewChoice, "apply" | "over" | "fit" | "refused" | "read">>;
const MAX = { message: 4000, named: 5 };
/** Reads a form against the change as it is now. */
function readChange(
  read: StampedChange,
  form: URLSearchParams,
  session: PageSession,
): { ok: true; choice: ReviewChoice } | { ok: false; problem: string } {
  const stale = stalePaths(read, form);
  if (stale.length > 0) {
    const named = stale.slice(0, MAX.named).map((path) => displayName(oneLine(path, 100)));
    const what = `${counted(stale.length, "file")} that you selected changed since this page showed it`;
    const problem = `${what}: ${named.join(", ")}. Nothing was applied. Review it again; your other selections are kept.`;
    return { ok: false, problem };
  }
  const chosen = chosenIn(read, form);
  const choice: OfFiles = { apply: {}, over: [], fit: [], refused: {}, read: [] };
  for (const { file, stamp } of read.files) {
    const own = chosen.get(stamp);
    if (own !== undefined) choose(file, own, choice);
    if (file.unshown !== "text" || !Object.hasOwn(choice.apply, file.path)) continue;
    if (!hasRead(session, stamp, form)) {
      const problem = `${displayName(oneLine(file.path, 200))} is longer than this page shows, so nothing was applied. Read it to its end, and choose it there.`;
      return { ok: false, problem };
    }
    choice.read.push(file.path);
  }
  const act = form.get("act");
  if (act !== "apply" && act !== "branch" && act !== "refuse")
    return { ok: false, problem: "Nothing was sent. Press one of the buttons." };
  if (act === "refuse") refuseRest(read, form, choice);
  const branch = textOf(form, "branch");
  if (act === "branch" && branch === "") return { ok: false, problem: "Enter a name for the branch." };
  const message = textOf(form, "message") || undefined;
  const into = act === "branch" ? { branch, ...(form.has("worktree") ? { worktree: true } : {}) } : {};
  return { ok: true, choice: { ...choice, ...defined({ message }), ...into } };
}

/** Files that something was chosen for, and that are not as they were shown any more. */
function stalePaths({ files }: StampedChange, form: URLSearchParams): string[] {
  const known = new Set(files.map(({ stamp }) => stamp));
  const named = [...form].flatMap(([name, value]) => {
    const [, kind, stamp = ""] = /^([pcx])\.(.+)$/.exec(name) ?? [];
    return kind === undefined || (kind === "c" && value === "keep") ? [] : [stamp];
  });
  const seen = seenIn(form);
  const gone = new Set(named.filter((stamp) => !known.has(stamp)));
  return [...gone].map((stamp) => seen.get(stamp) ?? "unknown");
}

function choose(
  file: ProposedFile,
  { places, conflict, refused }: ChosenOfFile,
  { apply, over, fit, refused: reasons }: OfFiles,
): void {
  const { path } = file;
  if (refused !== undefined) reasons[path] = refused.slice(0, MAX.message);
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

/** Refuses the files that the form showed and nothing was chosen for. */
function refuseRest({ files }: StampedChange, form: URLSearchParams, { apply, fit, refused }: OfFiles): void {
  const [why, seen] = [textOf(form, "restMessage"), seenIn(form)];
  for (const { file, stamp } of files) {
    const { path } = file;
    if (!seen.has(stamp)) continue;
    if (!Object.hasOwn(apply, path) && !Object.hasOwn(refused, path) && !fit.includes(path))
      refused[path] = why.slice(0, MAX.message);
  }
}

/** The outcome of a form. `refused`: nothing was stored, and the person sees the change again. */
export type SentChange =
  | { kind: "stored" }
  | { kind: "done"; text: string }
  | { kind: "refused"; requestId: string; problem: string };

/** Answers the question about a change, or applies the rest of it. Returns undefined if the run is unknown. */
export async function sendChange(
  { runs, session }: ScreenContext,
  runId: string,
  form: URLSearchParams,
): Promise<SentChange | undefined> {
  const view = await runs.read.view(runId);
  if (view === undefined) return undefined;
  const requestId = form.get("question") || PROPOSED;
  const refused = (problem: string): SentChange => ({ kind: "refused", requestId, problem });
  const question = view.requests.find(({ id }) => id === requestId);
  if (requestId !== PROPOSED && question?.kind !== "review") return refused("This run has no such review.");
  if (question !== undefined && question.status !== "pending") return refused(alreadyAnswered(question));
  const change = await runs.changes.proposed(runId);
  if (change === undefined) return refused("This run has nothing left to apply.");
  const read = readChange(stamped(change), form, session);
  if (!read.ok) return refused(read.problem);
  const choice = { ...read.choice, shown: versionsOf(change.files) };
  if (question !== undefined) {
    const answer = { type: "review" as const, choice };
    const outcome = await runs.requests.answer(runId, { requestId, answer }, "page");
    if (!outcome.ok) return refused(outcome.message);
    return outcome.how === "stored" ? { kind: "stored" } : refused(alreadyAnswered(outcome.request));
  }
  const { apply, fit = [], refused: rejected = {} } = choice;
  if (Object.keys(apply).length + fit.length + Object.keys(rejected).length === 0)
    return refused("Select the files to apply.");
  const outcome = await runs.changes.review(runId, choice, "page");
  return outcome.ok ? { kind: "done", text: recordText(outcome.record) } : refused(outcome.message);
}
