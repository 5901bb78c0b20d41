import type { Middleware } from "../contracts/middleware.ts";
import { goalPrompt } from "../messages/goal-texts.ts";

/** Tells the agent the criteria that its work is judged by. */
export function goalMiddleware(criteria: readonly string[]): Middleware {
  const prompt = goalPrompt(criteria);
  return {
    name: "GoalMiddleware",
    wrapModelCall: (request, next) => {
      const closing = request.closingPrompt === undefined ? [] : [request.closingPrompt];
      return next({ ...request, closingPrompt: [...closing, prompt].join("\n\n") });
    },
  };
}
