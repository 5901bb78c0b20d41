/** Asks the person at an editor for approvals and answers, and stores the responses. */
import type * as acp from "@agentclientprotocol/sdk";
import { offeredDecisions, offeredRules } from "../../tools/call-request.ts";
import type { Clock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import type { Logger } from "../../core/logger.ts";
import { displayBlock } from "../../core/text.ts";
import type { Approval, OpenQuestion } from "../../runs/run.ts";
import type { PersonDecision } from "../../tools/request.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { fieldsOf } from "../../tools/check-answer.ts";
import { takeAnswer } from "../delivery/answers.ts";
import { freeAnswer, requestForm, shownText } from "../views/request-form.ts";
import { askedBy, deadlineText, heldBackText, whoAsks } from "../views/request-words.ts";
import { fenced, indented } from "../views/quoting.ts";
import { shownCall } from "../views/shown-call.ts";
import { type RunUpdates, diffContent, textContent, pathIn } from "./updates.ts";

/** Longest call that is shown, in characters; an editor scrolls. */
const MAX_SHOWN = 20_000;
/** Maximum number of times that one form is shown, if its answers cannot be carried out. */
const MAX_ATTEMPTS = 5;
/** Surface of an answer, for the journal. */
const BY = "acp";

type Asks<Request, Response> = (request: Request, signal: AbortSignal) => Promise<Response>;

export interface Editor {
  permission: Asks<acp.RequestPermissionRequest, acp.RequestPermissionResponse>;
  /** Absent: it has no forms. */
  form?: Asks<acp.CreateElicitationRequest, acp.CreateElicitationResponse>;
}

export interface Desk {
  readonly sessionId: string;
  readonly cwd: string;
  readonly runs: PrincipalRuns;
  readonly editor: Editor;
  readonly logger: Logger;
  /** Monotonic time. */
  readonly clock: Clock;
  /** A line for a shell of this machine that opens the page of a run. */
  readonly openCommand: (runId: string) => string;
  /** Shows the person a text in the conversation. */
  say(text: string): Promise<void>;
  update(update: acp.SessionUpdate): Promise<void>;
}

/** Wider rules than the second one are offered on the page and in a terminal. */
const MOST_RULES = 2;

const OPTIONS: Readonly<
  Record<PersonDecision["type"], { kind: acp.PermissionOptionKind; name: string } | undefined>
> = {
  approve: { kind: "allow_once", name: "Allow" },
  approve_same: { kind: "allow_always", name: "Always allow in this run" },
  approve_always: { kind: "allow_always", name: "Always allow" },
  reject: { kind: "reject_once", name: "Reject" },
  // Editors have no field for other arguments.
  edit: undefined,
};

/** A decision as options of an editor: one for each rule, and one for any other decision. */
function toOptions(
  decision: PersonDecision["type"],
  approval: Approval,
): (acp.PermissionOption & { answer: PersonDecision })[] {
  const { kind, name } = OPTIONS[decision] ?? {};
  if (kind === undefined || decision === "edit") return [];
  if (decision === "approve_always")
    return offeredRules(approval)
      .slice(0, MOST_RULES)
      .map(({ rules, sentence }, at) => {
        const label = displayBlock(`${name} ${rules.join(", ")}: ${sentence}`);
        return { optionId: `${decision}_${at + 1}`, kind, name: label, answer: { type: decision, rules } };
      });
  const what = decision === "approve_same" && approval.same !== undefined ? `: ${approval.same.text}` : "";
  return [{ optionId: decision, kind, name: displayBlock(name + what), answer: { type: decision } }];
}

/** Asks once. A dialog that is closed leaves the approval open: it can be decided on the page or in a terminal. */
export async function askPermission(
  approval: Approval,
  updates: RunUpdates,
  desk: Desk,
  signal: AbortSignal,
): Promise<void> {
  const { runId, id } = approval;
  const call = shownCall(approval, MAX_SHOWN);
  const choices = offeredDecisions(approval, call).flatMap((decision) => toOptions(decision, approval));
  const options = choices.map(({ answer: _answer, ...option }) => option);
  const notWhole = `The whole call is too long to be shown here, so it cannot be allowed here. To see all of it and decide, run: ${desk.openCommand(runId)}`;
  const elsewhere = call.isWhole ? [] : [textContent(notWhole)];
  const content = [...approvalContent(approval, call, desk.cwd), ...elsewhere];
  const toolCall = updates.asked(approval, call.summary, content);
  let response: acp.RequestPermissionResponse;
  try {
    response = await desk.editor.permission({ sessionId: desk.sessionId, toolCall, options }, signal);
  } catch (error) {
    if (signal.aborted) return;
    desk.logger.warn("acp.not_asked", { runId, approvalId: id, error });
    await desk.say(`This editor did not ask for approval of: ${call.summary}\n\n${decideWith(desk, runId)}`);
    return;
  }
  const { outcome } = response;
  if (outcome.outcome !== "selected" || signal.aborted) return;
  const chosen = choices.find(({ optionId }) => optionId === outcome.optionId);
  if (chosen === undefined) {
    const message = `The editor answered with an unknown option, so nothing was decided.\n\n${decideWith(desk, runId)}`;
    await desk.say(message);
    return;
  }
  const given = { requestId: id, answer: chosen.answer };
  const stored = await desk.runs.requests.answer(runId, given, BY);
  if (!stored.ok) await desk.say(stored.message);
}

function approvalContent(
  approval: Approval,
  { destination, detail }: ReturnType<typeof shownCall>,
  cwd: string,
): acp.ToolCallContent[] {
  const { agent, preview, args } = approval;
  const who = agent.length === 0 ? [] : [`${whoAsks(agent)} asks.`];
  const above = [...who, ...destination, ...heldBackText(approval)].map((line) => textContent(line));
  if (preview.kind !== "diff")
    return [...above, textContent(fenced(detail, preview.kind === "command" ? "sh" : ""))];
  const path = args["file_path"] ?? args["path"];
  return [...above, ...diffContent(detail, typeof path === "string" ? pathIn(cwd, path) : approval.tool)];
}

const decideWith = ({ openCommand }: Desk, runId: string): string =>
  `To decide on the page of the run, run this in a terminal:\n\n${indented(openCommand(runId))}`;

/** Asks with forms. False: this editor has none, or the person closed it; the question stays open. */
export async function askQuestion(question: OpenQuestion, desk: Desk, signal: AbortSignal): Promise<boolean> {
  const { form } = desk.editor;
  const { runs, logger, clock } = desk;
  const { runId } = question;
  let problem: string | undefined;
  if (form === undefined) return false;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !signal.aborted; attempt += 1) {
    const place = { runId, position: 1, total: 1, ...defined({ problem }) };
    const request = requestForm(question, place, { urls: false, lists: true });
    if (request.mode === "url") return false;
    const asked = clock();
    const { message, requestedSchema } = request;
    const shown = form({ mode: "form", sessionId: desk.sessionId, message, requestedSchema }, signal);
    const response = await shown.catch((error: unknown) => {
      logger.debug("acp.form_not_answered", { runId, questionId: question.id, error });
      return undefined;
    });
    if (response === undefined) return signal.aborted;
    if (response.action !== "accept" && response.action !== "decline") return false;
    const content = "content" in response ? response.content : undefined;
    const taken = await takeAnswer(
      { runs, runId, logger },
      question,
      { action: response.action, content },
      { elapsed: clock() - asked, client: { urls: false }, by: BY },
    );
    if (taken.kind !== "again") return taken.kind === "decided";
    problem = taken.problem;
  }
  return false;
}

/** Shows a question in the conversation, where the next message answers it. */
export function questionText(question: OpenQuestion, { openCommand }: Desk): string {
  const fields = fieldsOf(question) ?? [];
  const options = fields.flatMap((field) => (field.type === "choice" ? field.options : []));
  return [
    askedBy(question),
    indented(shownText(question)),
    ...(options.length === 0 ? [] : [`Options: ${options.map((option) => displayBlock(option)).join(", ")}`]),
    canReply(question)
      ? "Your next message is the answer."
      : `To answer, run this in a terminal:\n\n${indented(openCommand(question.runId))}`,
    ...deadlineText(question),
  ].join("\n\n");
}

export const canReply = (question: OpenQuestion): boolean =>
  !(question.kind === "elicitation" && question.mode === "url") && (fieldsOf(question)?.length ?? 1) === 1;

/** Stores a message as the answer to a question. `undefined`: it was; otherwise the problem with it. */
export async function replyTo(question: OpenQuestion, text: string, { runs }: Desk) {
  const [field] = fieldsOf(question) ?? [];
  const read =
    field === undefined
      ? freeAnswer(question, text)
      : { ok: true as const, answer: { type: "fields" as const, values: { [field.name]: text } } };
  if (!read.ok) return read.message;
  const given = { requestId: question.id, answer: read.answer };
  const outcome = await runs.requests.answer(question.runId, given, BY);
  return outcome.ok || outcome.code === "already_answered" ? undefined : outcome.message;
}
