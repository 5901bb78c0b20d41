import type { ToolMessage } from "@langchain/core/messages";
import { type Command, isGraphBubbleUp } from "@langchain/langgraph";
import type { ToolHandler } from "./middleware/middleware.ts";

export type Outcome = ToolMessage | Command;

/**
 * Keeps wrappers from taking a pause for an error, as those that retry do: once `handler` has stopped to
 * ask a person, it stays stopped, and so does whatever is made of that.
 */
export function keepingPauses(inner: ToolHandler): {
  handler: ToolHandler;
  settled: (work: Promise<Outcome>) => Promise<Outcome>;
} {
  let pause: { error: unknown } | undefined;
  const check = (): void => {
    if (pause) throw pause.error;
  };
  return {
    handler: async (request) => {
      check();
      try {
        return await inner(request);
      } catch (error) {
        if (isGraphBubbleUp(error)) pause = { error };
        throw error;
      }
    },
    settled: (work) => work.finally(check),
  };
}
