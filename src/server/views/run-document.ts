/** A run as JSON: the resource that clients read, of which the tools' report is a part. */
import { z } from "zod";
import { totalCost } from "./cost-words.ts";
import { isoTime } from "../../core/clock.ts";
import { QuestionKind, type RunEvent } from "../../runs/events.ts";
import {
  type Approval,
  type OpenQuestion,
  type RunRequest,
  type RunView,
  type SubagentView,
  agentName,
  contentOf,
  isApproval,
  isFinal,
  isQuestion,
  isSameAgent,
  waitingIn,
  type Run,
} from "../../runs/run.ts";
import type { RunPoint } from "../../runs/service.ts";
import { type Waits, waitsIn } from "./waits.ts";
import { requestText } from "../../tools/check-answer.ts";
import { GoalReport, goalReport } from "./goal-report.ts";
import { limitsDocument } from "./limit-words.ts";
import { agentLabel, agentTypes, askedBy } from "./request-words.ts";

const Usage = z.object({
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_input_tokens: z.int(),
  /** US dollars. */
  cost_usd: z.union([z.number(), z.literal("unknown")]),
});

/** Times are ISO 8601. Absent facts are left out. */
export const RunDocument = z.object({
  run_id: z.string(),
  thread_id: z.string(),
  forked_from: z.string().optional(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  task: z.string(),
  name: z.string().optional(),
  model: z.string().optional(),
  limits: z
    .object({
      cost_usd: z.number(),
      tokens: z.number(),
      model_calls: z.number(),
      tool_calls: z.number(),
      work_seconds: z.number(),
    })
    .partial()
    .optional(),
  /** Absent: the run has none. */
  goal: GoalReport.optional(),
  /** Without a due time, a person started it outside the times of the schedule. */
  schedule: z.object({ schedule_id: z.string(), name: z.string(), due_at: z.string().optional() }).optional(),
  activity: z.string(),
  queue: z.object({ number: z.int(), waiting: z.int() }).optional(),
  created_at: z.string(),
  updated_at: z.string(),
  ended_at: z.string().optional(),
  answer: z.string().optional(),
  structured: z.unknown().optional(),
  stop_reason: z.string().optional(),
  failure_reason: z.string().optional(),
  failure_message: z.string().optional(),
  cancel_reason: z.string().optional(),
  todos: z.array(z.object({ content: z.string(), status: z.string() })),
  agents: z.array(
    z.object({
      agent: z.string(),
      name: z.string(),
      /** The calls that started it and those it works for, outermost first. */
      call_ids: z.array(z.string()),
      description: z.string(),
      status: z.enum(["queued", "working", "completed", "failed", "cancelled"]),
      step: z.string(),
      tool_calls: z.int(),
      pending_approvals: z.int(),
      pending_questions: z.int(),
      /** It does nothing but wait for a person, whom it or an agent below it asks. */
      waiting: z.literal(true).optional(),
    }),
  ),
  approvals: z.array(
    z.object({
      id: z.string(),
      tool: z.string(),
      agent: z.string(),
      summary: z.string(),
      /** The file or folder that is touched, in full. */
      destination: z.string().optional(),
      detail: z.string(),
      arguments: z.record(z.string(), z.unknown()),
      decisions: z.array(z.string()),
      status: z.string(),
      requested_at: z.string(),
      expires_at: z.string().optional(),
      decided_at: z.string().optional(),
      decided_by: z.string().optional(),
    }),
  ),
  questions: z.array(
    z.object({
      id: z.string(),
      kind: QuestionKind,
      agent: z.string(),
      /** Names the requester, such as another MCP server. */
      asked_by: z.string(),
      text: z.string(),
      /** The question as it was asked, with its fields. */
      asked: z.record(z.string(), z.unknown()),
      status: z.enum(["pending", "answered", "declined", "withdrawn"]),
      requested_at: z.string(),
      expires_at: z.string().optional(),
      answered_at: z.string().optional(),
      answered_by: z.string().optional(),
      answer: z.unknown().optional(),
    }),
  ),
  approved_for_run: z.array(
    z.object({
      tool: z.string(),
      calls: z.string(),
      approval_id: z.string(),
      granted_by: z.string(),
      granted_at: z.string(),
    }),
  ),
  files_changed: z.array(z.string()),
  usage: Usage.extend({
    models: z.array(Usage.extend({ model: z.string(), role: z.string(), calls: z.int() })),
  }),
  /** Number of the newest event of the run that is in the document. */
  last_event: z.int(),
  /** Former name of `last_event`. */
  last_seq: z.int(),
});
export type RunDocument = z.output<typeof RunDocument>;

/** All requests, and nothing cut short. */
export function runDocument(view: RunView): RunDocument {
  const { run, requests, grants, subagents, filesChanged, activity, place, models } = view;
  const [waits, pending] = [waitsIn(view), waitingIn(view)];
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
    schedule: run.schedule && {
      schedule_id: run.schedule.id,
      name: run.schedule.name,
      due_at: time(run.schedule.dueAt),
    },
    activity,
    queue: place === undefined ? undefined : { number: place.number, waiting: place.waiting },
    created_at: isoTime(run.createdAt),
    updated_at: isoTime(run.updatedAt),
    ended_at: time(run.endedAt),
    answer: run.answer,
    structured: run.structured,
    stop_reason: run.stopReason,
    failure_reason: run.failure?.reason,
    failure_message: run.failure?.message,
    cancel_reason: run.cancelReason,
    todos: run.todos,
    agents: subagents.map((subagent) => agentDocument(subagent, pending, waits)),
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
      ...usageDocument(run.usage, totalCost(models)),
      models: models.map(({ model, role, calls, ...usage }) => {
        return { model, role, calls, ...usageDocument(usage, usage.costUsd) };
      }),
    },
    last_event: run.lastSeq,
    last_seq: run.lastSeq,
  };
}

const time = (at: number | undefined): string | undefined => (at === undefined ? undefined : isoTime(at));

/** Tokens and cost. A price that is not known is "unknown", never 0. */
export const usageDocument = (usage: Run["usage"], costUsd: number | undefined): z.output<typeof Usage> => ({
  input_tokens: usage.inputTokens,
  output_tokens: usage.outputTokens,
  cached_input_tokens: usage.cachedInputTokens,
  cost_usd: costUsd ?? "unknown",
});

function agentDocument(
  { agent, description, status, step, toolCalls }: SubagentView,
  pending: readonly RunRequest[],
  waits: Waits,
): RunDocument["agents"][number] {
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
    ...(waits.ofAgent(agent) !== undefined && { waiting: true }),
  };
}

const approvalDocument = (approval: Approval): RunDocument["approvals"][number] => ({
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
  expires_at: time(approval.expiresAt),
  decided_at: time(approval.decidedAt),
  decided_by: approval.decidedBy,
});

function questionDocument(asked: OpenQuestion): RunDocument["questions"][number] {
  const { id, agent, status, answer } = asked;
  const { kind: _kind, ...content } = contentOf(asked);
  return {
    id,
    kind: asked.kind,
    agent: agentLabel(agent),
    asked_by: askedBy(asked),
    text: requestText(asked),
    asked: content,
    status,
    requested_at: isoTime(asked.requestedAt),
    expires_at: time(asked.expiresAt),
    answered_at: time(asked.decidedAt),
    answered_by: asked.decidedBy,
    answer,
  };
}

export function eventDocument({ seq, time, agent, kind, data }: RunEvent): object {
  return { seq, time: isoTime(time), agent: agentLabel(agent), kind, data };
}

export function pointDocument({ id, time, runId, summary }: RunPoint): object {
  return { thread_id: id, time: isoTime(time), run_id: runId, summary };
}
