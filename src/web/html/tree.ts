/** Reads HTML into trees of bounded size, and looks around in them. `markup.json` names the classes of generators. */
import type { Element as HastElement, ElementContent } from "hast";
import { Parser } from "htmlparser2";
import { type DefaultTreeAdapterTypes as Tree, defaultTreeAdapter, parse } from "parse5";
import { byIdentity } from "../../core/by-identity.ts";
import markup from "./markup.json" with { type: "json" };

export type Node = Tree.Node;
export type Element = Tree.Element;

/** Browsers do not nest deeper, either. A larger page is read piece by piece. */
const TREE_LIMITS = { depth: 512, attributes: 256, nodes: 100_000, piece: 100_000 };

/** A page in pieces of about equal size, each inside the elements that surround it. Undefined if it nests too deeply. */
export function cutPage(html: string): string[] | undefined {
  const pieces: string[] = [];
  const open: { name: string; tag: string }[] = [];
  let [from, around, isTooMuch, solid] = [0, "", false, 0];
  const isSolid = (name: string): boolean => markup.indivisible.includes(name);
  const parser = new Parser({
    onopentag(name, attributes) {
      const tag = html.slice(parser.startIndex, parser.endIndex + 1);
      open.push({ name, tag: tag.length > 500 ? `<${name}>` : tag });
      solid += isSolid(name) ? 1 : 0;
      isTooMuch ||=
        open.length > TREE_LIMITS.depth || Object.keys(attributes).length > TREE_LIMITS.attributes;
      if (isTooMuch) parser.pause();
    },
    onclosetag(name) {
      open.pop();
      solid -= isSolid(name) ? 1 : 0;
      const size = parser.endIndex + 1 - from;
      if (size < TREE_LIMITS.piece || (solid > 0 && size < 5 * TREE_LIMITS.piece)) return;
      pieces.push(around + html.slice(from, (from = parser.endIndex + 1)));
      around = open.map(({ tag }) => tag).join("");
    },
  });
  parser.end(html);
  return isTooMuch ? undefined : [...pieces, around + html.slice(from)];
}

/** The tree of a page. @throws RangeError if the rules of HTML make far more of a page than it has. */
export function parsePage(html: string): Tree.Document {
  let [nodes, depth] = [0, 0];
  const treeAdapter: typeof defaultTreeAdapter = {
    ...defaultTreeAdapter,
    createElement(...element) {
      if ((nodes += 1) > TREE_LIMITS.nodes || depth > 2 * TREE_LIMITS.depth) throw new RangeError("too much");
      return defaultTreeAdapter.createElement(...element);
    },
    onItemPush: () => void (depth += 1),
    onItemPop: () => void (depth -= 1),
  };
  return parse(html, { treeAdapter, scriptingEnabled: false });
}

/** The text of a page that has no tree: its tags are taken out. */
export function withoutTags(html: string): string {
  const bare = html
    .replace(/<!--[^]*?(?:-->|$)|<(script|style|template|title)\b[^]*?(?:<\/\1\b[^<>]*>?|$)/gi, " ")
    .replace(/<[a-z/!?][^<>]*>?/gi, "\n");
  return nodeText(parse(bare.replaceAll("<", "&lt;")))
    .split("\n")
    .map((line) => line.replace(/\s+/g, " ").trim())
    .filter((line) => line !== "")
    .join("\n");
}

export const childNodes = (node: Node): readonly Node[] =>
  "content" in node ? node.content.childNodes : "childNodes" in node ? node.childNodes : [];
export const isElement = (node: Node): node is Element => "tagName" in node;
export const childElements = (node: Node): Element[] => childNodes(node).filter(isElement);
export const attribute = (node: Element, name: string): string =>
  node.attrs.find((one) => one.name === name)?.value ?? "";
export const hasAttribute = (node: Element, name: string): boolean =>
  node.attrs.some((one) => one.name === name);

/** All text below a node but that of scripts and styles, whether or not it is visible. */
export function nodeText(node: Node): string {
  if ("value" in node) return node.value;
  return /^(script|style|template|noscript)$/.test(node.nodeName)
    ? ""
    : childNodes(node).map(nodeText).join("");
}

/** All elements below a node, in the order of the page. */
export function descendants(node: Node): Element[] {
  const found: Element[] = [];
  const waiting = childElements(node).reverse();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    found.push(next);
    for (const child of childElements(next).reverse()) waiting.push(child);
  }
  return found;
}

const MARKS = new Map(Object.entries(markup).map(([mark, names]) => [mark, new Set([names].flat())]));
const readMarks = byIdentity(({ attrs }: Element): readonly string[] =>
  attrs
    .filter(({ name }) => name === "class" || name === "id")
    .flatMap(({ value }) => value.toLowerCase().split(/\s+/, 50))
    .filter((name) => [...MARKS.values()].some((names) => names.has(name))),
);

/** True if a class or the ID of the element has one of the names of `mark`. */
export const isMarked = (node: Element, mark: keyof typeof markup): boolean =>
  node.attrs.length > 0 && readMarks(node).some((name) => MARKS.get(mark)?.has(name));
export const isBlock = (tag: string): boolean => markup.block.includes(tag);
export const isSilent = (tag: string): boolean => markup.silent.includes(tag);

export const hasWords = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);
export const hast = (
  tagName: string,
  children: ElementContent[],
  properties: HastElement["properties"] = {},
) => ({ type: "element", tagName, properties, children }) satisfies HastElement;
export const hastText = (value: string): ElementContent => ({ type: "text", value });
