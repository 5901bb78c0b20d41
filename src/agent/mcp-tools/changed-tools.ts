import { ALL_DECISIONS } from "../calls/answers.ts";
import type { AgentTool, Middleware } from "../contracts/middleware.ts";
import type { McpTools } from "./open-mcp-tools.ts";

/**
 * Adds the tools that servers offer while a run is at work: some unlock tools by a call. A tool that is gone stays, and
 * its calls fail. After notifications of changed tools, the next turn lists the tools once.
 */
export function changedTools(mcp: Pick<McpTools, "changes" | "forAgent">): Middleware {
  let seen = mcp.changes();
  let addTool: (tool: AgentTool) => boolean = () => false;
  const asked = new Set<string>();
  return {
    name: "McpChangedToolsMiddleware",
    followTools: (add) => (addTool = add),
    wrapModelCall: async (request, next) => {
      const count = mcp.changes();
      if (count === seen) return next(request);
      seen = count;
      const { tools, gated } = await mcp.forAgent();
      const added = tools.filter((tool) => addTool(tool));
      for (const { name } of added) if (gated.includes(name)) asked.add(name);
      return next({ ...request, tools: [...request.tools, ...added.map(({ offered }) => offered)] });
    },
    gate: async ({ toolCall }) =>
      asked.has(toolCall.name) ? { allowedDecisions: [...ALL_DECISIONS] } : undefined,
  };
}
