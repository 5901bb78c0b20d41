/** Tools for the web: one reads a page, the other searches. */
import { z } from "zod";
import { isoTime } from "../core/clock.ts";
import { headOf, quotedIn, stripControl } from "../core/text.ts";
import type { PageReader, WebPage } from "../web/page-reader.ts";
import { WebProblem } from "../web/request.ts";
import type { SearchPages } from "../web/search/ask.ts";
import { type IsNamed, MAX_URL, readUrl, approvedSite } from "../web/url.ts";
import { cancellable } from "./call.ts";
import { argumentsPreview } from "./call-preview.ts";
import { withNotices } from "./format.ts";
import { type ToolResult, type ToolSpec, defineTool, toolError } from "./tool.ts";

export interface WebFetchOptions {
  reader: PageReader;
  /** Hosts that may have private addresses. */
  isNamed: IsNamed;
  /** True if a person approves the host of each call: a redirect to another host is then not followed. */
  asks: boolean;
  /** True if texts that are too long for the conversation go into files. */
  keepsTexts: boolean;
}

/** Characters of a page that the conversation gets; the rest is read from the file. */
const SHOWN = 20_000;

export function webFetchTool({ reader, isNamed, asks, keepsTexts }: WebFetchOptions): ToolSpec {
  const text = z.string().max(MAX_URL, `Longer than ${MAX_URL} characters`);
  const schema = z.strictObject({ url: text }).superRefine(({ url }, context) => {
    const read = readUrl(url, isNamed);
    if (!read.ok) context.addIssue({ code: "custom", path: ["url"], message: read.problem });
  });
  return defineTool({
    name: "web_fetch",
    kind: "read",
    description:
      "Read a page of the web as text, also a PDF. A long one goes into a file that the answer names. Cite its url.",
    schema,
    handle: ({ url }, { signal }) =>
      webCall("web_fetch", signal, async () => {
        const read = readUrl(url, isNamed);
        if (!read.ok) return toolError(read.problem, { code: "url" });
        const site = approvedSite(read.url);
        const page = await reader.read(read.url, {
          signal,
          follows: (to) => !asks || approvedSite(to) === site,
        });
        return pageResult(page, keepsTexts);
      }),
    preview: async ({ url }) => {
      const read = readUrl(url, isNamed);
      if (!read.ok) return argumentsPreview("Read a web page", { url });
      const site = approvedSite(read.url);
      return {
        ...argumentsPreview(`Read ${site}`, { url: read.url.href }),
        same: { key: ["host", site], text: `reading any page of ${site}` },
      };
    },
  });
}

function pageResult(page: WebPage, keepsTexts: boolean): ToolResult {
  const { url, title, retrieved, notes } = page;
  const day = isoTime(retrieved).slice(0, 10);
  const named = title === undefined ? "" : ` title="${attribute(title)}"`;
  const begin = `<web_page url="${attribute(url)}"${named} retrieved="${day}">`;
  const body = quotedIn(["web_page"], stripControl(page.text)).trim();
  const text = `${begin}\n${body === "" ? "[no text]" : body}\n${END}`;
  const remarks = notes.map((note) => `[${note}]`);
  const artifact = { url, ...(title === undefined ? {} : { title }), retrieved: isoTime(retrieved) };
  const isLong = text.length > SHOWN && keepsTexts;
  return {
    content: withNotices(isLong ? `${headOf(text, SHOWN)}\n${END}` : text, remarks),
    artifact,
    ...(isLong ? { whole: { text, end: remarks.join("\n"), shown: { characters: SHOWN, close: END } } } : {}),
  };
}

const END = "</web_page>";

const attribute = (text: string): string => stripControl(text).replaceAll('"', "'").replaceAll(/[<>]/g, "");

const searchSchema = z.strictObject({
  query: z.string().min(1).max(500),
  count: z.int().min(1).max(20).default(8),
});

/** Finds pages, each with its address and an excerpt. */
export const webSearchTool = (search: SearchPages): ToolSpec<typeof searchSchema> =>
  defineTool({
    name: "web_search",
    kind: "read",
    description: "Search the web. Returns titles, addresses and excerpts.",
    schema: searchSchema,
    handle: ({ query, count }, { signal }) =>
      webCall("web_search", signal, async () => {
        const pages = await search(query, { count, signal });
        const shown = pages.map(
          ({ title, url, snippet, date }, index) =>
            `${index + 1}. ${title}\n${url}${date === undefined ? "" : ` (${date})`}\n${snippet}`,
        );
        const list = quotedIn(["web_results"], stripControl(shown.join("\n\n")));
        const content = pages.length === 0 ? "Nothing was found." : `<web_results>\n${list}\n</web_results>`;
        return { content, artifact: { results: pages } };
      }),
  });

/** Does the work of a tool. A problem with the web is its answer. */
const webCall = (tool: string, signal: AbortSignal, work: () => Promise<ToolResult>): Promise<ToolResult> =>
  cancellable(tool, signal, async () => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof WebProblem)) throw error;
      const { message, code, explanation } = error;
      const quoted = quotedIn(["web_page"], stripControl(explanation)).trim();
      return toolError(quoted === "" ? message : `${message}\n<web_page>\n${quoted}\n${END}`, { code });
    }
  });
