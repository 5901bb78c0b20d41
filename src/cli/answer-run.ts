/** Answers the open requests of a run, by flags or by asking. */
import type { FlagValues } from "../config/load.ts";
import { displayText, oneLine } from "../core/text.ts";
import { isRecord, parsedJson, defined } from "../core/unknown.ts";
import type { Run, RunRequest } from "../runs/run.ts";
import { alreadyAnswered, isApproval, isQuestion, waitingIn } from "../runs/run.ts";
import { freeAnswer } from "../server/views/request-form.ts";
import { fieldsOf, requestText } from "../tools/check-answer.ts";
import type { CheckedAnswer, PersonAnswer } from "../tools/request.ts";
import { type ExitCode, textOf, textsOf } from "./command.ts";
import { type LocalRuns, unknownRun } from "./local-runs.ts";
import { complain, say } from "./output.ts";
import { askOpenRequests } from "./terminal/ask.ts";
import { terminalAsker } from "./terminal/asker.ts";
import { Keyboard } from "./terminal/keyboard.ts";
import { colorsFor } from "./terminal/text.ts";

const DECISIONS = ["approve", "approve-same", "always", "reject", "edit"];
const ANSWERS = ["value", "field", "opened", "decline"];
const [HOW_TO_DECIDE, HOW_TO_ANSWER] = [
  "--approve, --approve-same, --always RULE, --reject or --edit JSON",
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
    requestId === undefined ? waitingIn(view) : view.requests.filter(({ id }) => id === requestId);
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
  if (given.length === 0) return askHere(local, runId, requestId, chosen);
  const isDecision = DECISIONS.includes(only);
  const meant = chosen.filter((request) => isApproval(request) === isDecision);
  if (meant.length === 0)
    return complain(
      chosen.some(isQuestion)
        ? `Only questions are open. To answer, use ${HOW_TO_ANSWER}.`
        : `Only approvals are open. To decide, use ${HOW_TO_DECIDE}.`,
    );
  const isForAll = isDecision ? only !== "edit" && only !== "always" : only === "decline";
  if (meant.length > 1 && !isForAll) {
    const several = "There are several questions. Name the one that you answer";
    const ids = meant.map(({ id }) => id).join(", ");
    return complain(`${isDecision ? `--${only} is for one approval` : several}: ${ids}.`, 2);
  }
  return answerAll(local, view.run, meant, flags);
}

async function askHere(
  { runs, interrupt }: LocalRuns,
  runId: string,
  requestId: string | undefined,
  chosen: readonly RunRequest[],
): Promise<ExitCode> {
  const [only] = chosen;
  if (only !== undefined && only.status !== "pending")
    return complain(`${only.id}: ${alreadyAnswered(only)}`);
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

export const howToResume = (local: LocalRuns, run: Run): string =>
  `If no server is running:\n  ${local.runCommand(run, "--resume", run.id)}`;

async function answerAll(local: LocalRuns, run: Run, requests: readonly RunRequest[], flags: FlagValues) {
  for (const request of requests) {
    const { id, runId } = request;
    if (request.kind === "review" && flags["decline"] !== true)
      return complain(`To review a proposed change: ${local.runsCommand("review", runId)}`, 2);
    const read = answerFrom(request, flags);
    if (!read.ok) return complain(isApproval(request) ? read.message : `${id}: ${read.message}`, 2);
    const given = { requestId: id, answer: read.answer };
    const outcome = await local.runs.requests.answer(runId, given, "terminal");
    if (!outcome.ok) return complain(`${id}: ${displayText(outcome.message)}`);
    const words = oneLine(displayText(requestText(request)), 200);
    const isLate = outcome.how === "told";
    if (outcome.how === "repeated") say(`${id}: ${alreadyAnswered(outcome.request)}`);
    else
      say(`${id} ${isLate ? "too late; the agent reads it as a message" : outcome.request.status}: ${words}`);
  }
  return say(howToResume(local, run));
}

function answerFrom(request: RunRequest, flags: FlagValues): CheckedAnswer {
  const { value, field, approve, "approve-same": same, always, reject, edit, message } = flags;
  const said = defined({ message: textOf(message) });
  const ok = (answer: PersonAnswer): CheckedAnswer => ({ ok: true, answer });
  if (approve === true) return ok({ type: "approve" });
  if (same === true) return ok({ type: "approve_same" });
  if (always !== undefined) return ok({ type: "approve_always", rules: [textOf(always) ?? ""] });
  if (reject === true) return ok({ type: "reject", ...said });
  if (isApproval(request)) {
    const args = parsedJson(textOf(edit) ?? "");
    return isRecord(args)
      ? ok({ type: "edit", editedAction: { name: request.tool, args } })
      : { ok: false, message: "--edit needs the arguments as a JSON object." };
  }
  if (flags["decline"] === true) return ok({ type: "decline", ...said });
  if (flags["opened"] === true) return ok({ type: "opened" });
  const fields = fieldsOf(request);
  const given = textsOf(field);
  if (given !== undefined) return ok({ type: "fields", values: parseFields(given) });
  const text = textOf(value) ?? "";
  const [first, ...others] = fields ?? [];
  if (first !== undefined && others.length === 0)
    return ok({ type: "fields", values: { [first.name]: text } });
  if (fields === undefined) return freeAnswer(request, text);
  const names = fields.map(({ name }) => `--field ${name}=VALUE`).join(" ");
  return { ok: false, message: `Give each field: ${names}.` };
}

/** Parses values by name. A repeated name has several values. */
function parseFields(given: readonly string[]): Record<string, string | string[]> {
  const values = new Map<string, string[]>();
  for (const one of given) {
    const [, name = "", value = ""] = /^([^=]*)=?(.*)$/s.exec(one) ?? [];
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  return Object.fromEntries(
    [...values].map(([name, all]) => [name, all.length === 1 ? (all[0] ?? "") : all]),
  );
}
