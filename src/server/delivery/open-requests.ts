import { LONGEST_TIMER_MS } from "../../core/clock.ts";
import type { Approval } from "../../runs/run.ts";
import { approvalForm, type FormPlace } from "../approval-form.ts";
import { refuseAnswer, type Taken, takeAnswer } from "./answers.ts";
import { type DeliverySession, isOver } from "./session.ts";

/** A form that is with the person. */
export interface OpenForm {
  /** The outcome of the answer, once it is carried out; `undefined`: none came, for whatever reason. */
  readonly taken: Promise<Taken | undefined>;
  /** Takes the form back. */
  close(): void;
}

/**
 * What a client of the 2025 era was asked and has not answered yet. It outlives the call that asked: what a person
 * answers when the call's window has closed counts, and a later call waits for the same answer.
 */
export class OpenRequests {
  readonly #forms = new Map<string, OpenForm>();
  /** Model calls that the client's model works on. */
  readonly models = new Set<string>();

  /** The form of an approval: the one that is open already, or a new one. */
  form(session: DeliverySession, approval: Approval, place: FormPlace): OpenForm {
    const key = `${approval.runId}/${approval.id}`;
    const known = this.#forms.get(key);
    if (known !== undefined) return known;
    const form = new AbortController();
    const taken = show(session, approval, place, form)
      .catch((error: unknown) => {
        session.logger.warn("approval.not_taken", { runId: approval.runId, approvalId: approval.id, error });
        return undefined;
      })
      .finally(() => this.#forms.delete(key));
    const open = { taken, close: () => form.abort() };
    this.#forms.set(key, open);
    return open;
  }
}

/** Shows the form until it is answered, or its approval is decided elsewhere, and carries out the answer. */
async function show(
  session: DeliverySession,
  approval: Approval,
  place: FormPlace,
  form: AbortController,
): Promise<Taken | undefined> {
  const { context, runId, clock, logger } = session;
  const asked = clock();
  const answered = context.mcpReq
    .elicitInput(approvalForm(approval, place), {
      timeout: LONGEST_TIMER_MS,
      signal: form.signal,
      // Without it the form would not travel on the stream of this call.
      relatedRequestId: context.mcpReq.id,
    })
    .catch((error: unknown) => {
      logger.debug("approval.not_answered", { runId, approvalId: approval.id, error });
      return undefined;
    });
  const settled = whilePending(session, approval, form.signal);
  const response = await Promise.race([answered, settled]).finally(() => form.abort());
  if (response === undefined) return undefined;
  const taken = await takeAnswer(session, approval, response, { elapsed: clock() - asked, by: BY });
  // The call that would show the form again has ended.
  if (taken.kind === "again" && isOver(session)) await refuseAnswer(session, taken.problem, BY);
  return taken;
}

const BY = "elicitation";

/** Resolves when the approval waits for nobody any more. */
async function whilePending(
  { runs, principal, runId, seen }: DeliverySession,
  { id }: Approval,
  signal: AbortSignal,
): Promise<undefined> {
  for await (const { kind } of runs.watch(principal, runId, { after: seen, signal })) {
    if (kind !== "approval_decided") continue;
    const view = await runs.view(principal, runId);
    if (!view?.approvals.some((approval) => approval.id === id && approval.status === "pending")) return;
  }
}
