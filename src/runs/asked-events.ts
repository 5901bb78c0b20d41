/** The events of requests to people: approvals and other questions, asked and answered. */
import type { ActionRequest, HitlRequest, PendingQuestion } from "../agent/agent.ts";
import { defined } from "../core/unknown.ts";
import { cutMiddle, displayName, displayText, headOf, oneLine } from "../core/text.ts";
import { answerText, requestText } from "../tools/check-answer.ts";
import type { AskedContent, CallPreview, CallRequest, PersonAnswer } from "../tools/request.ts";
import { type AskedCall, askedCall } from "./asked-words.ts";
import { type JournalEntry, LINE, TEXT } from "./events.ts";
import type { Approval, RunRequest } from "./run.ts";

/** Longest arguments that a person is shown where a tool has no preview of its own. */
const PREVIEW = 20_000;

/** The contents of the requests that one interrupt makes for calls. */
export const callRequests = (request: HitlRequest): (CallRequest & AskedContent)[] =>
  request.actionRequests.map((action, index) => ({
    kind: "approval",
    callId: action.toolCallId,
    tool: action.name,
    args: action.args,
    preview: action.preview ?? argumentsPreview(action),
    allowedDecisions: request.reviewConfigs[index]?.allowedDecisions ?? ["approve", "edit", "reject"],
    ...defined({ same: action.same, ruled: action.ruled }),
  }));

export const questionRequest = (asked: Pick<PendingQuestion, "question" | "callId">): AskedContent => ({
  ...asked.question,
  ...defined({ callId: asked.callId }),
});

export function requestedEntry(request: RunRequest): JournalEntry {
  const { id, agent } = request;
  const asking = defined({ callId: request.callId });
  if (request.kind === "approval") {
    const summary = oneLine(request.preview.summary, LINE);
    const data = { approvalId: id, tool: request.tool, summary, call: storedCall(request), ...asking };
    return { kind: "approval_requested", agent, data };
  }
  const server = request.kind === "elicitation" ? { server: oneLine(request.server, LINE) } : {};
  const text = oneLine(requestText(request), TEXT);
  const data = { questionId: id, kind: request.kind, ...server, text, ...asking };
  return { kind: "question_asked", agent, data };
}

/** The event of a request that no longer waits. `answer`: absent if it was withdrawn. */
export function answeredEntry(
  request: RunRequest,
  answer: PersonAnswer | undefined,
  by: string,
): JournalEntry {
  const { id, agent } = request;
  if (request.kind === "approval") {
    const decision = answer?.type ?? "withdrawn";
    const data = { approvalId: id, tool: request.tool, decision, by, call: storedCall(request) };
    return { kind: "approval_decided", agent, data };
  }
  const said = answer && answerText(answer);
  const words = defined({ answer: said && oneLine(said, TEXT) });
  const data = { questionId: id, kind: request.kind, outcome: journalOutcome(answer), by, ...words };
  return { kind: "question_answered", agent, data };
}

function journalOutcome(answer: PersonAnswer | undefined): "answered" | "declined" | "expired" | "withdrawn" {
  if (answer === undefined) return "withdrawn";
  if (answer.type === "expired") return "expired";
  return answer.type === "decline" ? "declined" : "answered";
}

function storedCall(approval: Approval): AskedCall {
  const call = askedCall(approval);
  return { ...call, object: headOf(call.object, TEXT) };
}

function argumentsPreview(action: ActionRequest): CallPreview {
  const pretty = JSON.stringify(action.args, null, 2);
  return {
    kind: "arguments",
    summary: oneLine(displayText(headOf(action.description, TEXT)), LINE) || displayName(action.name),
    detail: displayText(cutMiddle(pretty, PREVIEW)),
    ...(pretty.length <= PREVIEW ? {} : { isPart: true }),
  };
}
