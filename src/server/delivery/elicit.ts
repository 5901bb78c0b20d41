import { LONGEST_TIMER_MS } from "../../core/clock.ts";
import type { Approval, RunView } from "../../runs/run.ts";
import { approvalForm } from "../approval-form.ts";
import { pendingApprovals } from "../run-report.ts";
import { askable, takeAnswer, type FormResponse } from "./answers.ts";
import { follow, hasNews, isOver, type Delivery, type DeliverySession } from "./session.ts";

/** How often one approval is shown again because its answer could not be carried out. */
const MAX_ATTEMPTS = 5;

/**
 * For 2025-era clients with forms: the call stays open while forms are pushed to the client, one at a time.
 * A form that is still open when the window closes is taken back; its approval waits on. For a client that does
 * not count the time meanwhile the window closes that much later.
 */
export const elicitDelivery: Delivery = {
  deliver: async (session) => {
    const left = new Set<string>();
    for (;;) {
      const view = await follow(session, hasNews(session));
      const [approval] = askable(view, left);
      if (approval === undefined || isOver(session)) return { kind: "run", view };
      if (!(await askUntilDecided(session, approval, view))) left.add(approval.id);
    }
  },
};

/** Whether the approval is decided now. */
async function askUntilDecided(
  session: DeliverySession,
  approval: Approval,
  view: RunView,
): Promise<boolean> {
  const total = pendingApprovals(view).length;
  let problem: string | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !isOver(session); attempt += 1) {
    const asked = session.clock();
    const response = await push(session, approval, total, problem);
    if (response === undefined) return !(await isPending(session, approval));
    const elapsed = session.clock() - asked;
    const taken = await takeAnswer(session, approval, response, { elapsed, by: "elicitation" });
    if (taken.kind !== "again") return taken.kind === "decided";
    problem = taken.problem;
  }
  return false;
}

/**
 * Shows the form, and goes on following the run meanwhile: progress continues, and a decision made
 * elsewhere takes the form back. `undefined`: no answer, for whatever reason.
 */
async function push(
  session: DeliverySession,
  approval: Approval,
  total: number,
  problem: string | undefined,
): Promise<FormResponse | undefined> {
  const { context, runId, pausesForForms, clock, logger } = session;
  const opened = clock();
  const until = pausesForForms ? Infinity : session.deadline;
  const place = { runId, position: 1, total, ...(problem === undefined ? {} : { problem }) };
  const form = new AbortController();
  const answered = new AbortController();
  const following = follow(session, (view) => !pendingApprovals(view).some(({ id }) => id === approval.id), {
    until,
    signal: answered.signal,
  }).finally(() => form.abort());
  const pushed = context.mcpReq
    .elicitInput(approvalForm(approval, place), {
      timeout: Math.min(Math.max(until - opened, 1), LONGEST_TIMER_MS),
      signal: form.signal,
      // Without it the form would not travel on the stream of this call.
      relatedRequestId: context.mcpReq.id,
    })
    .catch((error: unknown) => {
      logger.debug("approval.not_answered", { runId, approvalId: approval.id, error });
      return undefined;
    })
    .finally(() => answered.abort());
  const [response] = await Promise.all([pushed, following]);
  if (pausesForForms) session.deadline += clock() - opened;
  return response;
}

async function isPending({ runs, principal, runId }: DeliverySession, approval: Approval): Promise<boolean> {
  const view = await runs.view(principal, runId);
  return view?.approvals.some(({ id, status }) => id === approval.id && status === "pending") ?? false;
}
