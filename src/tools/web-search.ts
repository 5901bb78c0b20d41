/** Searches the web. */
import { z } from "zod";
import { quotedIn, stripControl } from "../core/text.ts";
import type { FoundPage, SearchPages } from "../web/search/results.ts";
import { type ToolResult, type ToolSpec, defineTool } from "./tool.ts";
import { webCall } from "./web-call.ts";

const COUNT = 8;
const MAX_COUNT = 20;

const schema = z.strictObject({
  query: z.string().min(1).max(500),
  count: z.int().min(1).max(MAX_COUNT).default(COUNT),
});

/** Finds pages, each with its address and an excerpt. */
export function webSearchTool(search: SearchPages): ToolSpec<typeof schema> {
  return defineTool({
    name: "web_search",
    kind: "read",
    description: "Search the web. Returns titles, addresses and excerpts.",
    schema,
    handle: ({ query, count }, { signal }) =>
      webCall("web_search", signal, async () => resultOf(await search(query, { count, signal }))),
  });
}

function resultOf(pages: readonly FoundPage[]): ToolResult {
  const shown = pages.map(
    ({ title, url, snippet, date }, index) =>
      `${index + 1}. ${title}\n${url}${date === undefined ? "" : ` (${date})`}\n${snippet}`,
  );
  const list = quotedIn(["web_results"], stripControl(shown.join("\n\n")));
  const content = pages.length === 0 ? "Nothing was found." : `<web_results>\n${list}\n</web_results>`;
  return { content, artifact: { results: pages } };
}
