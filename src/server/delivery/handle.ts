import { follow, hasNews, type Delivery } from "./session.ts";

/**
 * For clients that cannot show a form: waits for the end of the run or for an approval, and gives what there
 * is when the window closes. The run goes on, and `check_deep_agent` finds it.
 */
export const handleDelivery: Delivery = {
  deliver: async (session) => ({ kind: "run", view: await follow(session, hasNews(session)) }),
};
