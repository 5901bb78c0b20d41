import type { Approval, PersonDecision, RunView } from "../../runs/run.ts";
import { oneLine } from "../../core/text.ts";
import { decisionOf } from "../approval-form.ts";
import { pendingApprovals } from "../run-report.ts";
import type { DeliverySession } from "./session.ts";

/** Nobody has read a form and refused it in less time than this, in milliseconds. */
const READING_TIME = 1000;

/** Whose answer it is, and of which run. */
export type Decider = Pick<DeliverySession, "runs" | "principal" | "runId" | "logger"> &
  Partial<Pick<DeliverySession, "notes">>;

/** What a client sent back for a form. */
export interface FormResponse {
  action: "accept" | "decline" | "cancel";
  content?: unknown;
}

export type Taken =
  | { kind: "decided" }
  /** The approval stays open and is not asked again in this call. */
  | { kind: "left" }
  /** The person answered, but not in a way that can be carried out. */
  | { kind: "again"; problem: string };

/**
 * Carries out the answer to one form. Only an accepted form decides as it says; a decline rejects; silence,
 * a closed form and a client that refuses by itself, faster than anyone can read, leave the approval open.
 */
export async function takeAnswer(
  session: Decider,
  approval: Approval,
  response: FormResponse,
  { elapsed, by }: { elapsed: number; by: string },
): Promise<Taken> {
  if (response.action === "cancel") return { kind: "left" };
  if (response.action === "decline") {
    if (elapsed < READING_TIME) return { kind: "left" };
    const taken = await decide(session, approval, { type: "reject", message: "declined by the user" }, by);
    return taken.kind === "again" ? { kind: "left" } : taken;
  }
  const answer = decisionOf(approval, response.content);
  return answer.ok
    ? decide(session, approval, answer.decision, by)
    : { kind: "again", problem: answer.problem };
}

async function decide(
  session: Decider,
  approval: Approval,
  decision: PersonDecision,
  by: string,
): Promise<Taken> {
  const { runs, principal, runId, logger, notes } = session;
  const outcome = await runs.decide(principal, runId, approval.id, decision, by);
  if (outcome.ok ? outcome.repeated : outcome.code === "already_decided") {
    logger.info("approval.already_decided", { runId, approvalId: approval.id });
  }
  if (!outcome.ok && outcome.code === "already_decided") {
    notes?.push(`The user's answer to ${oneLine(approval.tool, 64)} was not used. ${outcome.message}`);
  }
  // Somebody was faster, or the run ended while the person was reading: there is nothing left to decide.
  if (outcome.ok || outcome.code === "already_decided" || outcome.code === "not_found") {
    return { kind: "decided" };
  }
  return { kind: "again", problem: outcome.message };
}

/** Approvals that this call can still ask for. */
export function askable(view: RunView, left: ReadonlySet<string>): Approval[] {
  return pendingApprovals(view).filter((approval) => !left.has(approval.id));
}
