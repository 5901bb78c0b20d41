/** Asks a person in the terminal to decide on a run's requests. */
import { displayName, displayText, oneLine } from "../../core/text.ts";
import { isRecord, parsedJson } from "../../core/unknown.ts";
import { type Approval, type RunRequest, alreadyAnswered, isQuestion, waitingIn } from "../../runs/run.ts";
import { ANSWERED_LATE, deadlineText, whoAsks } from "../../server/views/request-words.ts";
import { restOf, shownCall } from "../../server/views/shown-call.ts";
import { offeredDecisions } from "../../tools/call-request.ts";
import type { PersonDecision } from "../../tools/request.ts";
import { type AskOptions, openQuestion } from "./ask-question.ts";
import type { Asker } from "./asker.ts";
import { type BodyStyle, diffBody, textBody } from "./body.ts";
import { chopText, unbroken, wrapText } from "./text.ts";

/** Puts the open requests of a run to the person at the terminal, one after the other, until none is open. */
export async function askOpenRequests(runId: string, options: AskOptions): Promise<void> {
  const { runs, only } = options;
  for (let asked = 0; ; asked += 1) {
    const view = await runs.read.view(runId);
    const pending = view === undefined ? [] : waitingIn(view);
    const [first, ...others] = pending.filter(({ id }) => id === (only ?? id));
    if (first === undefined) return;
    await askUnlessAnswered(first, `${asked + 1} of ${asked + 1 + others.length} waiting`, options);
  }
}

/** Asks until there is an answer here, or elsewhere, such as on the page. */
async function askUnlessAnswered(asked: RunRequest, place: string, options: AskOptions): Promise<void> {
  const { asker } = options;
  const elsewhere = new AbortController();
  const watching = untilDecided(asked, options, elsewhere.signal).then(
    () => elsewhere.abort(),
    // Then the decision itself reports the problem.
    () => undefined,
  );
  try {
    await askRequest(asked, place, options, elsewhere.signal);
  } catch (error) {
    if (!elsewhere.signal.aborted) throw error;
    asker.print(asker.colors.dim(isQuestion(asked) ? "› answered elsewhere" : "› decided elsewhere"));
  } finally {
    elsewhere.abort();
    await watching;
  }
}

/** Asks until an answer is stored, here or elsewhere. */
async function askRequest(
  asked: RunRequest,
  place: string,
  options: AskOptions,
  elsewhere: AbortSignal,
): Promise<void> {
  const { runs, asker } = options;
  const { dim, yellow } = asker.colors;
  const read = isQuestion(asked)
    ? await openQuestion(asked, place, options, elsewhere)
    : async () => toDecision(asked, await askDecision(shownApproval(asked, place), asker, elsewhere));
  for (;;) {
    const answer = await read();
    if (answer === undefined) {
      asker.print(yellow("The edited arguments are not a JSON object. Nothing was run."));
      continue;
    }
    const outcome = await runs.requests.answer(asked.runId, { requestId: asked.id, answer }, "terminal");
    if (!outcome.ok) asker.print(yellow(displayText(outcome.message)));
    else if (outcome.how === "told") asker.print(yellow(ANSWERED_LATE));
    else if (outcome.how === "repeated") asker.print(yellow(alreadyAnswered(outcome.request)));
    else if (isQuestion(asked)) asker.print(dim(answer.type === "decline" ? "› declined" : "› answered"));
    if (outcome.ok || outcome.code !== "invalid_answer") return;
  }
}

/** Resolves when somebody has decided, as on the page of the run, or the signal is aborted. */
async function untilDecided(
  { runId, id }: RunRequest,
  { runs }: AskOptions,
  signal: AbortSignal,
): Promise<void> {
  for await (const { kind, data } of runs.watch.events(runId, { after: 0, signal })) {
    if (kind === "approval_decided" && data.approvalId === id) return;
    if (kind === "question_answered" && data.questionId === id) return;
  }
}

type DecisionName = PersonDecision["type"];

/** A call that waits, as a person is shown it. */
export interface ShownApproval {
  /** Such as `2 of 3 waiting`. */
  place: string;
  /** Lines with the agent, its intended act, and the file or folder. */
  title: readonly string[];
  isDiff: boolean;
  /** Shows the call. */
  body: string;
  /** The whole call as text, where `body` leaves something out. */
  rest?: string;
  /** Further facts, such as the deadline. */
  notes: readonly string[];
  /** The call in full. */
  details: string;
  decisions: readonly DecisionName[];
  /** Arguments to edit, as JSON. */
  args: string;
}

type ApprovalAnswer = {
  decision: DecisionName;
  edited_args?: string;
  message?: string;
};

/** `place`: such as `2 of 3 waiting`. */
export function shownApproval(approval: Approval, place = ""): ShownApproval {
  const { agent, tool, preview, args, id, same } = approval;
  const decisions = offeredDecisions(approval);
  const json = JSON.stringify(args, null, 2);
  const { summary, destination, detail } = shownCall(approval, Infinity);
  return {
    place,
    title: [`${whoAsks(agent)} wants to run ${oneLine(displayName(tool), 64)}:`, summary, ...destination],
    isDiff: preview.kind === "diff",
    body: detail,
    rest: restOf(approval),
    notes: [
      ...(decisions.includes("approve_same")
        ? [`approve the same: also every further ${displayName(same?.text ?? "call like this")}, in this run`]
        : []),
      ...deadlineText(approval),
    ],
    details: `approval ${id}\n${displayName(tool)} ${displayText(json)}`,
    decisions,
    args: json,
  };
}

/** Returns `undefined` if the edited arguments are not a JSON object. */
function toDecision(
  { tool }: Approval,
  { decision, edited_args, message }: ApprovalAnswer,
): PersonDecision | undefined {
  if (decision === "reject") return { type: decision, ...(message === undefined ? {} : { message }) };
  if (decision !== "edit") return { type: decision };
  const args = parsedJson(edited_args ?? "");
  return isRecord(args) ? { type: "edit", editedAction: { name: tool, args } } : undefined;
}

const CHOICES: Readonly<Record<DecisionName, { key: string; label: string }>> = {
  approve: { key: "a", label: "approve" },
  approve_same: { key: "s", label: "approve the same" },
  edit: { key: "e", label: "edit" },
  reject: { key: "r", label: "reject" },
};

/** Shows a call as lines: the agent, the whole call, and further facts such as the deadline. */
export function callLines(question: ShownApproval, style: BodyStyle) {
  const wrapped = (text: string): string[] =>
    wrapText(text, style.width - 1).flatMap((line) => chopText(line, style.width - 1));
  const { isDiff, body, rest = "" } = question;
  return {
    title: question.title.flatMap(wrapped),
    body: [
      ...(isDiff ? diffBody(body, style) : textBody(body, style)),
      ...(rest === "" ? [] : ["", ...textBody(rest, style)]),
    ],
    notes: question.notes.flatMap(wrapped).map((line) => style.colors.dim(line)),
  };
}

/** Asks until there is a decision. A key decides; content that exceeds the screen is shown in pages. */
export async function askDecision(
  question: ShownApproval,
  asker: Asker,
  signal?: AbortSignal,
): Promise<ApprovalAnswer> {
  const { colors } = asker;
  const style = { colors, width: asker.size().columns };
  const { title, body: rest, notes } = callLines(question, style);
  const head = ["", colors.yellow(`? Approval ${question.place}`), ...title, ""];
  const prompt = (): string => {
    const choices = [
      ...question.decisions.map((name) => CHOICES[name]),
      { key: "d", label: "details" },
      ...(rest.length > 0 ? [{ key: "space", label: `${rest.length} more lines` }] : []),
    ];
    const shown = choices.map(({ key, label }) => unbroken(`${colors.bold(colors.cyan(key))} ${label}`));
    return `${shown.join("  ")} › `;
  };
  const page = (): string[] => {
    const { rows, columns } = asker.size();
    const others = head.length + notes.length + wrapText(prompt(), columns - 1).length + 2;
    return rest.splice(0, Math.max(rows - others, 5));
  };
  asker.print([...head, ...page(), ...(notes.length > 0 ? ["", ...notes] : []), ""].join("\n"));
  for (let isFirst = true, isUnseenTold = false; ; isFirst = false) {
    const key = (await asker.key(prompt(), isFirst, signal)).toLowerCase();
    const choice = question.decisions.find((name) => CHOICES[name].key === key);
    if (key === " " && rest.length > 0) asker.print(page().join("\n"));
    if (key === "d") asker.print(textBody(question.details, style).join("\n"));
    if ((choice === "approve" || choice === "approve_same") && rest.length > 0 && !isUnseenTold) {
      isUnseenTold = true;
      const warning = `${rest.length} lines were not shown. The same key again approves them unseen.`;
      asker.print(colors.yellow(wrapText(warning, style.width - 1).join("\n")));
      continue;
    }
    const answer = choice === undefined ? undefined : await completeAnswer(choice, question, asker);
    if (answer === undefined) continue;
    asker.print(colors.dim(`› ${CHOICES[answer.decision].label}`));
    return answer;
  }
}

/** `undefined` when the person changed nothing. */
async function completeAnswer(
  decision: DecisionName,
  { args }: ShownApproval,
  asker: Asker,
): Promise<ApprovalAnswer | undefined> {
  if (decision === "reject") {
    const message = (await asker.line("Why, or what instead (optional) › ")).trim();
    return { decision, ...(message === "" ? {} : { message }) };
  }
  if (decision !== "edit") return { decision };
  const edited = await editArguments(args, asker);
  if (edited === undefined) asker.print("Nothing was changed.");
  return edited === undefined ? undefined : { decision, edited_args: edited };
}

/** The argument a person wants to see as text rather than as an escaped JSON string. */
const TEXT_ARGUMENTS = ["content", "new_string", "command"];

async function editArguments(json: string, asker: Asker): Promise<string | undefined> {
  const args = parsedJson(json);
  if (!isRecord(args)) return undefined;
  const name = TEXT_ARGUMENTS.find((key) => typeof args[key] === "string");
  const before = name === undefined ? JSON.stringify(args, null, 2) : String(args[name]);
  const after = await asker.edit(before, name === undefined ? "arguments.json" : `${name}.txt`);
  if (after === undefined || after === before) return undefined;
  return name === undefined ? after : JSON.stringify({ ...args, [name]: after });
}
