import { byIdentity } from "../../core/by-identity.ts";
import { ConfigurationError } from "../../core/errors.ts";
import type { WebToolName } from "../../tools/options.ts";
import { webFetchTool, webSearchTool } from "../../tools/web-tools.ts";
import type { ToolSpec } from "../../tools/tool.ts";
import { PageReader } from "../../web/page-reader.ts";
import { searchChoice } from "../../web/search/choose.ts";
import type { SearchOptions } from "../../web/search/options.ts";
import type { SearchPages } from "../../web/search/ask.ts";
import { namedHosts, readHost } from "../../web/url.ts";
import { ALL_DECISIONS } from "../calls/permissions.ts";
import { specTool } from "../calls/tool.ts";
import type { Middleware } from "../contracts/middleware.ts";

/** Access to the web. */
export interface WebOptions {
  /** `ask` (default): a person approves each page. `allow`: nobody is asked. `off`: there are no such tools. */
  mode?: "ask" | "allow" | "off";
  /**
   * Hosts that may have private addresses and any port, such as `wiki.corp.example`, `*.corp.example` or
   * `127.0.0.1:8080`. Default: none; only the public internet is read.
   */
  hosts?: readonly string[];
  /**
   * The provider of `web_search`, or a function that searches. Default: the provider of the first key in the
   * environment (`TAVILY_API_KEY`, `BRAVE_API_KEY`, `EXA_API_KEY`); without one there is no search.
   */
  search?: SearchOptions | SearchPages;
  /** Name and version that servers see, which robots.txt may have rules for. Default `deepagent-mcp`. */
  userAgent?: string;
}

/** Agent and subagents share one reader and its cache of robots.txt. */
const sharedReader = byIdentity((options: WebOptions) => {
  const { hosts = [], userAgent = "deepagent-mcp" } = options;
  const problem = hosts.map((host) => readHost(host)).find((host) => typeof host === "string");
  if (problem !== undefined) throw new ConfigurationError("INVALID_OPTION", `web.hosts: ${problem}.`);
  const isNamed = namedHosts(hosts);
  return { reader: new PageReader({ network: { isNamed }, userAgent }), isNamed };
});

const sharedSearch = byIdentity(({ search = {} }: WebOptions): SearchPages | undefined => {
  if (typeof search === "function") return search;
  const choice = searchChoice(search, process.env);
  if (!choice.ok) throw new ConfigurationError("INVALID_OPTION", `web.search: ${choice.problem}`);
  return choice.found?.search;
});

/**
 * The web: the tools `web_fetch`, with a gate if a person is to be asked, and `web_search`, if it is configured.
 *
 * @param only the tools to offer, of those that are on. Default: all of them.
 * @param keepsTexts true if texts that are too long for the conversation go into files.
 */
export function webMiddleware(
  options: WebOptions,
  { only, keepsTexts }: { only?: readonly WebToolName[] | undefined; keepsTexts: boolean },
): Middleware {
  const asks = (options.mode ?? "ask") === "ask";
  const search = sharedSearch(options);
  const specs: ToolSpec[] = [
    webFetchTool({ ...sharedReader(options), asks, keepsTexts }),
    ...(search ? [webSearchTool(search)] : []),
  ];
  return {
    name: "WebMiddleware",
    tools: specs.flatMap((spec) =>
      only?.some((one) => one === spec.name) === false ? [] : [specTool(spec)],
    ),
    gate: async ({ toolCall }) =>
      asks && toolCall.name === "web_fetch" ? { allowedDecisions: [...ALL_DECISIONS] } : undefined,
  };
}
