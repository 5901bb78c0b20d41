/** Small layers: tools of planning and delegation with the texts about them, and the goal. */
import { defined } from "../../core/unknown.ts";
import { backgroundTaskTools } from "../../tools/background-tasks.ts";
import { listedTypes, taskTool } from "../../tools/task.ts";
import { toolError } from "../../tools/tool.ts";
import { writeTodosTool } from "../../tools/write-todos.ts";
import { specTool } from "../calls/tool.ts";
import type { Middleware } from "../contracts/middleware.ts";
import { goalPrompt } from "../messages/goal-texts.ts";
import { callsOf, isReply } from "../messages/messages.ts";
import { PROMPTS } from "../messages/prompts.ts";
import { warnOnce } from "./compose.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";

/** Planning: the `write_todos` tool and how to use it. */
export function todoListMiddleware(): Middleware {
  const tool = specTool(writeTodosTool);
  return {
    name: "TodoListMiddleware",
    tools: [tool],
    wrapModelCall: (request, next) => next(appendSystemPrompt(request, PROMPTS.planning)),
    wrapCall: async (request, next) => {
      if (request.toolCall.name !== tool.name) return next(request);
      const calls = callsOf(request.state.messages.findLast(isReply));
      if (calls.filter(({ name }) => name === tool.name).length <= 1) return next(request);
      return toolError(
        "The write_todos tool must be called at most once per reply; the list was not changed.",
      );
    },
  };
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
  { systemPrompt = PROMPTS.delegating, taskDescription, folders }: DelegationOptions = {},
  room?: number,
): Middleware {
  const listed = listedTypes({ subagents, room }).shown.length;
  const warn = warnOnce();
  return {
    name: "SubAgentMiddleware",
    tools: [specTool(taskTool({ subagents, room, folders, ...defined({ description: taskDescription }) }))],
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

/** Adds the criteria that the agent's work is judged by. */
export const goalMiddleware = (criteria: readonly string[]): Middleware => ({
  name: "GoalMiddleware",
  wrapModelCall: (request, next) => {
    const closing = request.closingPrompt === undefined ? "" : `${request.closingPrompt}\n\n`;
    return next({ ...request, closingPrompt: closing + goalPrompt(criteria) });
  },
});
