/** Content within a line: formulas, raised and lowered text, pictures, and blocks joined into one line. */
import type { ElementContent } from "hast";
import { oneLine } from "../../core/text.ts";
import type { Element, Node } from "./tree.ts";
import {
  attribute,
  childElements,
  childNodes,
  descendants,
  hasWords,
  hast,
  hastText,
  isBlock,
  nodeText,
} from "./tree.ts";

/** Blocks as phrases with line breaks between them, as a cell of a table or a heading needs them. */
export function inOneLine(nodes: readonly ElementContent[]): ElementContent[] {
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
export function raised(node: Element, children: ElementContent[]): ElementContent[] {
  const shown = nodeText(node).trim();
  if (!hasWords(shown) || /^(st|nd|rd|th|er|re|e|o|a|tm|sm|®|©)$/i.test(shown)) return children;
  if (childElements(node).some(({ tagName }) => tagName === "a"))
    return shown.startsWith("[") ? children : [hastText("["), ...children, hastText("]")];
  const sign = node.tagName === "sup" ? "^" : "_";
  if (/^[-−+]?[\p{L}\p{N}]+$/u.test(shown)) return [hastText(sign), ...children];
  return [hastText(`${sign}(`), ...children, hastText(")")];
}

/** A formula as TeX, if the page has that, and otherwise as its signs. */
export function formula(node: Element): string {
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
