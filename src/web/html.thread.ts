/** Turns a page of HTML into Markdown. Runs in a thread of its own; `convert.ts` starts it. */
import { parentPort, workerData } from "node:worker_threads";
import { Readability } from "@mozilla/readability";
import { Parser } from "htmlparser2";
import { parseHTML } from "linkedom";
import Turndown from "turndown";
import { byIdentity } from "../core/by-identity.ts";
import { orElse } from "../core/errors.ts";
import type { Converted, HtmlInput } from "./convert.ts";
import { parsedUrl } from "../core/parsed-url.ts";

/** Larger or deeper pages are shown as plain text; browsers do not nest deeper either. */
const PAGE_LIMITS = { nodes: 100_000, depth: 512 };
/** Larger or deeper pages are not searched for their article, which takes time that grows with the cube of the depth. */
const SEARCH_LIMITS = { nodes: 20_000, depth: 100 };

const PAGE_CHROME = "nav, header, footer, aside, form, [role=navigation], [role=banner], [role=contentinfo]";

/** The part of the DOM that is used here; the compiler does not know the whole one. */
interface Element {
  readonly nodeName: string;
  readonly textContent: string | null;
  readonly className: string;
  readonly parentElement: Element | null;
  getAttribute(name: string): string | null;
  closest(selector: string): Element | null;
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
  remove(): void;
}

interface HtmlPage extends Element {
  readonly body: Element | null;
  readonly documentElement: Element;
  cloneNode(deep: boolean): HtmlPage;
}

function convert({ html, url, isPlain }: HtmlInput): Converted {
  const size = measurePage(html);
  if (isPlain || exceeds(size, PAGE_LIMITS)) return plainText(html);
  const whole = /<html[\s>]/i.test(html) ? html : `<html><body>${html}</body></html>`;
  const page = parseHTML(whole).document as unknown as HtmlPage; // it has these members
  const href = page.querySelector("base[href]")?.getAttribute("href") ?? "";
  const base = parsedUrl(href, url)?.href ?? url;
  const withoutText = "script, style, noscript, template, svg, canvas, iframe, object, dialog";
  for (const element of page.querySelectorAll(withoutText)) element.remove();
  const titled = plainContent(page.querySelector("title"));
  const title = titled === "" ? plainContent(page.querySelector("h1")) : titled;
  for (const element of page.querySelectorAll("title")) element.remove();
  const article = exceeds(size, SEARCH_LIMITS) ? undefined : findArticle(page);
  const content = article ?? page.body ?? page.documentElement;
  return { title, text: tidy(markdownWriter(base).turndown(content)), notes: [] };
}

type Size = typeof PAGE_LIMITS;

const exceeds = (size: Size, most: Size): boolean => size.nodes > most.nodes || size.depth > most.depth;

/** The number of elements and texts of a page, and the depth of its elements; counted no further than needed. */
function measurePage(html: string): Size {
  const size = { nodes: 0, depth: 0 };
  let open = 0;
  const parser = new Parser({
    onopentag() {
      open += 1;
      size.nodes += 1;
      size.depth = Math.max(size.depth, open);
      if (exceeds(size, PAGE_LIMITS)) parser.pause();
    },
    ontext() {
      size.nodes += 1;
    },
    onclosetag() {
      open -= 1;
    },
  });
  parser.write(html);
  return size;
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
const plainContent = (element: Element | null): string => oneLine(element?.textContent ?? "");

/** The article of a page, without menus and the like; `undefined` for a page that is more than an article. */
function findArticle(page: HtmlPage): Element | undefined {
  const outermost = [...page.querySelectorAll(PAGE_CHROME)].filter(
    (one) => !one.parentElement?.closest(PAGE_CHROME),
  );
  const around = outermost.reduce((sum, element) => sum + plainContent(element).length, 0);
  const whole = plainContent(page.body).length;
  if (whole > 500_000) return undefined;
  const found = orElse(() => {
    // It changes the page.
    const reader = new Readability<Element>(page.cloneNode(true), {
      keepClasses: true,
      serializer: (node: unknown) => node as Element,
    });
    return reader.parse()?.content ?? null;
    // It fails for some pages without an article.
  }, null);
  const length = plainContent(found).length;
  // An article with little of the page's text is not the page's content.
  return found && length > 0 && length >= 0.3 * (whole - around) ? found : undefined;
}

function markdownWriter(base: string): Turndown {
  const writer = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" });
  // Models read names such as snake_case better as they are.
  writer.escape = (text) => text;
  writer.remove(["button", "input", "select", "textarea", "label"] as never[]); // names of elements
  // A link with its whole address; the text alone if the address leads nowhere else.
  addRule(writer, ["A"], (content, link) => {
    const [text, href] = [oneLine(content), link.getAttribute("href") ?? ""];
    if (text === "" || href === "" || href.startsWith("#")) return content;
    const { protocol, href: address } = parsedUrl(href, base) ?? {};
    if (protocol === undefined || address === undefined) return content;
    // Longer addresses are data.
    if (!["http:", "https:", "mailto:"].includes(protocol) || address.length > 1000) return content;
    return `[${text}](${address.replaceAll("(", "%28").replaceAll(")", "%29")})`;
  });
  addRule(writer, ["IMG"], (_content, image) => {
    const alt = oneLine(image.getAttribute("alt") ?? "");
    return alt === "" ? "" : `[Image: ${alt}]`;
  });
  addRule(writer, ["PRE"], (_content, block) => {
    const code = (block.textContent ?? "").replace(/(?<!\n)\n+$/, "");
    const longest = Math.max(2, ...(code.match(/`{3,}/g) ?? []).map((run) => run.length));
    const fence = "`".repeat(longest + 1);
    // Highlighters name the language in a class.
    const elements = [block, block.querySelector("code"), block.parentElement];
    const classes = elements.map((element) => element?.className ?? "").join(" ");
    const language = /\b(?:language|lang|highlight-source)-(\w{1,20})/.exec(classes)?.[1] ?? "";
    return `\n\n${fence}${language}\n${code}\n${fence}\n\n`;
  });
  addTables(writer);
  return writer;
}

/** Adds a rule for elements by their names, and a condition. */
function addRule(
  writer: Turndown,
  names: readonly string[],
  replacement: (content: string, element: Element) => string,
  applies: (element: Element) => boolean = () => true,
): void {
  writer.addRule(names.join(), {
    filter: (node: unknown) => names.includes((node as Element).nodeName) && applies(node as Element), // elements only
    replacement: (content: string, node: unknown) => replacement(content, node as Element), // as above
  });
}

/** Tables as GitHub writes them, unless they only lay out a page. */
function addTables(writer: Turndown): void {
  const isData = byIdentity((table: Element): boolean => {
    const isNested = table.parentElement?.closest("table") || table.querySelector("table") !== null;
    const rows = [...table.querySelectorAll("tr")].slice(0, 50);
    return !isNested && rows.some((row) => countCells(row) > 1);
  });
  const firstRow = byIdentity((table: Element) => table.querySelector("tr"));
  const isInData = (element: Element): boolean => {
    const table = element.closest("table");
    return table !== null && isData(table);
  };
  const cell = (content: string): string => ` ${oneLine(content).replaceAll("|", String.raw`\|`)} |`;
  addRule(writer, ["TD", "TH"], cell, isInData);
  addRule(
    writer,
    ["TR"],
    (content, row) => {
      const table = row.closest("table");
      const isFirst = table !== null && firstRow(table) === row;
      const line = `|${content.replaceAll("\n", "")}\n`;
      return isFirst ? `${line}|${" --- |".repeat(countCells(row))}\n` : line;
    },
    isInData,
  );
  const whole = (content: string): string => `\n\n${content.replace(/\n{2,}/g, "\n").trim()}\n\n`;
  addRule(writer, ["TABLE"], whole, isData);
}

const countCells = (row: Element): number => [...row.querySelectorAll("td, th")].length;

const tidy = (text: string): string =>
  text
    .replace(/(?<![ \t])[ \t]+\n/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();

/** All text of a page, without a tree of its elements. */
function plainText(html: string): Converted {
  const parts: string[] = [];
  let title = "";
  let silent = 0;
  let isTitle = false;
  const passTag = (name: string, step: 1 | -1): void => {
    if (SILENT.has(name)) silent += step;
    if (name === "title") isTitle = step === 1;
    else if (!INLINE.has(name)) parts.push("\n");
  };
  const parser = new Parser({
    onopentagname: (name) => passTag(name, 1),
    onclosetag: (name) => passTag(name, -1),
    ontext(text) {
      if (isTitle) title += text;
      else if (silent === 0) parts.push(text.replace(/\s+/g, " "));
    },
  });
  parser.end(html);
  const lines = parts.join("").split("\n");
  return {
    title: oneLine(title),
    text: tidy(lines.map((line) => line.trim()).join("\n")),
    notes: ["It is too large or nested too deeply for Markdown, and shown as plain text without links."],
  };
}

const SILENT: ReadonlySet<string> = new Set(["script", "style", "noscript", "template", "svg"]);
const INLINE: ReadonlySet<string> = new Set(
  "a abbr b bdi bdo cite code data em font i kbd mark q s samp small span strong sub sup time u var wbr".split(
    " ",
  ),
);

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(convert(workerData as HtmlInput)); // set by convert.ts
