/** Stands apart from `open-mcp-tools.ts`, which is loaded without LangChain. */
import { headOf } from "../../core/text.ts";
import type { Middleware } from "../contracts/middleware.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { type McpToolSet, leftOutText } from "./open-mcp-tools.ts";

/** A workspace can have any number of subagent files, and each can have problems. */
const MOST_NOTES = 20;

/**
 * Reports to the journal and to the model which servers' tools are missing, so that neither looks for them. `notes`
 * are further problems of tools, for the journal only.
 */
export function reportMissingTools(
  missing: Pick<McpToolSet, "problems" | "leftOut">,
  notes: readonly string[] = [],
): Middleware[] {
  const warnings = [
    ...missing.problems.map(
      ({ server, reason }) =>
        `The MCP server '${server}' is not available: ${reason}. The run continues without its tools.`,
    ),
    ...missing.leftOut.map(leftOutText),
    ...notes.slice(0, MOST_NOTES),
    ...(notes.length > MOST_NOTES
      ? [`${notes.length - MOST_NOTES} more problems of subagents are not shown here; \`doctor\` lists all.`]
      : []),
  ];
  if (warnings.length === 0) return [];
  const servers = missing.problems.map(({ server }) => server).join(", ");
  const tools = missing.leftOut.map(({ server, tool }) => `${tool} of ${server}`).join(", ");
  const note = [
    servers && `These MCP servers and their tools are not available now: ${servers}.`,
    tools && `These tools of MCP servers cannot be used: ${headOf(tools, 1000)}.`,
    (servers || tools) &&
      "Do as much as possible without them, and say in your answer what you needed them for.",
  ]
    .filter(Boolean)
    .join(" ");
  let isReported = false;
  return [
    {
      name: "McpServersMiddleware",
      wrapModelCall: async (request, next) => {
        if (!isReported) {
          isReported = true;
          for (const message of warnings) request.runtime.step.tell({ kind: "warning", message });
        }
        return next(note === "" ? request : appendSystemPrompt(request, note));
      },
    },
  ];
}
