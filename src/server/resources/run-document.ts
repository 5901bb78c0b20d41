import { isoTime } from "../../core/clock.ts";
import type { Approval, ModelUsage, RunEvent, RunView, SubagentView } from "../../runs/run.ts";
import type { RunPoint } from "../../runs/service.ts";
import { totalCost } from "../../runs/view.ts";
import { agentLabel, agentTypes } from "../approval-form.ts";

/**
 * The JSON a client reads of a run: the names of the tools' reports, but all approvals and nothing cut
 * short. Times are ISO 8601, absent facts are left out.
 */
export function runDocument(view: RunView): object {
  const { run, approvals, grants, subagents, filesChanged, activity, place, models } = view;
  return {
    run_id: run.id,
    thread_id: run.threadId,
    forked_from: run.forkedFrom,
    status: run.status,
    task: run.task,
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
    agents: subagents.map(agentDocument),
    approvals: approvals.map(approvalDocument),
    approved_for_run: grants.map(({ tool, text, approvalId, grantedBy, grantedAt }) => ({
      tool,
      calls: text,
      approval_id: approvalId,
      granted_by: grantedBy,
      granted_at: isoTime(grantedAt),
    })),
    files_changed: filesChanged,
    usage: {
      input_tokens: run.usage.inputTokens,
      output_tokens: run.usage.outputTokens,
      cached_input_tokens: run.usage.cachedInputTokens,
      cost_usd: totalCost(models) ?? "unknown",
      models: models.map(modelDocument),
    },
    last_seq: run.lastSeq,
  };
}

/** A price that is not known is "unknown", never 0. */
function modelDocument(usage: ModelUsage): object {
  return {
    model: usage.model,
    role: usage.role,
    calls: usage.calls,
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cost_usd: usage.costUsd ?? "unknown",
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

function agentDocument({ agent, description, status, step, toolCalls }: SubagentView): object {
  return { agent: agentTypes(agent), description, status, step, tool_calls: toolCalls };
}

function approvalDocument(approval: Approval): object {
  return {
    id: approval.id,
    tool: approval.tool,
    agent: agentLabel(approval.agent),
    summary: approval.preview.summary,
    detail: approval.preview.detail,
    decisions: approval.allowedDecisions,
    status: approval.status,
    requested_at: isoTime(approval.requestedAt),
    expires_at: approval.expiresAt === undefined ? undefined : isoTime(approval.expiresAt),
    decided_at: approval.decidedAt === undefined ? undefined : isoTime(approval.decidedAt),
    decided_by: approval.decidedBy,
  };
}
