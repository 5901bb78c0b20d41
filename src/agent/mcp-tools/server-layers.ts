/** Layers for agents with tools of other MCP servers. Apart from `open-mcp-tools.ts`, which is loaded without LangChain. */
import { headOf, fill } from "../../core/text.ts";
import { ALL_DECISIONS } from "../calls/permissions.ts";
import type { AgentTool, Middleware } from "../contracts/middleware.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { type McpToolSet, type McpTools, leftOutText } from "./open-mcp-tools.ts";
import { offeredName } from "./server-config.ts";
import texts from "./texts.json" with { type: "json" };

/**
 * Makes layers that add the tools which servers offer while a run is at work: some unlock tools by a call. A tool that
 * is gone stays, and its calls fail. After notifications of changed tools, the next turn of an agent lists them, once
 * for all agents. `choose` selects the tools of one agent.
 */
export function changedTools(mcp: Pick<McpTools, "changes" | "forAgent">) {
  const first = mcp.changes();
  let last: { count: number; set: Promise<McpToolSet> } | undefined;
  return (choose = (tools: readonly AgentTool[]): readonly AgentTool[] => tools): Middleware => {
    let seen = first;
    // A fork has the layers of its agent.
    const agents: ((tool: AgentTool) => boolean)[] = [];
    const asked = new Set<string>();
    return {
      name: "McpChangedToolsMiddleware",
      followTools: (add) => void agents.push(add),
      wrapModelCall: async (request, next) => {
        const count = mcp.changes();
        if (count === seen) return next(request);
        seen = count;
        if (last?.count !== count) last = { count, set: mcp.forAgent() };
        const { tools, gated } = await last.set;
        const isGated = new Set(gated);
        const added = choose(tools).filter((tool) => agents.filter((add) => add(tool)).length > 0);
        for (const { name } of added) if (isGated.has(name)) asked.add(name);
        return next({ ...request, tools: [...request.tools, ...added.map(({ offered }) => offered)] });
      },
      gate: async ({ toolCall }) =>
        asked.has(toolCall.name) ? { allowedDecisions: [...ALL_DECISIONS] } : undefined,
    };
  };
}

/** Characters of one server, as in Claude Code 2.1, and of all servers. */
const MOST = { server: 4096, all: 12_000 };

/** Shows the model the instructions of the servers whose tools it has. `tools`: those of the agent. */
export function serverInstructions(
  said: McpToolSet["instructions"],
  tools: readonly { name: string }[],
): Middleware[] {
  let left = MOST.all;
  const blocks = said.flatMap(({ server, text }) => {
    if (left === 0 || !tools.some(({ name }) => name.startsWith(offeredName(server, "")))) return [];
    const most = Math.min(MOST.server, left);
    left = Math.max(0, left - text.length);
    const cut = text.length > most ? `\n[cut after ${most} characters]` : "";
    const shown = headOf(text, most).replaceAll(/<(?=\/?mcp_server\b)/gi, "&lt;");
    return [`<mcp_server name="${server}">\n${shown}${cut}\n</mcp_server>`];
  });
  if (blocks.length === 0) return [];
  const prompt = [texts.serverInstructions, ...blocks].join("\n\n");
  const wrapModelCall: Middleware["wrapModelCall"] = (request, next) =>
    next(appendSystemPrompt(request, prompt));
  return [{ name: "McpInstructionsMiddleware", wrapModelCall }];
}

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
    ...missing.problems.map(({ server, reason }) => fill(texts.unavailableServer, server, reason)),
    ...missing.leftOut.map(leftOutText),
    ...notes.slice(0, MOST_NOTES),
  ];
  if (warnings.length === 0) return [];
  const more = notes.length - MOST_NOTES;
  if (more > 0) warnings.push(`${more} more problems of subagents are not shown here; \`doctor\` lists all.`);
  const servers = missing.problems.map(({ server }) => server).join(", ");
  const tools = missing.leftOut.map(({ server, tool }) => `${tool} of ${server}`).join(", ");
  const note = [
    servers && `These MCP servers and their tools are not available now: ${servers}.`,
    tools && `These tools of MCP servers cannot be used: ${headOf(tools, 1000)}.`,
    (servers || tools) && texts.withoutServers,
  ]
    .filter(Boolean)
    .join(" ");
  const wrapModelCall: Middleware["wrapModelCall"] = async (request, next) => {
    for (const message of warnings.splice(0)) request.runtime.step.tell({ kind: "warning", message });
    return next(note === "" ? request : appendSystemPrompt(request, note));
  };
  return [{ name: "McpServersMiddleware", wrapModelCall }];
}
