/** Checks other MCP servers, whose tools the agent may use. */
import { leftOutText } from "../../agent/mcp-tools/open-mcp-tools.ts";
import type { Config } from "../../config/schema.ts";
import { silentLogger } from "../../core/logger.ts";
import { counted } from "../../tools/format.ts";
import { openOtherServers } from "../other-servers.ts";
import type { SharedConfig } from "../shared-folders.ts";
import { webOf } from "../web.ts";
import { checkSubagentTools } from "./agent-files.ts";
import type { Check, Facts } from "./check.ts";

/** Starts each server, asks for its tools and ends it; then finds subagents that name tools which do not exist. */
export async function checkTools(
  config: SharedConfig & Pick<Config, "dataDir" | "mcpServers" | "subagents" | "web">,
  env: Facts["env"],
): Promise<Check[]> {
  const mcp = openOtherServers(config, env, silentLogger);
  try {
    const offers = await mcp.forAgent();
    const servers = Object.keys(config.mcpServers);
    const web = webOf(config, env)?.tools ?? [];
    const missing = offers.problems.map(({ server }) => server);
    return [
      ...servers.map((server) => {
        const name = "MCP server";
        const problem = offers.problems.find((found) => found.server === server);
        if (problem) return { name, ok: false, text: `${server}: not running, no tools; ${problem.reason}` };
        const own = (name: string): boolean => name.startsWith(`${server}__`);
        const asked = offers.gated.filter(own).length;
        const all = offers.tools.filter(({ name }) => own(name)).length;
        const found = `${server}: running, ${counted(all, "tool")}, ${asked} of them with approval`;
        const missing = offers.leftOut.filter((tool) => tool.server === server).map(leftOutText);
        const detours = offers.notes.flatMap((note) => (note.server === server ? [note.text] : []));
        return { name, ok: all > 0, text: [found, ...missing, ...detours].join("\n") };
      }),
      ...(await checkSubagentTools(config, { tools: offers.tools, servers, missing, web })),
    ];
  } finally {
    await mcp.close();
  }
}
