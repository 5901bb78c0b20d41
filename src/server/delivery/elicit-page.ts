import { randomUUID } from "node:crypto";
import type { Approval } from "../../runs/run.ts";
import { askable } from "./answers.ts";
import { allDecided, pageMessage } from "./page-request.ts";
import { follow, gathered, hasNews, isOver, type Delivery, type DeliverySession } from "./session.ts";

/**
 * For 2025-era clients that open addresses and show no forms: the call stays open while the person decides on
 * the local page. That the client opened it decides nothing.
 */
export const elicitPageDelivery: Delivery = {
  deliver: async (session) => {
    const left = new Set<string>();
    for (;;) {
      const news = await follow(session, hasNews(session));
      const view = await gathered(session, news, askable(news, left));
      const open = askable(view, left);
      if (open.length === 0 || isOver(session)) return { kind: "run", view };
      const link = await session.pageLink();
      if (link === undefined) return { kind: "run", view };
      if (!(await decidedOnPage(session, open, link))) for (const { id } of open) left.add(id);
    }
  },
};

/** Whether all of `open` were decided while the call waited. */
async function decidedOnPage(session: DeliverySession, open: Approval[], link: string): Promise<boolean> {
  const { context, runId, deadline, clock, logger } = session;
  const elicitationId = randomUUID();
  const prompt = new AbortController();
  const refused = new AbortController();
  const decided = allDecided(open);
  const following = follow(session, decided, { signal: refused.signal }).finally(() => prompt.abort());
  const opened = await context.mcpReq
    .elicitInput(
      { mode: "url", message: pageMessage(runId, open), url: link, elicitationId },
      {
        timeout: Math.max(deadline - clock(), 1),
        signal: prompt.signal,
        relatedRequestId: context.mcpReq.id,
      },
    )
    .then(({ action }) => action === "accept")
    .catch((error: unknown) => {
      logger.debug("approval.not_answered", { runId, error });
      return false;
    });
  if (!opened) refused.abort();
  const isDecided = decided(await following);
  if (isDecided) {
    await context.mcpReq
      .notify({ method: "notifications/elicitation/complete", params: { elicitationId } })
      .catch((error: unknown) => logger.debug("elicitation.not_completed", { runId, error }));
  }
  return isDecided;
}
