import { isoTime } from "../../core/clock.ts";
import type { AgentPath, Approval, RunEvent, RunView, SubagentView } from "../../runs/run.ts";

/** The JSON a client reads of a run. Times are ISO 8601, absent facts are left out. */
export function runDocument({ run, approvals, subagents, filesChanged, activity }: RunView): object {
  return {
    run_id: run.id,
    thread_id: run.threadId,
    status: run.status,
    task: run.task,
    activity,
    created_at: isoTime(run.createdAt),
    updated_at: isoTime(run.updatedAt),
    ended_at: run.endedAt === undefined ? undefined : isoTime(run.endedAt),
    answer: run.answer,
    structured: run.structured,
    failure: run.failure,
    cancel_reason: run.cancelReason,
    todos: run.todos,
    subagents: subagents.map(subagentDocument),
    approvals: approvals.map(approvalDocument),
    files_changed: filesChanged,
    usage: {
      input_tokens: run.usage.inputTokens,
      output_tokens: run.usage.outputTokens,
      cached_input_tokens: run.usage.cachedInputTokens,
    },
    last_seq: run.lastSeq,
  };
}

export function eventDocument({ seq, time, agent, kind, data }: RunEvent): object {
  return { seq, time: isoTime(time), agent: agentName(agent), kind, ...data };
}

/** The answer of a run as text; before there is one, where the run stands. */
export function reportOf({ run, activity }: RunView): string {
  if (run.status === "failed") {
    return [`Run ${run.id} failed: ${run.failure?.message ?? "unknown reason"}`, run.answer]
      .join("\n\n")
      .trim();
  }
  if (run.status === "cancelled") {
    return [`Run ${run.id} was cancelled: ${run.cancelReason ?? ""}`.trim(), run.answer].join("\n\n").trim();
  }
  if (run.status === "completed") return run.answer ?? "";
  return `Run ${run.id} has not ended (${run.status}): ${activity}`;
}

function subagentDocument({ agent, name, description, status, step, toolCalls }: SubagentView): object {
  return { agent: agentName(agent), name, description, status, step, tool_calls: toolCalls };
}

function approvalDocument(approval: Approval): object {
  return {
    approval_id: approval.id,
    agent: agentName(approval.agent),
    tool: approval.tool,
    summary: approval.preview.summary,
    detail: approval.preview.detail,
    allowed_decisions: approval.allowedDecisions,
    status: approval.status,
    requested_at: isoTime(approval.requestedAt),
    decided_at: approval.decidedAt === undefined ? undefined : isoTime(approval.decidedAt),
    decided_by: approval.decidedBy,
  };
}

/** `main`, or the names on the way down, such as `researcher > general-purpose`. */
function agentName(agent: AgentPath): string {
  return agent.length === 0 ? "main" : agent.map((segment) => segment.name).join(" > ");
}
