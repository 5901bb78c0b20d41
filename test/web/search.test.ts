import { type IncomingMessage, createServer } from "node:http";
import { text as readAll } from "node:stream/consumers";
import { expect, test } from "vitest";
import { searchChoice } from "../../src/web/search/choose.ts";
import type { SearchOptions } from "../../src/web/search/options.ts";
import type { FoundPage } from "../../src/web/search/ask.ts";
import { addressOf } from "../support/http-address.ts";

interface Asked {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage["headers"];
  body: unknown;
}

/** A search service; gives its address and the requests it had. */
async function startService(answer: { status?: number; headers?: object; body?: unknown }) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void readAll(request).then((body) => {
      const { method, url, headers } = request;
      asked.push({ method, url, headers, body: body === "" ? undefined : JSON.parse(body) });
      const sent = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body ?? {});
      return response.writeHead(answer.status ?? 200, { ...answer.headers }).end(sent);
    });
  });
  return { url: await addressOf(server), asked };
}

const ENV = { TAVILY_API_KEY: "tvly-1", BRAVE_API_KEY: "brave-1", EXA_API_KEY: "exa-1" };

async function search(
  options: SearchOptions,
  query = "spring tides",
  count = 2,
): Promise<readonly FoundPage[]> {
  const choice = searchChoice(options, ENV);
  if (!choice.ok || choice.found === undefined) throw new Error("no search");
  return choice.found.search(query, { count, signal: new AbortController().signal });
}

const FOUND = { title: "Tides", url: "https://example.com/a", snippet: "High & low" };

test("Tavily is asked with its key and gives pages in our form", async () => {
  const results = [
    { title: "Tides", url: "https://example.com/a", content: "High & low", score: 0.9 },
    { title: "Tides", url: "https://example.com/a#", content: "twice", published_date: "x" },
    { title: 7, url: "javascript:alert(1)", content: "no page" },
    null,
    {
      title: "",
      url: "https://example.com/b",
      content: null,
      published_date: "Tue, 03 Mar 2026 10:00:00 GMT",
    },
    { title: "third", url: "https://example.com/c" },
  ];
  const { url, asked } = await startService({ body: { results } });
  const pages = await search({ provider: "tavily", url }, "spring tides", 3);
  expect(pages).toEqual([
    FOUND,
    { title: "Tides", url: "https://example.com/a#", snippet: "twice" },
    { title: "example.com", url: "https://example.com/b", snippet: "", date: "2026-03-03" },
  ]);
  expect(asked).toMatchObject([
    {
      method: "POST",
      url: "/search",
      headers: { authorization: "Bearer tvly-1" },
      body: { query: "spring tides", max_results: 3 },
    },
  ]);
});

test("Brave Search is asked within its bounds, and its marks are taken out", async () => {
  const results = [
    {
      title: "<strong>Tides</strong>",
      url: "https://example.com/a",
      description: "High &amp; <strong>low</strong>",
      page_age: "2026-01-31T08:00:00",
    },
  ];
  const { url, asked } = await startService({ body: { web: { results } } });
  const pages = await search({ provider: "brave", url }, "tide ".repeat(100));
  expect(pages).toEqual([{ ...FOUND, date: "2026-01-31" }]);
  const sent = new URL(asked[0]?.url ?? "", url);
  expect(sent.pathname).toBe("/res/v1/web/search");
  expect(sent.searchParams.get("q")?.split(" ")).toHaveLength(50);
  expect(sent.searchParams.get("count")).toBe("2");
  expect(asked[0]).toMatchObject({ method: "GET", headers: { "x-subscription-token": "brave-1" } });
});

test("Exa is asked for highlights", async () => {
  const results = [
    {
      title: "Tides",
      url: "https://example.com/a",
      highlights: ["High", "low"],
      publishedDate: "2026-01-31",
    },
  ];
  const { url, asked } = await startService({ body: { results } });
  expect(await search({ provider: "exa", url })).toEqual([
    { ...FOUND, snippet: "High … low", date: "2026-01-31" },
  ]);
  expect(asked).toMatchObject([
    {
      url: "/search",
      headers: { "x-api-key": "exa-1" },
      body: { query: "spring tides", numResults: 2, contents: { highlights: true } },
    },
  ]);
});

test("a SearXNG is reached by its address, and one without JSON says what to do", async () => {
  const results = [
    { title: "Tides", url: "https://example.com/a", content: "High & low", publishedDate: null },
  ];
  const { url, asked } = await startService({ body: { results } });
  expect(await search({ url: `${url}/searx/` })).toEqual([FOUND]);
  expect(asked).toMatchObject([{ method: "GET", url: "/searx/search?q=spring+tides&format=json" }]);
  const closed = await startService({ status: 403, body: "<html>" });
  await expect(search({ url: closed.url })).rejects.toThrow(
    "settings.yml must list json under search.formats",
  );
});

test("a command gets JSON and gives JSON", async () => {
  const code = `
    const { text } = require("node:stream/consumers");
    text(process.stdin).then((input) => {
      const { query, count } = JSON.parse(input);
      const page = { title: query, url: "https://example.com/a", snippet: String(count), date: "2026-01-31" };
      console.log(JSON.stringify(process.argv[1] === "list" ? [page] : { results: [page] }));
    });`;
  const page = { title: "tides $(id)", url: FOUND.url, snippet: "2", date: "2026-01-31" };
  for (const form of ["list", "object"]) {
    expect(await search({ command: [process.execPath, "-e", code, form] }, "tides $(id)")).toEqual([page]);
  }
});

test.each([
  ["console.log('no json')", "The search command did not write JSON."],
  [
    "console.error('quota used up'); process.exit(3)",
    "The search command failed (exit code 3): quota used up.",
  ],
  ["process.stdout.write('x'.repeat(3e6)); setInterval(() => {}, 1000)", "wrote more than 2 MB"],
])("a command that fails is one sentence: %s", async (code, sentence) => {
  await expect(search({ command: [process.execPath, "-e", code] })).rejects.toThrow(sentence);
});

test("a command that does not exist is one sentence", async () => {
  await expect(search({ command: ["no-such-program-here"] })).rejects.toThrow(
    "could not be started; check web.search.command",
  );
});

test.each([
  [401, {}, "", "Tavily refused access (HTTP 401): check the key in TAVILY_API_KEY."],
  [403, {}, "", "Tavily refused access (HTTP 403)"],
  [429, { "retry-after": "17" }, "", "Tavily has had too many requests (HTTP 429). Try again in 17 s."],
  [429, { "retry-after": "soon" }, "", "Try again later."],
  [432, {}, "", "the limit of the plan is reached (HTTP 432)"],
  [400, {}, { detail: { error: "Query of tvly-1 is too long." } }, "(HTTP 400): Query of [key] is too long."],
  [422, {}, { error: "bad field" }, "Tavily refused the request (HTTP 422): bad field."],
  [404, {}, "<html>", "Tavily refused the request (HTTP 404)."],
  [
    302,
    { location: "http://elsewhere/" },
    "",
    "Tavily redirects to another address; correct web.search.url.",
  ],
  [
    503,
    {},
    "",
    "Tavily has a problem of its own (HTTP 503). Continue without the search, or try again later.",
  ],
  [200, {}, "<html>", "Tavily did not answer in JSON."],
  [200, {}, "x".repeat(3_000_000), "The answer of Tavily is too large."],
])("an answer with status %s is one sentence", async (status, headers, body, sentence) => {
  const { url } = await startService({ status, headers, body });
  const failed: unknown = await search({ provider: "tavily", url }).catch((error: unknown) => error);
  expect(String(failed)).toContain(sentence);
  expect(String(failed)).not.toContain("tvly-1");
});

test("odd answers have no results, and a provider that is not there is one sentence", async () => {
  for (const body of [null, [], { results: "many" }, { results: [1, "x", [], {}] }]) {
    const { url } = await startService({ body: JSON.stringify(body) });
    expect(await search({ provider: "tavily", url })).toEqual([]);
  }
  await expect(search({ provider: "tavily", url: "http://127.0.0.1:65000" })).rejects.toThrow(
    /Tavily could not be reached \(ECONNREFUSED\)\. Continue without/,
  );
});

test("a search that is cancelled ends with its call", async () => {
  const choice = searchChoice({ command: [process.execPath, "-e", "setInterval(() => {}, 1000)"] }, {});
  const stop = new AbortController();
  const found = choice.ok ? choice.found?.search("x", { count: 1, signal: stop.signal }) : undefined;
  stop.abort();
  await expect(found).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
});

test("the search follows from settings, then from the first key; without both there is none", () => {
  const nameOf = (options: SearchOptions, env = {}): string | undefined => {
    const choice = searchChoice(options, env);
    return choice.ok ? choice.found?.name : choice.problem;
  };
  expect(nameOf({})).toBeUndefined();
  expect(nameOf({}, { TAVILY_API_KEY: "  " })).toBeUndefined();
  expect(nameOf({}, { EXA_API_KEY: "k", BRAVE_SEARCH_API_KEY: "k" })).toBe("Brave Search");
  expect(nameOf({}, ENV)).toBe("Tavily");
  expect(nameOf({ provider: "exa" }, ENV)).toBe("Exa");
  expect(nameOf({ provider: "off" }, ENV)).toBeUndefined();
  expect(nameOf({ url: "http://searx.lan" }, ENV)).toBe("SearXNG");
  expect(nameOf({ command: ["find-pages"] }, ENV)).toBe("the search command");
  expect(nameOf({ provider: "tavily" })).toContain("TAVILY_API_KEY, which is not set");
  expect(nameOf({ provider: "searxng" })).toContain("needs web.search.url");
  expect(nameOf({ provider: "command" })).toContain("needs web.search.command");
});
