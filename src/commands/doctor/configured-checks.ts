import { openMcpTools } from "../../agent/mcp-tools/open-mcp-tools.ts";
import { modelChoice } from "../../agent/models/choose.ts";
import { packageVersion } from "../../config/package-info.ts";
import type { Config } from "../../config/schema.ts";
import { silentLogger } from "../../core/logger.ts";
import type { Check } from "./checks.ts";

/** The models besides the main one; looks at names and variables only. */
export function checkOtherModels(
  { fallbackModels, subagents }: Pick<Config, "fallbackModels" | "subagents">,
  env: NodeJS.ProcessEnv,
): Check[] {
  const used = [
    ...fallbackModels.map((model) => ({ model, by: "fallback" })),
    ...subagents.flatMap(({ name, model }) => (model === undefined ? [] : [{ model, by: `of ${name}` }])),
  ];
  return used.map(({ model, by }) => {
    const choice = modelChoice({ model, env, lendable: true });
    return {
      name: "Model",
      ok: choice.ok,
      text: choice.ok ? `${choice.spec} (${by})` : `${by}: ${choice.message}`,
    };
  });
}

/** Starts every other MCP server, asks for its tools and ends it. */
export async function checkMcpServers(
  { mcpServers }: Pick<Config, "mcpServers">,
  env: NodeJS.ProcessEnv,
): Promise<Check[]> {
  const mcp = openMcpTools(mcpServers, { env, version: packageVersion(), log: silentLogger });
  try {
    const { tools, gated, problems } = await mcp.forAgent(() => true);
    return Object.keys(mcpServers).map((server) => {
      const problem = problems.find((found) => found.server === server);
      if (problem)
        return { name: "MCP server", ok: false, text: `${server} is not available: ${problem.reason}` };
      const own = (name: string): boolean => name.startsWith(`${server}__`);
      const asked = gated.filter(own).length;
      const all = tools.filter(({ name }) => own(name)).length;
      return {
        name: "MCP server",
        ok: true,
        text: `${server}: ${all} tools, ${asked} of them with approval`,
      };
    });
  } finally {
    await mcp.close();
  }
}
