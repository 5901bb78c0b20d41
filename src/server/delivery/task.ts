import type { Delivery } from "./session.ts";

/**
 * For 2026-07-28 clients with the Tasks extension: the call answers at once with the run as a task, and the
 * client polls it with `tasks/get`. The run is on disk already.
 */
export const taskDelivery: Delivery = {
  deliver: async ({ runs, principal, runId }) => {
    const view = await runs.view(principal, runId);
    if (view === undefined) throw new Error(`run ${runId} disappeared after it was started`);
    return { kind: "task", view };
  },
};
