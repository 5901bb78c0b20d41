/** The JSON and the transcript that a client reads of a run. */
import { isoTime } from "../../core/clock.ts";
import { type AskedCall, objectText } from "../../runs/asked-words.ts";
import type { RunEvent } from "../../runs/events.ts";
import { endedLine, findingText, judgedLine } from "../../runs/goal.ts";
import type { Approval, OpenQuestion, RunView, SubagentView, RunRequest } from "../../runs/run.ts";
import {
  agentName,
  contentOf,
  isApproval,
  isFinal,
  isQuestion,
  isSameAgent,
  endedEarly,
  waitingIn,
} from "../../runs/run.ts";
import type { RunPoint } from "../../runs/service.ts";
import { totalCost } from "../../runs/view.ts";
import { type Waits, waitsIn } from "../../runs/waits.ts";
import { reviewedLine } from "../../runs/review-events.ts";
import { requestText } from "../../tools/check-answer.ts";
import { agentLabel, agentTypes } from "./request-words.ts";
import { goalReport } from "./goal-report.ts";
import { limitWords, limitsDocument } from "./limit-words.ts";
import { asText, code, fenced, quote } from "./quoting.ts";
import { usageReport } from "./run-report.ts";

/**
 * The JSON a client reads of a run: the names of the tools' reports, but all approvals and questions, and nothing cut
 * short. Times are ISO 8601, absent facts are left out.
 */
export function runDocument(view: RunView) {
  const { run, requests, grants, subagents, filesChanged, activity, place, models } = view;
  const waits = waitsIn(view);
  return {
    run_id: run.id,
    thread_id: run.threadId,
    forked_from: run.forkedFrom,
    status: run.status,
    task: run.task,
    name: run.name,
    model: run.model,
    limits: run.limits && limitsDocument(run.limits),
    goal: view.goal && goalReport(view.goal, isFinal(run.status)),
    // Without a due time, a person started it outside the times of the schedule.
    schedule: run.schedule && {
      schedule_id: run.schedule.id,
      name: run.schedule.name,
      due_at: run.schedule.dueAt === undefined ? undefined : isoTime(run.schedule.dueAt),
    },
    activity,
    queue: place === undefined ? undefined : { number: place.number, waiting: place.waiting },
    created_at: isoTime(run.createdAt),
    updated_at: isoTime(run.updatedAt),
    ended_at: run.endedAt === undefined ? undefined : isoTime(run.endedAt),
    answer: run.answer,
    structured: run.structured,
    stop_reason: run.stopReason,
    failure_reason: run.failure?.reason,
    failure_message: run.failure?.message,
    cancel_reason: run.cancelReason,
    todos: run.todos,
    agents: subagents.map((subagent) => agentDocument(subagent, waitingIn(view), waits)),
    approvals: requests.filter(isApproval).map(approvalDocument),
    questions: requests.filter(isQuestion).map(questionDocument),
    approved_for_run: grants.map(({ tool, text, approvalId, grantedBy, grantedAt }) => ({
      tool,
      calls: text,
      approval_id: approvalId,
      granted_by: grantedBy,
      granted_at: isoTime(grantedAt),
    })),
    files_changed: filesChanged,
    usage: {
      ...usageReport(run.usage, totalCost(models)),
      models: models.map(({ model, role, calls, ...usage }) => {
        return { model, role, calls, ...usageReport(usage, usage.costUsd) };
      }),
    },
    last_seq: run.lastSeq,
  };
}

export function eventDocument({ seq, time, agent, kind, data }: RunEvent): object {
  return { seq, time: isoTime(time), agent: agentLabel(agent), kind, data };
}

export function pointDocument({ id, time, runId, summary }: RunPoint): object {
  return { thread_id: id, time: isoTime(time), run_id: runId, summary };
}

/** The answer of a run as text; while there is none, where the run stands. */
export function reportOf({ run, activity }: RunView): string {
  if (run.status === "completed") return run.answer ?? "";
  return [`Run ${run.id} ${standing(run, activity)}`, run.answer ?? ""].join("\n\n").trim();
}

function standing({ status, failure, cancelReason }: RunView["run"], activity: string): string {
  if (status === "failed") return `failed: ${failure?.message ?? "no details"}`;
  if (status === "cancelled") return `was cancelled: ${cancelReason ?? "no reason given"}`;
  return `has not ended (${status}): ${activity}`;
}

/** `call_ids`: the calls that started it and those it works for, outermost first. */
function agentDocument(
  { agent, description, status, step, toolCalls }: SubagentView,
  pending: readonly RunRequest[],
  waits: Waits,
) {
  const own = pending.filter((one) => isSameAgent(one.agent, agent));
  const pendingQuestions = own.filter(isQuestion).length;
  return {
    agent: agentTypes(agent),
    name: agent.slice(-1).map(agentName).join(""),
    call_ids: agent.map(({ callId }) => callId),
    description,
    status,
    step,
    tool_calls: toolCalls,
    pending_approvals: own.length - pendingQuestions,
    pending_questions: pendingQuestions,
    // It does nothing but wait for a person, whom it or an agent below it asks.
    ...(waits.ofAgent(agent) !== undefined && { waiting: true }),
  };
}

const approvalDocument = (approval: Approval): object => ({
  id: approval.id,
  tool: approval.tool,
  agent: agentLabel(approval.agent),
  summary: approval.preview.summary,
  destination: approval.preview.destination,
  detail: approval.preview.detail,
  arguments: approval.args,
  decisions: approval.allowedDecisions,
  status: approval.status,
  requested_at: isoTime(approval.requestedAt),
  expires_at: approval.expiresAt === undefined ? undefined : isoTime(approval.expiresAt),
  decided_at: approval.decidedAt === undefined ? undefined : isoTime(approval.decidedAt),
  decided_by: approval.decidedBy,
});

/** `asked`: the question as it was asked, with its fields. */
function questionDocument(asked: OpenQuestion): object {
  const { id, agent, status, answer } = asked;
  const { kind, ...content } = contentOf(asked);
  return {
    id,
    kind,
    agent: agentLabel(agent),
    text: requestText(asked),
    asked: content,
    status,
    requested_at: isoTime(asked.requestedAt),
    expires_at: asked.expiresAt === undefined ? undefined : isoTime(asked.expiresAt),
    answered_at: asked.decidedAt === undefined ? undefined : isoTime(asked.decidedAt),
    answered_by: asked.decidedBy,
    answer,
  };
}

/**
 * A run as Markdown: the task, what happened in order, the answer. Texts of people, models and files are
 * quoted, fenced or put in code, so that none of them can look like a line of the transcript.
 */
export function transcriptOf({ run, activity }: RunView, events: readonly RunEvent[]): string {
  const { endedAt, answer } = run;
  const end = endedAt === undefined ? `now ${code(activity)}` : `ended ${isoTime(endedAt)}`;
  const missing = (events[0]?.seq ?? 1) - 1;
  const blocks = [
    `# Run ${run.id}`,
    [`${run.status} · started ${isoTime(run.createdAt)} · ${end}`, ...chosenFor(run)].join(" · "),
    "## Task",
    quote(run.task),
    ...(run.goal === undefined ? [] : ["## Goal", quote(run.goal.join("\n"))]),
    "## What happened",
    ...(missing > 0 ? [`_${missing} earlier events are not shown._`] : []),
    ...events.flatMap(eventBlocks),
    ...(answer === undefined ? [] : ["## Answer", quote(answer)]),
  ];
  return `${blocks.join("\n\n")}\n`;
}

/** Names the choices for this run alone, and the schedule that started it. */
function chosenFor({ model, limits, schedule }: RunView["run"]): string[] {
  const words = limitWords(limits ?? {});
  return [
    ...(schedule === undefined ? [] : [`started by schedule ${code(schedule.name)}`]),
    ...(model === undefined ? [] : [`model ${code(model)}`]),
    ...(words.length === 0 ? [] : [`limit ${words.join(", ")}`]),
  ];
}

/** Returns the line of an event and the blocks below it; empty for events that only close another. */
function eventBlocks(event: RunEvent): string[] {
  const [line, ...details] = eventProse(event);
  if (line === undefined) return [];
  const agent = event.agent.length === 0 ? "" : ` ${code(agentLabel(event.agent))}`;
  return [`**${isoTime(event.time).slice(11, 19)}**${agent} ${line}`, ...details];
}

/** Describes an event for the transcript: its line, then the quotes below it. */
function eventProse({ kind, data }: RunEvent): string[] {
  switch (kind) {
    case "run_started":
      return ["The run began."];
    case "run_resumed":
      return ["The run was taken up again."];
    case "run_parked":
      return ["The server shut down; the run waits for the next one."];
    case "run_completed":
      return [`The run ${data.stopReason === undefined ? "is complete" : endedEarly(data.stopReason)}.`];
    case "run_failed":
      return ["The run failed.", ...quoted(data.message)];
    case "run_cancelled":
      return ["The run was cancelled.", ...quoted(data.reason)];
    case "changes_reviewed":
      return [`${reviewedLine(data).replace(/^review: /, "After a review: ")}.`];
    case "todos":
      return ["The todos changed."];
    case "subagent_queued":
    case "model_requested":
      return [];
    case "subagent_started":
      return ["A subagent began.", ...quoted(data.description)];
    case "subagent_finished":
      return [`The subagent ${data.status === "error" ? "failed" : "reported"}.`, ...quoted(data.report)];
    case "tool_started":
      return [calledLine(data)];
    case "tool_finished":
      return data.status === "error" ? [`${code(data.tool)} failed.`] : [];
    case "model_called":
      return data.text === "" ? [] : ["said:", quote(data.text)];
    case "file_changed":
      return [`changed ${code(data.path)}.`, ...(data.diff ? [fenced(data.diff, "diff")] : [])];
    case "message_received":
      return ["was told:", quote(data.text)];
    case "approval_requested":
      return [`waits for approval of ${code(data.tool)}: ${asked(data.call) ?? code(data.summary)}`];
    case "approval_decided":
      return [`${asked(data.call) ?? code(data.tool)}: ${code(data.decision)}, decided by ${code(data.by)}.`];
    case "question_asked":
      return [askedLine(data), quote(data.text)];
    case "question_answered":
      return [`was ${data.outcome}, by ${code(data.by)}.`, ...quoted(data.answer ?? "")];
    case "answer_refused":
      return [`A client's signed answer was not used: ${code(data.reason)}.`];
    case "model_awaited":
      return ["waits for the client's model."];
    case "compacted":
      return [compactedLine(data)];
    case "model_retry":
      return [`${data.message}.`];
    case "goal_judged":
      return [`${judgedLine(data)}.`, ...data.verdicts.map((finding) => quote(findingText(finding)))];
    case "goal_ended":
      return [`${endedLine(data)}.`];
    case "warning":
      return ["Warning:", quote(data.message)];
  }
}

const calledLine = ({ tool, summary, within }: Extract<RunEvent, { kind: "tool_started" }>["data"]): string =>
  `called ${code(tool)}${within === undefined ? "" : " in its program"}: ${code(summary)}`;

const compactedLine = ({ how, messages, path }: Extract<RunEvent, { kind: "compacted" }>["data"]): string =>
  `${how} ${messages} older messages${path ? `; they are kept in ${code(path)}` : ""}.`;

/** Returns undefined for requests of an older version. */
const asked = (call: AskedCall | undefined): string | undefined =>
  call && `${asText(call.act)} ${code(objectText(call))}`;

function askedLine({ kind, server = "" }: Extract<RunEvent, { kind: "question_asked" }>["data"]): string {
  if (kind === "elicitation") return `waits for an answer to the MCP server ${code(server)}:`;
  if (kind === "review") return "waits for a review of its changes:";
  return kind === "ask" ? "waits for an answer:" : "waits for an answer to a tool:";
}

const quoted = (text: string): string[] => (text === "" ? [] : [quote(text)]);
