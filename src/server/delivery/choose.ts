/** Chooses how the outcome of a run reaches a client, and holds the two deliveries that never ask. */
import type { ClientFacts } from "../protocol/client.ts";
import { pendingApprovals } from "../views/run-report.ts";
import { elicitDelivery, elicitPageDelivery } from "./elicit.ts";
import { inputRequiredDelivery } from "./input-required.ts";
import { type Delivery, follow, gathered, hasNews } from "./session.ts";

/**
 * Waits for the end of the run or for approvals, for clients that cannot show a form. Returns the current state
 * when the window closes; the run goes on, and `check_deep_agent` finds it.
 */
const handleDelivery: Delivery = {
  deliver: async (session) => {
    const view = await follow(session, hasNews(session));
    return { kind: "run", view: await gathered(session, view, pendingApprovals(view)) };
  },
};

/**
 * For clients with the Tasks extension: the call answers at once with the run as a task, and the
 * client polls it with `tasks/get`. The run is on disk already.
 */
const taskDelivery: Delivery = {
  deliver: async ({ runs, principal, runId }) => {
    const view = await runs.view(principal, runId);
    if (view === undefined) throw new Error(`run ${runId} disappeared after it was started`);
    return { kind: "task", view };
  },
};

export type DeliveryName = "task" | "input_required" | "elicit" | "elicit_page" | "handle";

export const DELIVERIES: Readonly<Record<DeliveryName, Delivery>> = {
  task: taskDelivery,
  input_required: inputRequiredDelivery,
  elicit: elicitDelivery,
  elicit_page: elicitPageDelivery,
  handle: handleDelivery,
};

/**
 * Chooses the best way for this client before anything is answered, by capability and never by name.
 * `asTask`: whether this call may answer with a task; `lends`: whether runs here ask for the client's model.
 */
export function chooseDelivery(
  client: Pick<ClientFacts, "revision" | "forms" | "page" | "tasks" | "models">,
  { asTask, lends }: DeliveryWishes,
): DeliveryName {
  const { revision, forms, page, tasks, models } = client;
  const serves = lends && models;
  if (asTask && tasks && revision.tasks) return "task";
  if (revision.asks === "input_required") return forms || page || serves ? "input_required" : "handle";
  if (forms) return "elicit";
  return page ? "elicit_page" : "handle";
}

export interface DeliveryWishes {
  asTask: boolean;
  lends: boolean;
}
