/** The other MCP servers that are configured, with the log-ins of this data directory. */
import { type McpTools, openMcpTools } from "../agent/mcp-tools/open-mcp-tools.ts";
import type { Environment } from "../agent/models/choose.ts";
import { packageVersion } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import type { Logger } from "../core/logger.ts";
import { loginsOf } from "./logins.ts";

export const openOtherServers = (
  config: Pick<Config, "dataDir" | "mcpServers" | "web">,
  env: Environment,
  log: Logger,
): McpTools =>
  openMcpTools(config.mcpServers, { env, version: packageVersion(), log, logins: loginsOf(config, env) });
