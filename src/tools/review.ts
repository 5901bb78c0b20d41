/** The question of a run that works on a copy: what of its changes is applied. */
import { displayName, oneLine } from "../core/text.ts";
import { applyFilesText, counted } from "./format.ts";
import type { Answer, CheckedAnswer, Field, Question, ReviewChoice, ReviewedFile, Value } from "./request.ts";
import texts from "./texts.json" with { type: "json" };

type ReviewQuestion = Extract<Question, { kind: "review" }>;

/** Files that the text of the question names. */
const MOST_NAMED = 40;
const MAX = { message: 4000, branch: 200, version: 60 };

/** Files that "all" means: those that nothing is in the way of. */
const plainFiles = ({ files }: ReviewQuestion): ReviewedFile[] =>
  files.filter(({ conflict, apart, unshown }) => !conflict && !apart && !unshown);

const countsText = ({ added, removed }: Pick<ReviewedFile, "added" | "removed">): string =>
  [added > 0 ? `+${added}` : "", removed > 0 ? `−${removed}` : ""].filter((part) => part !== "").join(" ");

/** The change of a file, such as `deleted`. */
export const changeText = ({ change, from }: Pick<ReviewedFile, "change" | "from">): string =>
  from === undefined ? change : `renamed from ${displayName(from)}`;

const fileText = (file: ReviewedFile): string => {
  const facts = [
    ...(file.change === "edited" ? [] : [changeText(file)]),
    countsText(file),
    ...(file.conflict ? ["conflict: look at it on the page or in the terminal"] : []),
    ...(file.unshown ? ["not shown whole: read it on the page or in the terminal"] : []),
    ...(file.apart ? ["select it separately"] : []),
  ].filter((part) => part !== "");
  return `${file.path}${facts.length === 0 ? "" : ` (${facts.join(", ")})`}`;
};

/** The text of the question: every file, and the lines if they are few. */
export function reviewText(question: ReviewQuestion): string {
  const { files, more, diff, note, commits = [] } = question;
  const sum = (of: "added" | "removed") => files.reduce((total, file) => total + file[of], 0);
  const counts = countsText({ added: sum("added"), removed: sum("removed") });
  const missing = files.length + more - Math.min(files.length, MOST_NAMED);
  return [
    ...(note === undefined ? [] : [`Nothing was applied: ${note}.`, ""]),
    `The run proposes changes of ${counted(files.length + more, "file")}${counts === "" ? "" : ` (${counts})`}. The folder is unchanged.`,
    "",
    ...files.slice(0, MOST_NAMED).map((file) => `- ${fileText(file)}`),
    ...(missing > 0 ? [`- and ${counted(missing, "file")} more`] : []),
    ...(commits.length > 0 ? ["", "Commits in the copy are not applied, only the files:"] : []),
    ...commits.map((commit) => `- ${displayName(commit)}`),
    ...(diff === undefined ? [] : ["", diff]),
  ].join("\n");
}

export function reviewFields(question: ReviewQuestion): Field[] {
  const { hasBranches } = question;
  const plain = plainFiles(question);
  // Files that can be applied whole without another word. Of very many, all or none can be applied in a form.
  const listed = question.files.filter(({ conflict, unshown }) => !conflict && !unshown);
  const isListed = listed.length > 1 && listed.length <= 100;
  const every: [option: string, label: string, isOffered: boolean][] = [
    ["all", applyFilesText(plain.length, question.files.length), plain.length > 0],
    ["chosen", "Apply the selected files", isListed],
    ["branch", "Create a branch with it; the folder is not changed", hasBranches && plain.length > 0],
    ["none", "Apply nothing now (you can apply it later)", true],
  ];
  const decisions = every.filter(([, , isOffered]) => isOffered);
  const files: Field = {
    name: "files",
    title: "Selected files",
    type: "choice",
    many: true,
    options: listed.map(({ path }) => path),
    labels: listed.map(fileText),
  };
  const branch: Field = { name: "branch", title: "Name of the branch", type: "text", maxLength: MAX.branch };
  return [
    {
      name: "decision",
      title: "What should happen to the change?",
      type: "choice",
      options: decisions.map(([option]) => option),
      labels: decisions.map(([, label]) => label),
      required: true,
    },
    ...(isListed ? [files] : []),
    ...(hasBranches ? [branch] : []),
    {
      name: "message",
      title: "Message to the agent",
      description: "The agent continues with it. If empty, the run ends.",
      type: "text",
      maxLength: MAX.message,
    },
  ];
}

export function readReview(
  question: ReviewQuestion,
  values: Readonly<Record<string, Value>>,
): CheckedAnswer<Answer> {
  const { decision, files, branch, message } = values;
  const isBranch = decision === "branch";
  const name = typeof branch === "string" ? branch.trim() : "";
  if (isBranch && name === "") return { ok: false, message: "Enter a name for the branch." };
  const isAll = isBranch || decision === "all";
  const chosen = Array.isArray(files) && decision !== "none" ? files : [];
  if (chosen.length === 0 && !isAll && decision !== "none")
    return { ok: false, message: "Select the files to apply, or apply nothing." };
  const paths = isAll ? plainFiles(question).map(({ path }) => path) : chosen;
  return checkReview(question, {
    apply: Object.fromEntries(paths.map((path) => [path, "all"])),
    ...(isBranch ? { branch: name } : {}),
    ...(typeof message === "string" && message.trim() !== "" ? { message: message.trim() } : {}),
  });
}

export function checkReview(question: ReviewQuestion, choice: ReviewChoice): CheckedAnswer<Answer> {
  const { apply, over = [], fit = [], refused = {}, read = [] } = choice;
  const { shown = {}, message, branch, worktree } = choice;
  const known = new Map(question.files.map((file) => [file.path, file]));
  const wrong = (message: string): CheckedAnswer<Answer> => ({ ok: false, message });
  const named = [...Object.keys(apply), ...over, ...fit, ...Object.keys(refused)];
  const unknown = named.find((path) => !known.has(path));
  if (unknown !== undefined)
    return wrong(`The review has no file '${oneLine(unknown, 200)}'. Review it again; it may have changed.`);
  for (const [path, places] of Object.entries(apply)) {
    const count = known.get(path)?.places ?? 0;
    if (places === "all") continue;
    const isPlace = (place: number): boolean => Number.isInteger(place) && place >= 0 && place < count;
    if (places.length === 0 || !places.every(isPlace))
      return wrong(`'${oneLine(path, 200)}' has changes 1 to ${count}.`);
  }
  const twice = fit.find((path) => Object.hasOwn(apply, path));
  if (twice !== undefined)
    return wrong(`'${oneLine(twice, 200)}' cannot be applied and left to the agent at once.`);
  if ([message, ...Object.values(refused)].some((text) => (text?.length ?? 0) > MAX.message))
    return wrong(`A message to the agent has at most ${MAX.message} characters.`);
  if (branch !== undefined && !question.hasBranches) return wrong(texts.noBranch);
  if (branch !== undefined && Object.keys(apply).length === 0)
    return wrong("Select the files for the branch.");
  const versions = Object.entries(shown)
    .filter(([path]) => known.has(path))
    .map(([path, version]) => [path, version.slice(0, MAX.version)]);
  const checked: ReviewChoice = {
    apply,
    ...(over.length === 0 ? {} : { over }),
    ...(fit.length === 0 ? {} : { fit }),
    ...(Object.keys(refused).length === 0 ? {} : { refused }),
    ...(Object.keys(shown).length === 0 ? {} : { shown: Object.fromEntries(versions) }),
    ...(read.length === 0 ? {} : { read: read.filter((path) => known.has(path)) }),
    ...(message === undefined || message === "" ? {} : { message }),
    ...(branch === undefined ? {} : { branch, ...(worktree === true ? { worktree } : {}) }),
  };
  return { ok: true, answer: { type: "review", choice: checked } };
}

/** The choice in a few words, for the journal. */
export function choiceText({ apply, fit = [], refused = {}, message, branch }: ReviewChoice): string {
  const count = Object.keys(apply).length;
  const into = branch === undefined ? "" : ` as branch ${branch}`;
  const parts = [
    count === 0 ? "apply nothing now" : `apply ${counted(count, "file")}${into}`,
    ...(fit.length === 0 ? [] : [`fit ${fit.join(", ")} to the folder`]),
    ...Object.entries(refused).map(([path, why]) => `refuse ${path}${why === "" ? "" : `: ${why}`}`),
    ...(message === undefined ? [] : [message]),
  ];
  return parts.join("; ");
}
