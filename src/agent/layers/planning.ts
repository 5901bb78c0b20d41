/** Layers that bring the tools of planning and of delegation, and tell the model how to use them. */
import { AIMessage } from "@langchain/core/messages";
import { backgroundTaskTools } from "../../tools/background-tasks.ts";
import { listedTypes, taskTool } from "../../tools/task.ts";
import { toolError } from "../../tools/tool.ts";
import { writeTodosTool } from "../../tools/write-todos.ts";
import { specTool } from "../calls/tool.ts";
import type { AgentState } from "../contracts/state.ts";
import type { Middleware } from "../contracts/middleware.ts";
import { SUBAGENT_PROMPT, TODO_PROMPT } from "../messages/prompts.ts";
import { warnOnce } from "./compose.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";

const PARALLEL = "The write_todos tool must be called at most once per reply; the list was not changed.";

/** Planning: the `write_todos` tool and how to use it. */
export function todoListMiddleware(): Middleware {
  const tool = specTool(writeTodosTool);
  return {
    name: "TodoListMiddleware",
    tools: [tool],
    wrapModelCall: (request, next) => next(appendSystemPrompt(request, TODO_PROMPT)),
    wrapCall: async (request, next) => {
      const isParallel = request.toolCall.name === tool.name && callsInReply(request.state, tool.name) > 1;
      return isParallel ? toolError(PARALLEL) : next(request);
    },
  };
}

function callsInReply(state: AgentState, name: string): number {
  const reply = state.messages.findLast((message) => AIMessage.isInstance(message));
  return AIMessage.isInstance(reply)
    ? (reply.tool_calls ?? []).filter((call) => call.name === name).length
    : 0;
}

/** The warning about entries that the prompt has no room for. */
export const unlisted = (entries: "skills" | "subagents", listed: number): string =>
  `The prompt has no room for all ${entries}: it lists ${listed} of them, and the agent can find the others in their folders. limits.listedCharacters sets the limit.`;

/** Texts about delegating for the agent. */
export interface DelegationOptions {
  /** Replaces the built-in text in the system prompt; `null`: none. */
  systemPrompt?: string | null;
  /** Replaces the description of `task`; `{available_agents}` in it stands for the list of subagents. */
  taskDescription?: string;
  /** Folders whose files describe subagents. The prompt names them if it has no room for all subagents. */
  folders?: readonly string[];
}

/** Delegation: the `task` tool and how to use it. `room`: characters for the list of subagents. */
export function subagentMiddleware(
  subagents: ReadonlyArray<{ name: string; description: string }>,
  { systemPrompt = SUBAGENT_PROMPT, taskDescription, folders }: DelegationOptions = {},
  room?: number,
): Middleware {
  const description = taskDescription === undefined ? {} : { description: taskDescription };
  const listed = listedTypes({ subagents, room }).shown.length;
  const warn = warnOnce();
  return {
    name: "SubAgentMiddleware",
    tools: [specTool(taskTool({ subagents, room, folders, ...description }))],
    wrapModelCall: (request, next) => {
      if (listed < subagents.length) warn(request, unlisted("subagents", listed));
      return next(systemPrompt === null ? request : appendSystemPrompt(request, systemPrompt));
    },
  };
}

/** Delegation to the background, for an agent whose runs outlive their steps. */
export const backgroundTasksMiddleware = (): Middleware => ({
  name: "BackgroundTasksMiddleware",
  tools: backgroundTaskTools.map((tool) => specTool(tool)),
});
