/** Asks people for approvals, and reads their answers. */
import { randomUUID } from "node:crypto";
import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import type { Logger } from "../../core/logger.ts";
import { defined } from "../../core/defined.ts";
import { oneLine } from "../../core/text.ts";
import type { Approval, PersonDecision, Principal, RunView } from "../../runs/run.ts";
import type { DecideOutcome, PrincipalRuns } from "../../runs/service.ts";
import {
  type FormPlace,
  agentLabel,
  approvalForm,
  deadlineText,
  decisionOf,
  isWholeInForm,
} from "../views/approval-form.ts";
import { asText } from "../views/quoting.ts";
import { pendingApprovals } from "../views/run-report.ts";

/** A refusal that comes sooner than this, in milliseconds, was not made by a person who read the form. */
const READING_TIME = 1000;

/** Identifies who answers, and for which run. */
export interface Decider {
  readonly runs: PrincipalRuns;
  readonly principal: Principal;
  readonly runId: string;
  readonly logger: Logger;
  /** Sentences that the result of the call puts before the state of the run. */
  readonly notes?: string[];
}

/** The answer that a client sent back for a form. */
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

/** The meaning of an answer: a decision, or the reason why it is none. */
export type Read = { kind: "decision"; decision: PersonDecision } | Exclude<Taken, { kind: "decided" }>;

/** True if a client refused by itself, faster than a person can read; `elapsed`: ms since the question. */
export const isUnread = ({ action }: FormResponse, elapsed: number): boolean =>
  action !== "accept" && elapsed < READING_TIME;

/**
 * Reads the answer to one form. Only an accepted form decides as it says; a decline rejects; silence, a closed
 * form and a client that refuses by itself, faster than anyone can read, leave the approval open.
 *
 * @param elapsed milliseconds since the form was shown
 */
export function readAnswer(approval: Approval, response: FormResponse, elapsed: number): Read {
  if (response.action === "cancel" || isUnread(response, elapsed)) return { kind: "left" };
  if (response.action === "decline") {
    return { kind: "decision", decision: { type: "reject", message: "declined by the user" } };
  }
  const answer = decisionOf(approval, response.content);
  return answer.ok
    ? { kind: "decision", decision: answer.decision }
    : { kind: "again", problem: answer.problem };
}

/** Carries out the answer to one form. */
export async function takeAnswer(
  session: Decider,
  approval: Approval,
  response: FormResponse,
  { elapsed, by }: { elapsed: number; by: string },
): Promise<Taken> {
  const read = readAnswer(approval, response, elapsed);
  if (read.kind !== "decision") return read;
  const { runs, principal, runId, notes = [] } = session;
  const outcome = await runs.decide(principal, runId, approval.id, read.decision, by);
  if (!outcome.ok && outcome.code === "already_decided") await refuseAnswer(session, "decided before", by);
  return takenBy(outcome, approval, response, { ...session, notes });
}

/** Records in the journal of an open run that an answer was not used, and why. */
export async function refuseAnswer(
  { runs, principal, runId }: Decider,
  problem: string,
  by: string,
): Promise<void> {
  await runs.useAnswer(principal, runId, {
    id: randomUUID(),
    problem,
    decisions: [],
    answers: [],
    replies: [],
    by,
  });
}

/** Interprets the outcome of a decision, and adds to `notes` what the call has to report. */
export function takenBy(
  outcome: DecideOutcome,
  approval: Approval,
  response: FormResponse,
  { logger, runId, notes }: Required<Pick<Decider, "logger" | "runId" | "notes">>,
): Taken {
  if (outcome.ok ? outcome.repeated : outcome.code === "already_decided") {
    logger.info("approval.already_decided", { runId, approvalId: approval.id });
  }
  if (!outcome.ok && outcome.code === "already_decided") {
    notes.push(`The user's answer to ${oneLine(approval.tool, 64)} was not used. ${outcome.message}`);
  }
  // Somebody was faster, or the run ended while the person was reading: there is nothing left to decide.
  if (outcome.ok || outcome.code === "already_decided" || outcome.code === "not_found") {
    return { kind: "decided" };
  }
  // A person who declined has nothing to correct.
  return response.action === "decline" ? { kind: "left" } : { kind: "again", problem: outcome.message };
}

/** Approvals that this call can still ask for. */
export function askable(
  view: RunView,
  left: ReadonlySet<string>,
  { open }: { open: { isPointless(approval: Approval): boolean } },
): Approval[] {
  return pendingApprovals(view).filter((approval) => !left.has(approval.id) && !open.isPointless(approval));
}

/** Places other than a form for a person to decide in. */
export interface Elsewhere {
  /** An address for the client alone, never for its model. `undefined`: no page can be served. */
  readonly pageLink: () => Promise<string | undefined>;
  /** A line to paste into a terminal; `undefined`: a terminal does not show the run. */
  readonly openCommand: string | undefined;
}

/** The form for an approval. Where it is too small for the call, it says where all of it is shown. */
export async function formFor(
  approval: Approval,
  place: FormPlace,
  { pageLink, openCommand }: Elsewhere,
): Promise<ElicitRequestFormParams> {
  if (isWholeInForm(approval)) return approvalForm(approval, place);
  const link = await pageLink();
  const elsewhere = link === undefined ? openCommand && `run ${openCommand} in a terminal` : `open ${link}`;
  return approvalForm(approval, { ...place, ...defined({ elsewhere }) });
}

/** Approvals that are listed by name; the page has all. */
const LISTED = 5;

/** Text for a person whose client is about to open the page, which alone decides. */
export function pageMessage(runId: string, approvals: readonly Approval[]): string {
  const lines = approvals
    .slice(0, LISTED)
    .flatMap((approval) => [
      `- ${asText(agentLabel(approval.agent))}, ${asText(approval.tool, 64)}: ${asText(approval.preview.summary)}`,
      ...deadlineText(approval),
    ]);
  const more = approvals.length - LISTED;
  return [
    `Run ${runId} waits for your decision. The page shows what would be done, and decides:`,
    ...lines,
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("\n");
}

/** True if none of these approvals is pending any more. */
export const allDecided =
  (approvals: readonly Pick<Approval, "id">[]) =>
  (view: RunView): boolean =>
    !view.approvals.some(
      ({ id, status }) => status === "pending" && approvals.some((open) => open.id === id),
    );
