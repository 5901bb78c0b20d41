import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { DeepAgentParams, InterruptOn, SubAgent } from "../../agent/agent-core.ts";
import type { AgentTool } from "../../agent/agent-tool.ts";
import { LazyModel } from "../../agent/lazy-model.ts";
import type { McpTools, McpToolSet } from "../../agent/mcp-tools/open-mcp-tools.ts";
import { reportMissingServers } from "../../agent/mcp-tools/report-missing.ts";
import type { Config } from "../../config/schema.ts";

/** A subagent, with the servers and tools it may use by name. */
type SubagentConfig = Omit<SubAgent, "tools"> & Pick<Config["subagents"][number], "tools">;

const NOTHING: McpToolSet = { tools: [], gated: [], problems: [] };

/** What the other MCP servers add to an agent with these gates and subagents. */
export async function withForeignTools(
  mcp: McpTools | undefined,
  model: string | BaseChatModel,
  own: { interruptOn: InterruptOn; subagents: readonly SubagentConfig[] },
): Promise<Required<Pick<DeepAgentParams, "tools" | "middleware" | "interruptOn" | "subagents">>> {
  const media = new LazyModel(model);
  const offers = await mcp?.forAgent((mimeType) => media.acceptsMedia(mimeType));
  const { tools, gated, problems } = offers ?? NOTHING;
  const gatesOf = (offered: readonly AgentTool[]): InterruptOn => {
    const names = new Set(offered.map(({ name }) => name));
    const asked = gated.filter((name) => names.has(name));
    return { ...own.interruptOn, ...Object.fromEntries(asked.map((name) => [name, true])) };
  };
  return {
    tools,
    middleware: reportMissingServers(problems),
    interruptOn: gatesOf(tools),
    subagents: own.subagents.map(({ tools: chosen, ...subagent }): SubAgent => {
      if (chosen === undefined) return subagent;
      const offered = tools.filter(({ name }) => isChosen(name, chosen));
      return { ...subagent, tools: offered, interruptOn: gatesOf(offered) };
    }),
  };
}

/** `chosen` names tools, or servers and with them all of their tools. */
function isChosen(name: string, chosen: readonly string[]): boolean {
  return chosen.some((choice) => name === choice || name.startsWith(`${choice}__`));
}
