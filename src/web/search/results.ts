/** Results of a search, in one shape for all providers. */
import { headOf, oneLine } from "../../core/text.ts";
import { isRecord, memberOf } from "../../core/unknown.ts";
import { MAX_URL } from "../url.ts";
import { parsedUrl } from "../../core/parsed-url.ts";

export interface FoundPage {
  title: string;
  url: string;
  snippet: string;
  /** A day as `2026-01-31`, if the provider knows it. */
  date?: string;
}

type RawPage = Readonly<Record<string, unknown>>;

/** The names of a provider's fields that differ from ours, or how to make ours. */
export type FieldNames = Readonly<Partial<Record<keyof FoundPage, string | ((page: RawPage) => unknown)>>>;

/** Searches the web. Expected failures are thrown as `WebProblem`, whose message is for the model. */
export type SearchPages = (
  query: string,
  options: { count: number; signal: AbortSignal },
) => Promise<readonly FoundPage[]>;

/** The list of results in an answer; none for an answer of another form. */
export function resultList(answer: unknown, ...path: readonly string[]): RawPage[] {
  const list = path.reduce<unknown>((value, name) => memberOf(value, name), answer);
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

/** Up to `count` results, each page once, without those that name no page. */
export function tidyPages(raw: readonly RawPage[], count: number, names: FieldNames = {}): FoundPage[] {
  const found = new Map<string, FoundPage>();
  for (const page of raw) {
    const made = tidyPage(page, names);
    if (made && !found.has(made.url)) found.set(made.url, made);
    if (found.size === count) break;
  }
  return [...found.values()];
}

function tidyPage(page: RawPage, names: FieldNames): FoundPage | undefined {
  const field = (name: keyof FoundPage): unknown => {
    const theirs = names[name] ?? name;
    return typeof theirs === "string" ? page[theirs] : theirs(page);
  };
  const url = field("url");
  const address = typeof url === "string" ? parsedUrl(url) : undefined;
  if (!address || !/^https?:$/.test(address.protocol) || address.href.length > MAX_URL) return undefined;
  const date = field("date");
  const time = typeof date === "string" ? Date.parse(headOf(date, 40)) : Number.NaN;
  return {
    title: plainLine(field("title"), 200) || address.host,
    url: address.href,
    snippet: plainLine(field("snippet"), 600),
    ...(Number.isNaN(time) ? {} : { date: new Date(time).toISOString().slice(0, 10) }),
  };
}

/** A text on one line, without the marks that providers put around the words that were found. */
const plainLine = (text: unknown, limit: number): string =>
  typeof text === "string"
    ? oneLine(
        headOf(text, 4 * limit)
          .replace(/<\/?(?:strong|em|b|mark)>/gi, "")
          .replace(/&(amp|lt|gt|quot|#0?39|#x27);/g, (_, name: string) => ENTITIES[name] ?? "'"),
        limit,
      )
    : "";

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };
