/** Turns a page of HTML into Markdown. Runs in a thread of its own; `convert.ts` starts it. */
import { parentPort, workerData } from "node:worker_threads";
import { orElse } from "../core/errors.ts";
import { parsedUrl } from "../core/unknown.ts";
import { oneLine } from "../core/text.ts";
import type { Converted, HtmlInput } from "./convert.ts";
import { PageContent, type Scope } from "./html/content.ts";
import { writeMarkdown } from "./html/markdown.ts";
import type { Element, Node } from "./html/tree.ts";
import {
  attribute,
  cutPage,
  descendants,
  hasWords,
  isElement,
  nodeText,
  parsePage,
  withoutTags,
} from "./html/tree.ts";

function convert({ html, url, isPlain }: HtmlInput): Converted {
  // XHTML may close any element in its own tag, which HTML would leave open.
  const closed = /<((?:script|style|title|textarea|iframe|a|div|span|p|i|b|td|th|li|em)\b[^<>]*)\/>/gi;
  const page = /^\s*<\?xml/.test(html)
    ? html.replace(closed, (tag, inner) => `<${inner}></${/^\w+/.exec(tag.slice(1))?.[0]}>`)
    : html;
  const pieces = isPlain ? undefined : cutPage(page);
  const head = readHead(orElse(() => parsePage(pieces?.[0] ?? page.slice(0, 10_000)), undefined));
  const base = parsedUrl(head.base, url)?.href ?? url;
  const failed = new Set<string>();
  const shown = pieces && readPieces(pieces, base, failed);
  const text =
    shown && hasWords(shown)
      ? shown
      : pieces && !failed.size
        ? readPieces(pieces, base, failed, "everything")
        : withoutTags(page);
  const plain =
    pieces && failed.size === 0
      ? []
      : ["It nests too deeply or is too large for Markdown, and is plain text, at least in part."];
  const title = head.title || (/^# (.*)$/m.exec(text)?.[1] ?? "");
  const forward = parsedUrl(head.refresh, base)?.href;
  return {
    title,
    text,
    notes: [...plain, ...remarks(text, head)],
    ...(head.refresh && forward ? { forward } : {}),
  };
}

/** Notes on the possible gaps of a page with little text. */
function remarks({ length }: string, { scripts, description }: ReturnType<typeof readHead>): string[] {
  // A shorter page with scripts may be one that its scripts fill.
  if (length >= 300 || (length > 0 && scripts === 0)) return [];
  const lack =
    scripts === 0
      ? "It has no text."
      : length === 0
        ? "Its text is made by scripts, which are not run."
        : "It has little text. Its scripts, which are not run, may show more.";
  return [description === "" ? lack : `${lack} It describes itself as: ${description}`];
}

function readHead(page: Node | undefined) {
  const elements = page ? descendants(page) : [];
  const named = (tag: string): Element[] => elements.filter(({ tagName }) => tagName === tag);
  const meta = (name: string, value: string): string =>
    named("meta")
      .map((one) => (attribute(one, name).toLowerCase() === value ? attribute(one, "content") : ""))
      .find((content) => content !== "") ?? "";
  const [title] = named("title");
  return {
    title: title ? oneLine(nodeText(title), 300) : "",
    base:
      named("base")
        .map((one) => attribute(one, "href"))
        .find((href) => href !== "") ?? "",
    scripts: named("script").filter((one) => !/json|template|math/.test(attribute(one, "type"))).length,
    description: oneLine(meta("name", "description") || meta("property", "og:description"), 500),
    refresh:
      /^[\s\d.]*[;,]\s*(?:url\s*=\s*)?["']?([^"']+)/i.exec(meta("http-equiv", "refresh"))?.[1]?.trim() ?? "",
  };
}

/** Finds the main part of a page, otherwise the page without its chrome. Pieces that `failed` are text without tags. */
function readPieces(pieces: readonly string[], base: string, failed: Set<string>, scope?: Scope): string {
  let hasMain = false;
  const texts = pieces.map((piece) => {
    try {
      const page = parsePage(piece);
      const main = scope ? undefined : findMain(page, base, pieces.length === 1);
      hasMain ||= main !== undefined;
      if (hasMain && !main) return "";
      const root = main ?? page;
      return writeMarkdown(new PageContent(root, base, scope ?? (main ? "main" : "body")).convert(root));
    } catch {
      failed.add(piece);
      return withoutTags(piece);
    }
  });
  return texts.filter((text) => text !== "").join("\n\n");
}

/** The part that a landmark marks as the content; of a page in one piece, if it has a good share of the text. */
function findMain(page: Node, base: string, isWhole: boolean): Node | undefined {
  const all = descendants(page);
  const main = all.find((one) => one.tagName === "main" || attribute(one, "role") === "main");
  if (!isWhole) return main;
  const [article, ...others] = all.filter(({ tagName }) => tagName === "article");
  const isOnly =
    article && descendants(article).filter((one) => others.includes(one)).length === others.length;
  const chrome = new Set(
    all.filter((one) => /^(header|nav|aside|footer)$/.test(one.tagName)).flatMap(descendants),
  );
  const hasTitle = (part: Node, ignored?: typeof chrome): boolean =>
    descendants(part).some((one) => one.tagName === "h1" && ignored?.has(one) !== true);
  // The heading of the page may stand beside its article, in a part around both.
  let around: Node | null | undefined = isOnly ? article : undefined;
  if (article && around && !hasTitle(article) && hasTitle(page, chrome))
    while (around && !hasTitle(around, chrome))
      around = "parentNode" in around ? around.parentNode : undefined;
  const found = main ?? (around && isElement(around) && around.tagName !== "body" ? around : undefined);
  if (!found) return undefined;
  const content = new PageContent(page, base, "body");
  return content.weigh(found) >= (main ? 0.2 : 0.6) * content.weigh(page) ? found : undefined;
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(convert(workerData as HtmlInput)); // set by convert.ts
