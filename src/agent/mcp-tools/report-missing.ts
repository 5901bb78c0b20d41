/** Stands apart from `open-mcp-tools.ts`, which is loaded without LangChain. */
import type { Middleware } from "../contracts.ts";
import { agentPath, emit } from "../engine/task-context.ts";
import { appendSystemPrompt } from "../middleware/middleware.ts";
import type { McpToolSet } from "./open-mcp-tools.ts";

/**
 * Reports to the journal and to the model which servers' tools are missing, so that neither looks for them. `notes`
 * are further problems of tools, for the journal only.
 */
export function reportMissingTools(
  problems: McpToolSet["problems"],
  notes: readonly string[] = [],
): Middleware[] {
  const warnings = [
    ...problems.map(
      ({ server, reason }) =>
        `The MCP server '${server}' is not available: ${reason}. The run goes on without its tools.`,
    ),
    ...notes,
  ];
  if (warnings.length === 0) return [];
  let isReported = false;
  return [
    {
      name: "McpServersMiddleware",
      wrapModelCall: async (request, next) => {
        if (!isReported) {
          isReported = true;
          const agent = agentPath(request.runtime);
          for (const message of warnings) emit(request.runtime, { kind: "warning", agent, message });
        }
        return next(problems.length === 0 ? request : appendSystemPrompt(request, noteOn(problems)));
      },
    },
  ];
}

function noteOn(problems: McpToolSet["problems"]): string {
  const names = problems.map(({ server }) => server).join(", ");
  return `These MCP servers are not available now, and neither are their tools: ${names}. Do what can be done without them, and say in your answer what they would have been needed for.`;
}
