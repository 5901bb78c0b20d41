/** Reads code blocks: their lines, without the numbers beside them, and their language. */
import type { Element as HastElement } from "hast";
import type { Element, Node } from "./tree.ts";
import {
  attribute,
  childElements,
  childNodes,
  hasAttribute,
  hast,
  hastText,
  isBlock,
  isElement,
  isMarked,
  nodeText,
} from "./tree.ts";

export const isLineNumber = (node: Element): boolean =>
  isMarked(node, "lineNumbers") || /user-select\s*:\s*none/i.test(attribute(node, "style"));

/** True if each child is a line, and none has a line feed. */
function hasLines(node: Element): boolean {
  const lines = childElements(node).filter(
    (child) =>
      isMarked(child, "codeLines") ||
      hasAttribute(child, "data-line") ||
      /display\s*:\s*(block|flex|grid)/i.test(attribute(child, "style")),
  );
  return (
    lines.length > 1 &&
    !childNodes(node).some((child) => "value" in child && child.value.includes("\n")) &&
    !lines.some((line) => nodeText(line).endsWith("\n"))
  );
}

export const isCodeBlock = (node: Element): boolean =>
  /^(pre|listing|xmp|plaintext)$/.test(node.tagName) ||
  isMarked(node, "codeBlocks") ||
  (node.tagName === "code" &&
    (hasLines(node) || childElements(node).some(({ tagName }) => tagName === "br")));

export function codeText(block: Element): string {
  const parts: string[] = [];
  const breakLine = (): void => void (parts.at(-1)?.endsWith("\n") === false && parts.push("\n"));
  const read = (node: Node, isOwnLine: boolean): void => {
    if ("value" in node) return void (node.value !== "" && parts.push(node.value));
    if (!isElement(node) || isLineNumber(node) || /^(button|script|style|template|svg)$/.test(node.tagName))
      return;
    if (node.tagName === "br") return void parts.push("\n");
    if (isBlock(node.tagName) || isOwnLine) breakLine();
    const areLines = hasLines(node);
    for (const child of childNodes(node)) read(child, areLines && isElement(child));
    if (isBlock(node.tagName)) breakLine();
    else if (isOwnLine) parts.push("\n");
  };
  read(block, false);
  const text = parts
    .join("")
    .replace(/\r\n?/g, "\n")
    .replaceAll("\u00A0", " ")
    .replace(/[\u200B\uFEFF]/g, "");
  return text.replace(/^(?:[ \t]*\n)+/, "").trimEnd();
}

/** A block as hast. Highlighters name its language in a class, of the block or of an element around it. */
export function codeElement(block: Element): HastElement {
  const elements = [block, ...childElements(block).slice(0, 1)];
  for (let at = block.parentNode, level = 0; at && isElement(at) && level < 2; at = at.parentNode, level += 1)
    elements.push(at);
  const marks = elements.flatMap((one) => [
    ...one.attrs.flatMap(({ name, value }) => (/^data-lang(uage)?$/.test(name) ? `lang-${value}` : [])),
    attribute(one, "class"),
  ]);
  const [, language] =
    /(?:^|\s)(?:language|lang|highlight-source|highlight|brush)(?:-|:\s?)(?!default|none|text|plain)([\w+#-]{1,20})/.exec(
      marks.join(" "),
    ) ?? [];
  return hast("pre", [hastText(codeText(block))], { language });
}
