/** Turns the nodes of a page into plain hast: its visible content, with regular lists, tables and code. */
import type { ElementContent } from "hast";
import { parsedUrl } from "../../core/unknown.ts";
import { oneLine } from "../../core/text.ts";
import { codeElement, isCodeBlock, isLineNumber } from "./code.ts";
import { tableContent } from "./table.ts";
import renamed from "./tags.json" with { type: "json" };
import { panelNames } from "./tabs.ts";
import {
  type Element,
  type Node,
  attribute,
  childElements,
  childNodes,
  descendants,
  hasAttribute,
  hasWords,
  hast,
  hastText,
  isBlock,
  isElement,
  isMarked,
  isSilent,
  nodeText,
} from "./tree.ts";

/** `body`: no landmark marks the content; `everything`: also hidden parts and menus. */
export type Scope = "main" | "body" | "everything";

/** Lists and quotations are not indented further, and longer addresses are data. */
const CONTENT_LIMITS = { nested: 16, link: 1000 };

const RENAMED: ReadonlyMap<string, string> = new Map(Object.entries(renamed));

/** Converts the nodes of one page. */
export class PageContent {
  /** IDs of parts that a control of the page shows. */
  readonly #controlled: ReadonlySet<string>;
  /** The names of panels. Lists of tabs have the name "": they are shown with the panels. */
  readonly #names: ReadonlyMap<Element, string>;
  readonly #menus: ReadonlySet<Node>;
  #nested = 0;
  readonly #hosts: Element[] = [];
  /** Children of hosts that a slot shows: the first that has their name. */
  readonly #slots = new Set<Node>();

  readonly #base: string;
  readonly #scope: Scope;

  constructor(root: Node, base: string, scope: Scope) {
    [this.#base, this.#scope] = [base, scope];
    const elements = descendants(root);
    const controls = elements
      .flatMap(({ attrs }) => attrs)
      .filter(({ name }) => /^(aria-controls|href|data-target|data-bs-target)$/.test(name));
    this.#controlled = new Set(controls.flatMap(({ value }) => value.replace(/^#/, "").split(/\s+/, 9)));
    this.#names = panelNames(elements);
    const isWhole = scope === "body" && elements.some(({ tagName }) => tagName === "title");
    this.#menus = new Set(isWhole ? listsOfLinks(elements) : []);
  }

  readonly convert = (node: Node): ElementContent[] => {
    if ("value" in node) return [hastText(node.value)];
    if (!isElement(node)) return this.#children(node);
    const name = this.#names.get(node);
    if (name === "" || this.isLeftOut(node)) return [];
    const content = this.#element(node);
    return name === undefined ? content : [hast("p", [hast("strong", [hastText(name)])]), ...content];
  };

  /** Counts the characters of a part, without omitted ones. */
  weigh(node: Node): number {
    if ("value" in node) return node.value.trim().length;
    if (isElement(node) && this.isLeftOut(node)) return 0;
    return childNodes(node).reduce((sum, child) => sum + this.weigh(child), 0);
  }

  /** True for what nobody sees, and for menus, banners, buttons and other parts around the content. */
  isLeftOut(node: Element): boolean {
    const { tagName: tag } = node;
    if (tag === "math" || isMarked(node, "symbols")) return false;
    if (tag === "script") return !attribute(node, "type").startsWith("math/");
    if (this.#scope === "everything") return /^(style|title|svg)$/.test(tag);
    return (
      isSilent(tag) ||
      this.#isHidden(node) ||
      isLineNumber(node) ||
      this.#isRepeated(node) ||
      this.#isChrome(node)
    );
  }

  /** Texts beside each other become one: later steps look at all around each text. */
  #children(node: Node): ElementContent[] {
    const content: ElementContent[] = [];
    for (const one of childNodes(node).flatMap(this.convert)) {
      const last = content.at(-1);
      if (one.type === "text" && last?.type === "text") last.value += one.value;
      else content.push(one);
    }
    return content;
  }

  #isHidden(node: Element): boolean {
    if (node.tagName === "dialog") return !hasAttribute(node, "open");
    const isHidden = hasAttribute(node, "hidden") && attribute(node, "hidden") !== "until-found";
    if (!isHidden && !/display\s*:\s*none/i.test(attribute(node, "style"))) return false;
    return attribute(node, "role") !== "tabpanel" && !this.#controlled.has(attribute(node, "id") || "-");
  }

  /** True for texts that repeat their neighbors, for screens or for screen readers only. */
  #isRepeated(node: Element): boolean {
    const isSpoken = isMarked(node, "screenReader");
    const isSilent = (one: Node): boolean => isElement(one) && attribute(one, "aria-hidden") === "true";
    if (!isSpoken && !(isSilent(node) && /^(span|i|b|a|em)$/.test(node.tagName))) return false;
    const siblings = childNodes(node.parentNode ?? node).slice(0, 100);
    return siblings.some((one) => one !== node && hasWords(nodeText(one)) && !(isSpoken && isSilent(one)));
  }

  #isChrome(node: Element): boolean {
    const { tagName: tag } = node;
    const role = attribute(node, "role");
    const isBody = this.#scope === "body";
    if (tag === "nav" || /^(navigation|search|menu|menubar|toolbar)$/.test(role)) return true;
    const isAround =
      this.#menus.has(node) ||
      isMarked(node, "chrome") ||
      (isBody &&
        (isMarked(node, "bodyChrome") ||
          /^(header|footer|aside)$/.test(tag) ||
          /^(banner|contentinfo|complementary)$/.test(role)));
    if (isAround)
      return !descendants(node).some(
        (one) => /^(h1|pre|main)$/.test(one.tagName) || isMarked(one, "contentHeads"),
      );
    // The sign by which a heading can be linked.
    return (
      tag === "a" &&
      attribute(node, "href").includes("#") &&
      !hasWords(nodeText(node)) &&
      !descendants(node).some(({ tagName }) => tagName === "img")
    );
  }

  #element(node: Element): ElementContent[] {
    const { tagName: tag } = node;
    if (isCodeBlock(node)) return [codeElement(node)];
    if (tag === "table")
      return tableContent(node, (cell, inLine) =>
        inLine ? inOneLine(this.#children(cell)) : this.#children(cell),
      );
    if (tag === "math" || tag === "script") return [hastText(formula(node))];
    if (tag === "sup" || tag === "sub") return raised(node, this.#children(node));
    if (/^(code|kbd|samp|tt)$/.test(tag))
      return [hast("code", [hastText(oneLine(nodeText(node), Infinity))])];
    if (tag === "img") {
      const alt = oneLine(attribute(node, "alt"), 500);
      return alt === "" ? [] : [hastText(`[Image: ${alt}]`)];
    }
    if (/^(a|i?frame)$/.test(tag)) return this.#link(node);
    if (tag === "button") return this.#button(node);
    if (tag === "input") return this.#checkbox(node);
    if (/^h[1-6]$/.test(tag) || attribute(node, "role") === "heading") {
      const level = /^[1-6]$/.exec(attribute(node, "aria-level") || tag.slice(1))?.[0] ?? "2";
      return [hast(`h${level}`, inOneLine(this.#children(node)))];
    }
    if (/^(ul|ol|dl|menu|dir|blockquote)$/.test(tag)) return [this.#nesting(node)];
    if (tag === "slot") return [hast("span", this.#slotted(node))];
    const shadow = childElements(node).find((one) => hasAttribute(one, "shadowrootmode"));
    if (!shadow) return this.#plain(node);
    // The content of a shadow root, with the children of its host in its slots.
    this.#hosts.push(node);
    const shown = this.#children(shadow);
    this.#hosts.pop();
    return [hast("div", shown)];
  }

  #plain(node: Element): ElementContent[] {
    const isStruck = /line-through/i.test(attribute(node, "style")) && !isBlock(node.tagName);
    const tag = isStruck ? "del" : (RENAMED.get(node.tagName) ?? node.tagName);
    const children = this.#children(node);
    if (tag === "li") return [hast(tag, children, { value: attribute(node, "value") })];
    if (!isBlock(tag))
      return tag === "br" || (/^(b|strong|i|em|del|s|strike|q)$/.test(tag) && children.length > 0)
        ? [hast(tag, children)]
        : children;
    if (/^(p|hr|li|dt|dd|legend|figcaption|center|tr|td|th)$/.test(tag)) return [hast(tag, children)];
    // Boxes around nothing but blocks are left out: there are many of them.
    const solid = children.filter((child) => child.type !== "text" || child.value.trim() !== "");
    return solid.every((child) => child.type === "element" && isBlock(child.tagName))
      ? solid
      : [hast("div", children)];
  }

  /** A list or a quotation. Items of ordered lists get their numbers. */
  #nesting(node: Element): ElementContent {
    this.#nested += 1;
    const children = this.#children(node);
    this.#nested -= 1;
    const items = children
      .filter((child) => child.type === "element")
      .filter(({ tagName }) => tagName === "li");
    if (this.#nested >= CONTENT_LIMITS.nested) for (const item of items) item.tagName = "div";
    if (this.#nested >= CONTENT_LIMITS.nested) return hast("div", children);
    const step = hasAttribute(node, "reversed") ? -1 : 1;
    let number = Number.parseInt(attribute(node, "start") || String(step < 0 ? items.length : 1), 10) || 0;
    for (const { properties } of items) {
      const own = Number.parseInt(String(properties["value"]), 10);
      number = Number.isNaN(own) ? number : own;
      properties["value"] = node.tagName === "ol" ? String(number) : undefined;
      number += step;
    }
    return hast(RENAMED.get(node.tagName) ?? node.tagName, children);
  }

  /** Addresses are written out. A link that leads nowhere else is its text. */
  #link(node: Element): ElementContent[] {
    const isFrame = node.tagName !== "a";
    const href = attribute(node, isFrame ? "src" : "href").trim();
    const named = [hastText(attribute(node, "title") || attribute(node, "name"))];
    const url = href === "" || href.startsWith("#") ? undefined : parsedUrl(href, this.#base);
    const label = isFrame ? named : this.#children(node);
    if (!url || !/^(https?|mailto):$/.test(url.protocol) || url.href.length > CONTENT_LIMITS.link)
      return isFrame ? [] : [hast("span", label)];
    return [hast("a", label, { href: url.href.replaceAll("(", "%28").replaceAll(")", "%29") })];
  }

  /** The name of a part that the button shows, or a word of a sentence. Other buttons do something. */
  #button(node: Element): ElementContent[] {
    const children = inOneLine(this.#children(node));
    if (/^(h[1-6]|summary|dt|legend|p)$/.test(node.parentNode?.nodeName ?? "")) return children;
    const isName = ["aria-controls", "data-target", "data-bs-target"].some((name) =>
      hasAttribute(node, name),
    );
    const isShown = (isName || attribute(node, "role") === "tab") && hasWords(nodeText(node));
    return isShown ? [hast("p", [hast("strong", children)])] : [];
  }

  /** State of a checkbox in a list or table. Other fields are for people who fill them in. */
  #checkbox(node: Element): ElementContent[] {
    const isEntry = /^(li|td|p|label)$/.test(node.parentNode?.nodeName ?? "");
    if (attribute(node, "type") !== "checkbox" || !isEntry) return [];
    return [hastText(hasAttribute(node, "checked") ? "[x] " : "[ ] ")];
  }

  #slotted(slot: Element): ElementContent[] {
    const host = this.#hosts.pop();
    const light = (host ? childNodes(host) : []).filter(
      (one) =>
        !this.#slots.has(one) && (isElement(one) ? attribute(one, "slot") : "") === attribute(slot, "name"),
    );
    for (const one of light) this.#slots.add(one);
    const shown = light.flatMap(this.convert);
    if (host) this.#hosts.push(host);
    return shown.length > 0 ? shown : this.#children(slot);
  }
}

/** Lists above the heading of a page that have nothing but many links. */
function listsOfLinks(elements: readonly Element[]): Element[] {
  const length = (...nodes: Element[]): number => nodes.map(nodeText).join("").replace(/\s/g, "").length;
  const heading = elements.findIndex(({ tagName }) => tagName === "h1");
  return elements.slice(0, Math.max(heading, 0)).filter((node) => {
    if (!/^[uo]l$/.test(node.tagName) || node.parentNode?.nodeName === "li") return false;
    const links = descendants(node).filter(({ tagName }) => tagName === "a");
    return links.length >= 8 && length(...links) >= 0.9 * length(node);
  });
}

/** Blocks as phrases with line breaks between them, as a cell of a table or a heading needs them. */
function inOneLine(nodes: readonly ElementContent[]): ElementContent[] {
  const lineBreak = hast("br", []);
  const phrases = (node: ElementContent): ElementContent[] => {
    if (node.type !== "element") return [node];
    const { tagName: tag, children, properties } = node;
    const [code] = children;
    if (tag === "pre" && code?.type === "text")
      return code.value
        .split("\n")
        .flatMap((line) => [lineBreak, hast("code", [hastText(line)])])
        .concat(lineBreak);
    if (!isBlock(tag)) return [{ ...node, children: inOneLine(children) }];
    const bullet =
      tag === "li" ? [hastText(properties["value"] ? `${String(properties["value"])}. ` : "• ")] : [];
    return [lineBreak, ...bullet, ...inOneLine(children), lineBreak];
  };
  const isBreak = (node?: ElementContent): boolean => node?.type === "element" && node.tagName === "br";
  const isBlank = (node: ElementContent): boolean => node.type === "text" && node.value.trim() === "";
  const line = nodes.flatMap(phrases);
  const hasBreak = line.some(isBreak);
  const ends = [
    line.findIndex((one) => !isBreak(one) && !isBlank(one)),
    line.findLastIndex((one) => !isBreak(one) && !isBlank(one)),
  ];
  const inner = line.filter(
    (node, index) =>
      (!isBreak(node) && !isBlank(node)) || (index > (ends[0] ?? 0) && index < (ends[1] ?? 0)) || !hasBreak,
  );
  const solid = inner.filter(
    (node, index) => !isBlank(node) || (!isBreak(inner[index - 1]) && !isBreak(inner[index + 1])),
  );
  return solid.filter((node, index) => !isBreak(node) || !isBreak(solid[index - 1]));
}

/** `10^6`, `x_1`. Notes stand in brackets, and ordinals such as 1st as they are. */
function raised(node: Element, children: ElementContent[]): ElementContent[] {
  const shown = nodeText(node).trim();
  if (!hasWords(shown) || /^(st|nd|rd|th|er|re|e|o|a|tm|sm|®|©)$/i.test(shown)) return children;
  if (childElements(node).some(({ tagName }) => tagName === "a"))
    return shown.startsWith("[") ? children : [hastText("["), ...children, hastText("]")];
  const sign = node.tagName === "sup" ? "^" : "_";
  if (/^[-−+]?[\p{L}\p{N}]+$/u.test(shown)) return [hastText(sign), ...children];
  return [hastText(`${sign}(`), ...children, hastText(")")];
}

/** A formula as TeX, if the page has that, and otherwise as its signs. */
function formula(node: Element): string {
  const isScript = node.tagName === "script";
  const source = isScript ? node : descendants(node).find((one) => /tex/i.test(attribute(one, "encoding")));
  const tex = source ? childNodes(source).map(nodeText).join("") : attribute(node, "alttext");
  const bare = oneLine(
    tex
      .trim()
      .replace(/^\{\\(?:display|text)style([^]*)\}$/, "$1")
      .trim(),
    10_000,
  );
  if (bare === "") return signs(node);
  const mark = /mode=display|^block$/.test(attribute(node, isScript ? "type" : "display")) ? "$$" : "$";
  return mark + bare + mark;
}

/** MathML in one line. */
function signs(node: Node): string {
  if ("value" in node) return node.value.trim();
  const parts = childNodes(node)
    .map(signs)
    .filter((part) => part !== "");
  const between = { msup: "^", msub: "_", mover: "^", munder: "_", mfrac: ")/(" }[node.nodeName] ?? "";
  const whole = parts.join(between);
  return node.nodeName === "mfrac" ? `(${whole})` : node.nodeName === "msqrt" ? `√(${whole})` : whole;
}
