/** Checks other MCP servers, whose tools the agent may use. */
import { basename } from "node:path";
import { leftOutText } from "../../agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../agent/mcp-tools/server-config.ts";
import type { Config } from "../../config/schema.ts";
import { silentLogger } from "../../core/logger.ts";
import { parsedUrl } from "../../core/unknown.ts";
import { oneLine } from "../../core/text.ts";
import { counted } from "../../tools/format.ts";
import { openOtherServers } from "../other-servers.ts";
import type { SharedConfig } from "../file-tree.ts";
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
    const servers = Object.keys(config.mcpServers).filter((name) => !config.mcpServers[name]?.disabled);
    const web = webOf(config, env)?.tools ?? [];
    const missing = offers.problems.map(({ server }) => server);
    return [
      ...Object.entries(config.mcpServers).map(([server, entry]) => {
        const name = "MCP server";
        if (entry.disabled) return { name, ok: true, text: `${server}: switched off in its entry` };
        const understood = [entryWords(entry), ...(entry.notes ?? [])].filter(Boolean);
        const problem = offers.problems.find((found) => found.server === server);
        if (problem) {
          const text = `${server}: not running, no tools; ${problem.reason}`;
          return { name, ok: false, text: [text, ...understood].join("\n") };
        }
        const own = (name: string): boolean => name.startsWith(`${server}__`);
        const asked = offers.gated.filter(own).length;
        const all = offers.tools.filter(({ name }) => own(name)).length;
        const found = `${server}: running, ${counted(all, "tool")}, ${asked} of them with approval`;
        const missing = offers.leftOut.filter((tool) => tool.server === server).map(leftOutText);
        const detours = offers.notes.flatMap((note) => (note.server === server ? [note.text] : []));
        return { name, ok: all > 0, text: [found, ...understood, ...missing, ...detours].join("\n") };
      }),
      ...(await checkSubagentTools(config, { tools: offers.tools, servers, missing, web })),
    ];
  } finally {
    await mcp.close();
  }
}

/** Describes an entry in one line, by names and counts, because its values may be secrets. */
function entryWords(entry: McpServerConfig): string {
  if (entry.problem !== undefined) return "";
  const { tools, disabledTools, alwaysAllow, approve, timeout } = entry;
  const own = "url" in entry ? { headers: Object.keys(entry.headers) } : { env: Object.keys(entry.env) };
  const what =
    "url" in entry
      ? `reached at ${parsedUrl(entry.url)?.host ?? "an address with variables"}`
      : `started as ${basename(entry.command)} with ${counted(entry.args.length, "argument")}`;
  const lists = Object.entries({ ...own, tools, disabledTools, alwaysAllow }).flatMap(([name, list = []]) =>
    list.length > 0 ? [`${name} ${oneLine(list.join(", "), 200)}`] : [],
  );
  const file = "envFile" in entry && entry.envFile ? ["an env file"] : [];
  return `Entry: ${[what, ...lists, ...file, `approve ${approve}`, `timeout ${timeout} s`].join("; ")}.`;
}
