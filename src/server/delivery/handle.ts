import { pendingApprovals } from "../run-report.ts";
import { follow, gathered, hasNews, type Delivery } from "./session.ts";

/**
 * For clients that cannot show a form: waits for the end of the run or for approvals, and gives what there
 * is when the window closes. The run goes on, and `check_deep_agent` finds it.
 */
export const handleDelivery: Delivery = {
  deliver: async (session) => {
    const view = await follow(session, hasNews(session));
    return { kind: "run", view: await gathered(session, view, pendingApprovals(view)) };
  },
};
