/** Searches the web. */
import { z } from "zod";
import { stripControl } from "../core/text.ts";
import { WebProblem } from "../web/request.ts";
import type { FoundPage, SearchPages } from "../web/search/results.ts";
import { cancellable } from "./call.ts";
import { type ToolResult, type ToolSpec, defineTool, toolError } from "./tool.ts";

const COUNT = 8;
const MAX_COUNT = 20;

const schema = z.strictObject({
  query: z.string().min(1).max(500),
  count: z.int().min(1).max(MAX_COUNT).optional().describe(`Default ${COUNT}.`),
});

/** Finds pages, each with its address and an excerpt. */
export function webSearchTool(search: SearchPages): ToolSpec<typeof schema> {
  return defineTool({
    name: "web_search",
    kind: "read",
    description: "Search the web. Returns titles, addresses and excerpts; web_fetch reads a page.",
    schema,
    handle: ({ query, count = COUNT }, { signal }) =>
      cancellable("web_search", signal, async () => {
        try {
          return resultOf(await search(query, { count, signal }));
        } catch (error) {
          if (!(error instanceof WebProblem)) throw error;
          return toolError(error.message, { code: error.code });
        }
      }),
  });
}

function resultOf(pages: readonly FoundPage[]): ToolResult {
  const shown = pages.map(
    ({ title, url, snippet, date }, index) =>
      `${index + 1}. ${title}\n${url}${date === undefined ? "" : ` (${date})`}\n${snippet}`,
  );
  const list = quoted(stripControl(shown.join("\n\n")));
  const content = pages.length === 0 ? "Nothing was found." : `<web_results>\n${list}\n</web_results>`;
  return { content, artifact: { results: pages } };
}

/** A result cannot end the block that it stands in. */
const quoted = (text: string): string => text.replaceAll(/<(?=\s*\/?\s*web_results\b)/gi, "&lt;");
