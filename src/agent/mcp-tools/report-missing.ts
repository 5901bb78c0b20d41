import type { Middleware } from "../middleware/middleware.ts";
import { appendSystemPrompt } from "../middleware/middleware.ts";
import { agentPath, emit } from "../step.ts";
import type { McpToolSet } from "./open-mcp-tools.ts";

/** Tells the journal and the model which servers' tools are missing, so that neither looks for them. */
export function reportMissingServers(problems: McpToolSet["problems"]): Middleware[] {
  if (problems.length === 0) return [];
  const names = problems.map(({ server }) => server).join(", ");
  const note = `These MCP servers are not available now, and neither are their tools: ${names}. Do what can be done without them, and say in your answer what they would have been needed for.`;
  let told = false;
  return [
    {
      name: "McpServersMiddleware",
      wrapModelCall: async (request, next) => {
        if (!told) {
          told = true;
          for (const { server, reason } of problems) {
            const message = `The MCP server '${server}' is not available: ${reason}. The run goes on without its tools.`;
            emit(request.runtime, { kind: "warning", agent: agentPath(request.runtime), message });
          }
        }
        return next(appendSystemPrompt(request, note));
      },
    },
  ];
}
