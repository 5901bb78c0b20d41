import { taskTool } from "../../tools/task.ts";
import { toAgentTool } from "../agent-tool.ts";
import { SUBAGENT_PROMPT } from "../prompts.ts";
import { appendSystemPrompt, type Middleware } from "./middleware.ts";

/** Delegation: the `task` tool and how to use it. */
export function subagentMiddleware(
  subagents: ReadonlyArray<{ name: string; description: string }>,
): Middleware {
  return {
    name: "SubAgentMiddleware",
    tools: [toAgentTool(taskTool({ subagents }))],
    wrapModelCall: (request, next) => next(appendSystemPrompt(request, SUBAGENT_PROMPT)),
  };
}
