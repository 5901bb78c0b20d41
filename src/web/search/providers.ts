/** Search services, each in its own form of requests and answers. */
import { trimEndOf } from "../../core/text.ts";
import type { ServiceRequest, FieldNames, SearchPages } from "./ask.ts";
import { askService, resultList, tidyPages } from "./ask.ts";

interface KeyedService {
  title: string;
  /** Variables with its key, the first that is set counts. */
  keys: readonly [string, ...string[]];
  url: string;
  request: (
    query: string,
    count: number,
    key: string,
  ) => { path: string } & Pick<ServiceRequest, "headers" | "body">;
  /** Path to the list in its answer, and the names of its fields. */
  list: readonly string[];
  names: FieldNames;
}

const asQuery = (parameters: Record<string, string>): string => new URLSearchParams(parameters).toString();

/** Services by key, in the order in which their keys are looked for. */
export const KEYED_SERVICES: Readonly<Record<"tavily" | "brave" | "exa", KeyedService>> = {
  // https://docs.tavily.com/documentation/api-reference/endpoint/search
  tavily: {
    title: "Tavily",
    keys: ["TAVILY_API_KEY"],
    url: "https://api.tavily.com",
    request: (query, count, key) => ({
      path: "/search",
      headers: { authorization: `Bearer ${key}` },
      body: { query, max_results: count },
    }),
    list: ["results"],
    names: { snippet: "content", date: "published_date" },
  },
  // https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
  brave: {
    title: "Brave Search",
    keys: ["BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"],
    url: "https://api.search.brave.com",
    request: (query, count, key) => {
      // It takes queries of 400 characters and 50 words.
      const q = query.split(/\s+/).slice(0, 50).join(" ").slice(0, 400);
      const path = `/res/v1/web/search?${asQuery({ q, count: String(count) })}`;
      return { path, headers: { "x-subscription-token": key } };
    },
    list: ["web", "results"],
    names: { snippet: "description", date: "page_age" },
  },
  // https://docs.exa.ai/reference/search
  exa: {
    title: "Exa",
    keys: ["EXA_API_KEY"],
    url: "https://api.exa.ai",
    request: (query, count, key) => ({
      path: "/search",
      headers: { "x-api-key": key },
      body: { query, numResults: count, contents: { highlights: true } },
    }),
    list: ["results"],
    names: {
      snippet: ({ highlights, summary, text }) =>
        Array.isArray(highlights) ? highlights.join(" … ") : (summary ?? text),
      date: "publishedDate",
    },
  },
};

export function keyedSearch(service: KeyedService, url: string, key: string): SearchPages {
  const { title, keys, request, list, names } = service;
  return async (query, { count, signal }) => {
    const { path, ...sent } = request(query, count, key);
    const refusal = `check the key in ${keys.join(" or ")}`;
    const question = { service: title, url: `${url}${path}`, ...sent, refusal, secret: key, signal };
    return tidyPages(resultList(await askService(question), ...list), count, names);
  };
}

/** A SearXNG of the operator: https://docs.searxng.org/dev/search_api.html */
export function searxng(url: string): SearchPages {
  return async (query, { count, signal }) => {
    const answer = await askService({
      service: "SearXNG",
      url: `${trimEndOf(url, "/")}/search?${asQuery({ q: query, format: "json" })}`,
      refusal:
        "its settings.yml must list json under search.formats, and its limiter must let this server pass",
      signal,
    });
    return tidyPages(resultList(answer, "results"), count, { snippet: "content", date: "publishedDate" });
  };
}
