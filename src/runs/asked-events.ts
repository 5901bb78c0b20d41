/** The events of requests to people: approvals and other questions, asked and answered. */
import type { ActionRequest, AgentPath, HitlRequest } from "../agent/agent.ts";
import { defined } from "../core/defined.ts";
import { cutMiddle, displayName, displayText, headOf, oneLine } from "../core/text.ts";
import { answerText, questionText } from "../tools/check-answer.ts";
import type { Answer, CallPreview } from "../tools/tool.ts";
import { type AskedCall, askedCall } from "./asked-words.ts";
import { type JournalEntry, LINE, TEXT } from "./events.ts";
import type { Approval, OpenQuestion } from "./run.ts";

/** Longest arguments that a person is shown where a tool has no preview of its own. */
const PREVIEW = 20_000;

export const approvalId = (interruptId: string, index: number): string => `${interruptId}:${index}`;

/** The approvals one interrupt asks for, as yet undecided. */
export function approvalsOf(
  runId: string,
  interruptId: string,
  agent: AgentPath,
  request: HitlRequest,
  { now, deadlineMs }: { now: number; deadlineMs: number | undefined },
): Approval[] {
  return request.actionRequests.map((action, index) => ({
    id: approvalId(interruptId, index),
    runId,
    interruptId,
    index,
    agent,
    tool: action.name,
    args: action.args,
    preview: action.preview ?? argumentsPreview(action),
    allowedDecisions: request.reviewConfigs[index]?.allowedDecisions ?? ["approve", "edit", "reject"],
    status: "pending",
    requestedAt: now,
    ...defined({ same: action.same, expiresAt: deadlineMs === undefined ? undefined : now + deadlineMs }),
  }));
}

export function requestedEntry(approval: Approval): JournalEntry {
  return {
    kind: "approval_requested",
    agent: approval.agent,
    data: {
      approvalId: approval.id,
      tool: approval.tool,
      summary: oneLine(approval.preview.summary, LINE),
      call: storedCall(approval),
    },
  };
}

export function decidedEntry(approval: Approval, decision: string, by: string): JournalEntry {
  return {
    kind: "approval_decided",
    agent: approval.agent,
    data: { approvalId: approval.id, tool: approval.tool, decision, by, call: storedCall(approval) },
  };
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

export function askedEntry({ id, agent, question }: OpenQuestion): JournalEntry {
  const server = question.kind === "elicitation" ? { server: oneLine(question.server, LINE) } : {};
  const text = oneLine(questionText(question), TEXT);
  const data = { questionId: id, kind: question.kind, ...server, text };
  return { kind: "question_asked", agent, data };
}

/** `answer`: absent if the question was withdrawn. */
export function answeredEntry(
  { id, agent, question }: OpenQuestion,
  answer: Answer | undefined,
  by: string,
): JournalEntry {
  const outcome = answer === undefined ? ("withdrawn" as const) : OUTCOMES[answer.type];
  const said = answer && answerText(answer);
  const data = {
    questionId: id,
    kind: question.kind,
    outcome,
    by,
    ...defined({ answer: said && oneLine(said, TEXT) }),
  };
  return { kind: "question_answered", agent, data };
}

const OUTCOMES = {
  fields: "answered",
  value: "answered",
  opened: "answered",
  review: "answered",
  decline: "declined",
  expired: "expired",
} as const;
