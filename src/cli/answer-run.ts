/** Decides on open approvals and answers open questions of a run, by flags or by asking. */
import type { FlagValues } from "../config/load.ts";
import { defined } from "../core/defined.ts";
import { displayText, oneLine } from "../core/text.ts";
import { isRecord, parsedJson } from "../core/unknown.ts";
import type { Approval, OpenQuestion, PersonDecision, Run, Waiting } from "../runs/run.ts";
import { alreadyAnswered, alreadyDecided, isQuestion, requestsOf, waitingIn } from "../runs/run.ts";
import { fieldsOf, questionText } from "../tools/check-answer.ts";
import type { Answer, Question } from "../tools/tool.ts";
import { type ExitCode, textOf, textsOf } from "./command.ts";
import { type LocalRuns, unknownRun } from "./local-runs.ts";
import { complain, say } from "./output.ts";
import { freeAnswer } from "../server/views/question-form.ts";
import { askOpenRequests } from "./terminal/ask.ts";
import { terminalAsker } from "./terminal/asker.ts";
import { Keyboard } from "./terminal/keyboard.ts";
import { colorsFor } from "./terminal/text.ts";

const DECISIONS = ["approve", "approve-same", "reject", "edit"];
const ANSWERS = ["value", "field", "opened", "decline"];
const [HOW_TO_DECIDE, HOW_TO_ANSWER] = [
  "--approve, --approve-same, --reject or --edit JSON",
  "--value TEXT, --field NAME=VALUE, --opened or --decline",
];

/** A server with the run's workspace then resumes the run. */
export async function answerRun(
  local: LocalRuns,
  runId: string,
  requestId: string | undefined,
  flags: FlagValues,
): Promise<ExitCode> {
  const view = await local.runs.read.view(runId);
  if (view === undefined) return unknownRun(local, runId);
  const chosen =
    requestId === undefined ? waitingIn(view) : requestsOf(view).filter(({ id }) => id === requestId);
  if (chosen.length === 0)
    return complain(
      requestId === undefined
        ? `Run ${runId} has nothing waiting for approval or an answer.`
        : `Run ${runId} has no approval or question ${requestId}. ${local.runsCommand("show", runId)} lists the open ones.`,
    );
  const given = [...DECISIONS, ...ANSWERS].filter((name) => flags[name] !== undefined);
  const [only = ""] = given;
  if (given.length > 1) {
    const group = given.some((name) => ANSWERS.includes(name)) ? ANSWERS : DECISIONS;
    const names = group.map((name) => `--${name}`);
    return complain(`Choose one of ${names.slice(0, -1).join(", ")} and ${names.at(-1)}.`, 2);
  }
  if (DECISIONS.includes(only)) {
    const approvals = chosen.filter((asked): asked is Approval => !isQuestion(asked));
    return approvals.length === 0
      ? complain(wrongKind(chosen))
      : decideAll(local, view.run, approvals, flags);
  }
  if (ANSWERS.includes(only)) {
    const questions = chosen.filter(isQuestion);
    return questions.length === 0
      ? complain(wrongKind(chosen))
      : answerAll(local, view.run, questions, flags);
  }
  return askHere(local, runId, requestId, chosen);
}

async function askHere(
  { runs, interrupt }: LocalRuns,
  runId: string,
  requestId: string | undefined,
  chosen: readonly Waiting[],
): Promise<ExitCode> {
  const [only] = chosen;
  if (only !== undefined && only.status !== "pending")
    return complain(`${only.id}: ${isQuestion(only) ? alreadyAnswered(only) : alreadyDecided(only)}`);
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    const ways = [!chosen.every(isQuestion) && HOW_TO_DECIDE, chosen.some(isQuestion) && HOW_TO_ANSWER];
    const words = ways.flatMap((way) => (way ? [`use ${way}`] : [])).join("; for questions ");
    return complain(`There is no terminal to ask in: ${words}.`, 2);
  }
  const colors = colorsFor(process.stdout, process.env);
  const asker = terminalAsker(colors, new Keyboard(), () => interrupt.abort());
  try {
    await askOpenRequests(runId, { runs, asker, only: requestId });
    return 0;
  } catch (error) {
    if (interrupt.signal.aborted) return 1;
    throw error;
  }
}

/** Says that the flags are for requests of the other kind. */
const wrongKind = (chosen: readonly Waiting[]): string =>
  chosen.some(isQuestion)
    ? `Only questions are open. To answer, use ${HOW_TO_ANSWER}.`
    : `Only approvals are open. To decide, use ${HOW_TO_DECIDE}.`;

export const howToResume = (local: LocalRuns, run: Run): string =>
  `If no server is running:\n  ${local.runCommand(run, "--resume", run.id)}`;

const TOO_LATE = "too late; the agent reads it as a message";

async function decideAll(
  local: LocalRuns,
  run: Run,
  approvals: readonly Approval[],
  flags: FlagValues,
): Promise<ExitCode> {
  if (flags["edit"] !== undefined && approvals.length > 1)
    return complain(`--edit is for one approval: ${approvals.map(({ id }) => id).join(", ")}.`, 2);
  for (const approval of approvals) {
    const decision = decisionFrom(approval, flags);
    if (decision === undefined) return complain("--edit needs the arguments as a JSON object.", 2);
    const outcome = await local.runs.requests.decide(approval.runId, approval.id, decision, "terminal");
    if (!outcome.ok) return complain(`${approval.id}: ${outcome.message}`);
    say(
      outcome.repeated
        ? `${approval.id}: ${alreadyDecided(outcome.approval)}`
        : `${approval.id} ${outcome.approval.status}: ${displayText(approval.preview.summary)}`,
    );
  }
  return say(howToResume(local, run));
}

/** Declines all of them, or answers the only one. */
async function answerAll(
  local: LocalRuns,
  run: Run,
  questions: readonly OpenQuestion[],
  flags: FlagValues,
): Promise<ExitCode> {
  if (flags["decline"] !== true && questions.length > 1) {
    const ids = questions.map(({ id }) => id).join(", ");
    return complain(`There are several questions. Name the one that you answer: ${ids}.`, 2);
  }
  for (const { id, question, runId } of questions) {
    if (question.kind === "review" && flags["decline"] !== true)
      return complain(`To review a proposed change: ${local.runsCommand("review", runId)}`, 2);
    const read = answerFrom(question, flags);
    if ("problem" in read) return complain(`${id}: ${read.problem}`, 2);
    const outcome = await local.runs.requests.answer(runId, id, read.answer, "terminal");
    if (!outcome.ok) return complain(`${id}: ${displayText(outcome.message)}`);
    const words = oneLine(displayText(questionText(question)), 200);
    if (outcome.how === "repeated") say(`${id}: ${alreadyAnswered(outcome.question)}`);
    else say(`${id} ${outcome.how === "told" ? TOO_LATE : outcome.question.status}: ${words}`);
  }
  return say(howToResume(local, run));
}

function answerFrom(question: Question, flags: FlagValues): { answer: Answer } | { problem: string } {
  const { value, field, message } = flags;
  if (flags["decline"] === true)
    return { answer: { type: "decline", ...defined({ message: textOf(message) }) } };
  if (flags["opened"] === true) return { answer: { type: "opened" } };
  const fields = fieldsOf(question);
  const given = textsOf(field);
  if (given !== undefined) return { answer: { type: "fields", values: fieldsIn(given) } };
  const text = textOf(value) ?? "";
  const [first, ...others] = fields ?? [];
  if (first !== undefined && others.length === 0)
    return { answer: { type: "fields", values: { [first.name]: text } } };
  if (fields === undefined) return freeAnswer(question, text);
  return { problem: `Give each field: ${fields.map(({ name }) => `--field ${name}=VALUE`).join(" ")}.` };
}

/** Values by name. A name that is given several times has several. */
function fieldsIn(given: readonly string[]): Record<string, string | string[]> {
  const values = new Map<string, string[]>();
  for (const one of given) {
    const [, name = "", value = ""] = /^([^=]*)=?(.*)$/s.exec(one) ?? [];
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  return Object.fromEntries(
    [...values].map(([name, all]) => [name, all.length === 1 ? (all[0] ?? "") : all]),
  );
}

function decisionFrom(
  { tool }: Approval,
  { approve, "approve-same": same, reject, edit, message }: FlagValues,
): PersonDecision | undefined {
  if (approve === true) return { type: "approve" };
  if (same === true) return { type: "approve_same" };
  if (reject === true) return { type: "reject", ...defined({ message: textOf(message) }) };
  const args = parsedJson(textOf(edit) ?? "");
  return !isRecord(args) ? undefined : { type: "edit", editedAction: { name: tool, args } };
}
