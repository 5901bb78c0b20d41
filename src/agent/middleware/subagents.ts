import { taskTool } from "../../tools/task.ts";
import { toAgentTool } from "../calls/agent-tool.ts";
import type { Middleware } from "../contracts.ts";
import { SUBAGENT_PROMPT } from "../definition/prompts.ts";
import { appendSystemPrompt } from "./middleware.ts";

/** Texts about delegating for the agent. */
export interface DelegationOptions {
  /** Replaces the built-in text in the system prompt; `null`: none. */
  systemPrompt?: string | null;
  /** Replaces the description of `task`; `{available_agents}` in it stands for the list of subagents. */
  taskDescription?: string;
}

/** Delegation: the `task` tool and how to use it. */
export function subagentMiddleware(
  subagents: ReadonlyArray<{ name: string; description: string }>,
  { systemPrompt = SUBAGENT_PROMPT, taskDescription }: DelegationOptions = {},
): Middleware {
  const description = taskDescription === undefined ? {} : { description: taskDescription };
  return {
    name: "SubAgentMiddleware",
    tools: [toAgentTool(taskTool({ subagents, ...description }))],
    wrapModelCall: (request, next) =>
      next(systemPrompt === null ? request : appendSystemPrompt(request, systemPrompt)),
  };
}
