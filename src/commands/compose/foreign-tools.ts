import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { DeepAgentParams, InterruptOn, SubAgent } from "../../agent/agent.ts";
import type { AgentTool } from "../../agent/contracts.ts";
import { type ToolOffer, type ToolWishes, chooseTools } from "../../agent/definition/agent-files.ts";
import type { McpToolSet, McpTools } from "../../agent/mcp-tools/open-mcp-tools.ts";
import { reportMissingTools } from "../../agent/mcp-tools/report-missing.ts";
import { LazyModel } from "../../agent/models/resolve.ts";
import type { Logger } from "../../core/logger.ts";

/** A subagent, with the tools it may use by name. */
type SubagentConfig = Omit<SubAgent, "tools"> & ToolWishes;

const NOTHING: McpToolSet = { tools: [], gated: [], problems: [] };

export interface OwnParts {
  interruptOn: InterruptOn;
  subagents: readonly SubagentConfig[];
  /** Names of the configured MCP servers. */
  servers: readonly string[];
  log: Logger;
}

/** What the other MCP servers add to an agent with these gates and subagents. */
export async function withForeignTools(
  mcp: McpTools | undefined,
  model: string | BaseChatModel,
  own: OwnParts,
): Promise<Required<Pick<DeepAgentParams, "tools" | "middleware" | "interruptOn" | "subagents">>> {
  const media = new LazyModel(model);
  const offers = await mcp?.forAgent((mimeType) => media.acceptsMedia(mimeType));
  const { tools, gated, problems } = offers ?? NOTHING;
  const gatesOf = (offered: readonly AgentTool[]): InterruptOn => {
    const names = new Set(offered.map(({ name }) => name));
    const asked = gated.filter((name) => names.has(name));
    return { ...own.interruptOn, ...Object.fromEntries(asked.map((name) => [name, true])) };
  };
  const offer: ToolOffer = { tools, servers: own.servers, missing: problems.map(({ server }) => server) };
  const warnings: string[] = [];
  const subagents = own.subagents.map(({ tools: _names, disallowedTools, isFile, ...subagent }): SubAgent => {
    const chosen = chooseTools({ name: subagent.name, tools: _names, disallowedTools, isFile }, offer);
    warnings.push(...chosen.notes.map(({ text }) => text));
    return {
      ...subagent,
      ...(chosen.tools ? { tools: chosen.tools, interruptOn: gatesOf(chosen.tools) } : {}),
      ...(chosen.fileTools ? { filesystem: { tools: chosen.fileTools } } : {}),
    };
  });
  // Without servers nobody works: what was asked for is only read.
  const notes = offers === undefined ? [] : warnings;
  for (const problem of notes) own.log.warn("subagent_tool_not_as_named", { problem });
  return { tools, middleware: reportMissingTools(problems, notes), interruptOn: gatesOf(tools), subagents };
}
