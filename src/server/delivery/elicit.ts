/** Deliveries that push questions while the call is open: with forms, or on the local page. */
import { randomUUID } from "node:crypto";
import { type RunView, type RunRequest, waitingIn } from "../../runs/run.ts";
import { allDecided, askable, isUnread, pageMessage, placeOf } from "./answers.ts";
import type { Delivery, DeliverySession } from "./session.ts";
import { follow, gathered, hasNews, isOver, openForm } from "./session.ts";

/** Maximum number of times that one form is shown, if its answers cannot be carried out. */
const MAX_ATTEMPTS = 5;

/**
 * Keeps the call open and pushes forms to the client, one at a time. A form that is still open when the window
 * closes stays with the person, and its answer counts. For a client that does not count the time while a form is
 * open, the window closes that much later.
 */
export const elicitDelivery: Delivery = async (session) => {
  const left = new Set<string>();
  for (;;) {
    const view = await follow(session, hasNews(session));
    const [first] = askable(view, left, session);
    if (first === undefined || isOver(session)) return { kind: "run", view };
    if (!(await askUntilAnswered(session, first, view))) left.add(first.id);
  }
};

/** Asks until there is an answer. Resolves to false if it is still pending at the end of the attempts. */
async function askUntilAnswered(session: DeliverySession, waiting: RunRequest, view: RunView) {
  const { total } = placeOf(waiting, waitingIn(view));
  let problem: string | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !isOver(session); attempt += 1) {
    const taken = await ask(session, waiting, total, problem);
    if (taken === undefined) {
      const now = await session.runs.read.view(session.runId);
      return now === undefined || allDecided([waiting])(now);
    }
    if (taken.kind !== "again") return taken.kind === "decided";
    problem = taken.problem;
  }
  return false;
}

/**
 * Shows the form, or waits for the open one, and keeps reporting the progress of the run. Returns undefined if
 * no answer arrives within the window, or one elsewhere.
 */
async function ask(session: DeliverySession, waiting: RunRequest, total: number, problem?: string) {
  const { context, runId, pausesForForms, deps } = session;
  const opened = deps.monotonic();
  const place = { runId, position: 1, total, ...(problem === undefined ? {} : { problem }) };
  const form = openForm(session, waiting, place);
  const answered = new AbortController();
  const taken = form.taken.finally(() => answered.abort());
  await follow(session, allDecided([waiting]), {
    until: pausesForForms ? Infinity : session.deadline,
    signal: answered.signal,
  });
  if (context.mcpReq.signal.aborted) form.close();
  if (pausesForForms) session.deadline += deps.monotonic() - opened;
  return answered.signal.aborted ? taken : undefined;
}

/**
 * Keeps the call open while the person answers on the local page, for clients that open addresses and show no
 * forms. Opening the page decides nothing.
 */
export const elicitPageDelivery: Delivery = async (session) => {
  const left = new Set<string>();
  for (;;) {
    const news = await follow(session, hasNews(session));
    const view = await gathered(session, news, askable(news, left, session));
    const open = askable(view, left, session);
    const link = open.length === 0 || isOver(session) ? undefined : await session.pageLink();
    if (link === undefined) return { kind: "run", view };
    if (!(await decidedOnPage(session, open, link))) for (const { id } of open) left.add(id);
  }
};

/** Resolves to true if all of `open` were answered while the call waited. */
async function decidedOnPage(session: DeliverySession, open: RunRequest[], link: string): Promise<boolean> {
  const { context, runId, deadline, logger } = session;
  const clock = session.deps.monotonic;
  const elicitationId = randomUUID();
  const prompt = new AbortController();
  const refused = new AbortController();
  const decided = allDecided(open);
  const following = follow(session, decided, { signal: refused.signal }).finally(() => prompt.abort());
  const asked = clock();
  const action = await context.mcpReq
    .elicitInput(
      { mode: "url", message: pageMessage(runId, open), url: link, elicitationId },
      {
        timeout: Math.max(deadline - clock(), 1),
        signal: prompt.signal,
        relatedRequestId: context.mcpReq.id,
      },
    )
    .then((response) => {
      if (isUnread(response, clock() - asked)) for (const one of open) session.open.refusedUnread(one);
      return response.action;
    })
    .catch((error: unknown) => {
      logger.debug("question.not_answered", { runId, error });
      return "cancel";
    });
  if (action !== "accept") refused.abort();
  const isDecided = decided(await following);
  if (isDecided)
    await context.mcpReq
      .notify({ method: "notifications/elicitation/complete", params: { elicitationId } })
      .catch((error: unknown) => logger.debug("elicitation.not_completed", { runId, error }));
  return isDecided;
}
