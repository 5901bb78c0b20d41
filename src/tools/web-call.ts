/** Parts of both tools for the web. */
import { WebProblem } from "../web/request.ts";
import { cancellable } from "./call.ts";
import { type ToolResult, toolError } from "./tool.ts";

/** Does the work of a tool. A problem with the web is its answer. */
export const webCall = (
  tool: string,
  signal: AbortSignal,
  work: () => Promise<ToolResult>,
): Promise<ToolResult> =>
  cancellable(tool, signal, async () => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof WebProblem)) throw error;
      return toolError(error.message, { code: error.code });
    }
  });
