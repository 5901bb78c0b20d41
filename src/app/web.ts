/** Access of agents to the web, as configured. */
import type { DeepAgentParams } from "../agent/agent.ts";
import { packageVersion } from "../config/paths.ts";
import { PROGRAM } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { type Logger, silentLogger } from "../core/logger.ts";
import { WEB_TOOL_NAMES, type WebToolName } from "../tools/options.ts";
import { type SearchChoice, searchChoice } from "../web/search/choose.ts";
import type { RunSettings } from "./settings.ts";

export interface Web {
  options: Exclude<DeepAgentParams["web"], undefined | string>;
  tools: readonly WebToolName[];
}

/** Returns undefined if agents do not reach the web. A configured search that cannot be created is logged. */
export function webOf(
  config: Pick<Config, "web">,
  env: RunSettings["env"],
  log: Logger = silentLogger,
): Web | undefined {
  const { mode, hosts } = config.web;
  if (mode === "off") return undefined;
  const choice = searchOf(config, env);
  if (!choice.ok) log.warn("web.no_search", { reason: choice.problem });
  const search = choice.ok ? choice.found?.search : undefined;
  return {
    options: {
      mode,
      hosts,
      search: search ?? { provider: "off" },
      userAgent: `${PROGRAM}/${packageVersion()}`,
    },
    tools: WEB_TOOL_NAMES.filter((name) => name !== "web_search" || search !== undefined),
  };
}

/** The configured search; none where agents do not reach the web. */
export const searchOf = (
  { web: { mode, search } }: Pick<Config, "web">,
  env: RunSettings["env"],
): SearchChoice => (mode === "off" ? { ok: true } : searchChoice(search, env));
