/** Settings of web searches. */
export const SEARCH_PROVIDERS = ["tavily", "brave", "exa", "searxng", "command", "off"] as const;
export type SearchProvider = (typeof SEARCH_PROVIDERS)[number];

export interface SearchOptions {
  /** Default: by `command`, else by `url`, else the provider of the first key in the environment; else there is none. */
  provider?: SearchProvider | undefined;
  /** Address of a SearXNG, or another one than the provider's own. */
  url?: string | undefined;
  /** Program with its arguments: JSON in, JSON out. */
  command?: readonly string[] | undefined;
}
