import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const args = z.object({
  task: z.string().describe("What the agent should achieve"),
  context: z.string().optional().describe("Facts it cannot see: decisions, constraints, where to look"),
  result: z.string().optional().describe("Form of the result, such as a report with file:line references"),
});

/** Prompts that users pick in their client. */
export function registerPrompts(mcp: McpServer): void {
  mcp.registerPrompt(
    "delegate",
    {
      title: "Delegate a task",
      description: "Hands a task over to a deep agent with everything it needs.",
      argsSchema: args,
    },
    (given) => ({
      description: "Delegate a task to a deep agent",
      messages: [{ role: "user", content: { type: "text", text: delegation(given) } }],
    }),
  );
}

function delegation({ task, context, result }: z.output<typeof args>): string {
  return [
    "Delegate this task with run_deep_agent.",
    "",
    `Task: ${task}`,
    ...(context ? [`Context: ${context}`] : []),
    ...(result ? [`Result: ${result}`] : []),
    "",
    "The agent sees the files under /workspace/ and its memories, but nothing of this conversation. Write the " +
      "task argument so that it stands alone: the goal, the facts and constraints known here, what is out of " +
      "scope, and the form of the result.",
    "If you get a run_id instead of an answer, call check_deep_agent until the run has ended. When it waits " +
      "for approval, tell me what it wants to do; I decide.",
    "Then report the outcome and name the files that changed.",
  ].join("\n");
}
