/** Search services, each in its own form of requests and answers. */
import { askService } from "./ask.ts";
import { type FoundPage, type SearchPages, listIn, tidyPages } from "./results.ts";

/** A service that is asked with a key. */
interface KeyedService {
  /** Name for people. */
  title: string;
  /** Variables with its key, the first that is set counts. */
  keys: readonly [string, ...string[]];
  url: string;
  search: (url: string, key: string) => SearchPages;
}

const asQuery = (parameters: Record<string, string>): string => new URLSearchParams(parameters).toString();

const refusalOf = (keys: readonly string[]): string => `check the key in ${keys.join(" or ")}`;

/** https://docs.tavily.com/documentation/api-reference/endpoint/search */
const tavily: KeyedService = {
  title: "Tavily",
  keys: ["TAVILY_API_KEY"],
  url: "https://api.tavily.com",
  search:
    (url, key) =>
    async (query, { count, signal }) => {
      const answer = await askService({
        service: "Tavily",
        url: `${url}/search`,
        headers: { authorization: `Bearer ${key}` },
        body: { query, max_results: count },
        refusal: refusalOf(tavily.keys),
        secret: key,
        signal,
      });
      return tidyPages(listIn(answer, "results"), count, { snippet: "content", date: "published_date" });
    },
};

/** https://api-dashboard.search.brave.com/app/documentation/web-search/get-started */
const brave: KeyedService = {
  title: "Brave Search",
  keys: ["BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"],
  url: "https://api.search.brave.com",
  search:
    (url, key) =>
    async (query, { count, signal }) => {
      // It takes queries of 400 characters and 50 words.
      const short = query.split(/\s+/).slice(0, 50).join(" ").slice(0, 400);
      const answer = await askService({
        service: "Brave Search",
        url: `${url}/res/v1/web/search?${asQuery({ q: short, count: String(count) })}`,
        headers: { "x-subscription-token": key },
        refusal: refusalOf(brave.keys),
        secret: key,
        signal,
      });
      return tidyPages(listIn(answer, "web", "results"), count, { snippet: "description", date: "page_age" });
    },
};

/** https://docs.exa.ai/reference/search */
const exa: KeyedService = {
  title: "Exa",
  keys: ["EXA_API_KEY"],
  url: "https://api.exa.ai",
  search:
    (url, key) =>
    async (query, { count, signal }) => {
      const answer = await askService({
        service: "Exa",
        url: `${url}/search`,
        headers: { "x-api-key": key },
        body: { query, numResults: count, contents: { highlights: true } },
        refusal: refusalOf(exa.keys),
        secret: key,
        signal,
      });
      const pages = listIn(answer, "results").map((page) => {
        const highlights = Array.isArray(page["highlights"]) ? page["highlights"].join(" … ") : undefined;
        return { ...page, snippet: highlights ?? page["summary"] ?? page["text"] };
      });
      return tidyPages(pages, count, { date: "publishedDate" });
    },
};

/** Services by key, in the order in which their keys are looked for. */
export const KEYED_SERVICES = { tavily, brave, exa } as const;

/** A SearXNG of the operator: https://docs.searxng.org/dev/search_api.html */
export function searxng(url: string): SearchPages {
  return async (query, { count, signal }): Promise<FoundPage[]> => {
    const answer = await askService({
      service: "SearXNG",
      url: `${url.replace(/\/+$/, "")}/search?${asQuery({ q: query, format: "json" })}`,
      refusal:
        "its settings.yml must list json under search.formats, and its limiter must let this server pass",
      signal,
    });
    return tidyPages(listIn(answer, "results"), count, { snippet: "content", date: "publishedDate" });
  };
}
