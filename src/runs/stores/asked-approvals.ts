import type { AgentPath, PendingInterrupt } from "../../agent/agent.ts";
import { approvalId, approvalsOf, decidedEntry, requestedEntry } from "../journal.ts";
import { isWithin, sameAs } from "../run.ts";
import type { ApprovalStore } from "./approval-store.ts";
import { toJson } from "./json.ts";
import type { RunStore } from "./run-store.ts";

/** Whether these are the very questions that are stored under this interrupt. */
export function isRepeated(
  approvals: ApprovalStore,
  runId: string,
  { id, request }: PendingInterrupt,
): boolean {
  return request.actionRequests.every(({ name, args }, index) => {
    const known = approvals.get(runId, approvalId(id, index));
    return known?.tool === name && toJson(known.args) === toJson(args);
  });
}

/**
 * Stores what an interrupt asks, and decides what a person has approved for the whole run; what is known
 * already stays as it is. Belongs inside a transaction.
 */
export function addApprovals(
  { approvals, events, grants }: RunStore,
  runId: string,
  agent: AgentPath,
  { id, request }: PendingInterrupt,
  { now, deadlineMs }: { now: number; deadlineMs: number | undefined },
): void {
  for (const approval of approvalsOf(runId, id, agent, request, { now, deadlineMs })) {
    if (!approvals.add(approval)) continue;
    events.append(runId, requestedEntry(approval), now);
    const grant = grants.find(approval);
    if (grant === undefined) continue;
    const by = sameAs(grant.approvalId);
    approvals.decide(approval, { type: "approve" }, by, now);
    events.append(runId, decidedEntry(approval, "approve", by), now);
  }
}

/**
 * Withdraws what a subagent that has ended, and those that it started, have asked; false: there was nothing.
 * Belongs inside a transaction.
 */
export function withdrawOf(store: RunStore, runId: string, agent: AgentPath, now: number): boolean {
  if (store.approvals.pendingOf(runId) === 0) return false;
  const all = store.approvals.ofRun(runId);
  const others = all.filter((approval) => !isWithin(agent, approval.agent));
  if (others.length === all.length) return false;
  const open = others.map(({ interruptId }) => interruptId);
  store.withdraw(runId, "agent", now, open);
  return true;
}
