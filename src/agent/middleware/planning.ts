/** Layers that bring the tools of planning and of delegation, and tell the model how to use them. */
import { AIMessage } from "@langchain/core/messages";
import { taskTool } from "../../tools/task.ts";
import { toolError } from "../../tools/tool.ts";
import { writeTodosTool } from "../../tools/write-todos.ts";
import { toAgentTool, toolOutcome } from "../calls/agent-tool.ts";
import type { AgentState, Middleware } from "../contracts.ts";
import { SUBAGENT_PROMPT, TODO_PROMPT } from "../definition/prompts.ts";
import { appendSystemPrompt } from "./middleware.ts";

const PARALLEL = "The write_todos tool must be called at most once per reply; the list was not changed.";

/** Planning: the `write_todos` tool and how to use it. */
export function todoListMiddleware(): Middleware {
  const tool = toAgentTool(writeTodosTool);
  return {
    name: "TodoListMiddleware",
    tools: [tool],
    wrapModelCall: (request, next) => next(appendSystemPrompt(request, TODO_PROMPT)),
    wrapToolCall: async (request, next) => {
      const { toolCall, state } = request;
      if (toolCall.name === tool.name && callsInReply(state, tool.name) > 1) {
        return toolOutcome(toolCall, toolError(PARALLEL));
      }
      return next(request);
    },
  };
}

function callsInReply(state: AgentState, name: string): number {
  const reply = state.messages.findLast((message) => AIMessage.isInstance(message));
  return AIMessage.isInstance(reply)
    ? (reply.tool_calls ?? []).filter((call) => call.name === name).length
    : 0;
}

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
