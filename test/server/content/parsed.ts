/** What a browser makes of HTML, for tests of renderers. */
import { type DefaultTreeAdapterTypes, parseFragment } from "parse5";

type Node = DefaultTreeAdapterTypes.ChildNode;

interface Parsed {
  /** `tag` or `tag[attribute]`, each once, sorted. */
  used: string[];
  /** Values of `href`. */
  targets: string[];
  text: string;
  /** What the parser found to repair. */
  errors: string[];
}

/** Parses what stands in an `article`. */
export function parsed(html: string): Parsed {
  const errors: string[] = [];
  const fragment = parseFragment(html, {
    sourceCodeLocationInfo: true,
    onParseError: ({ code }) => void errors.push(code),
  });
  const [used, targets, texts] = [new Set<string>(), new Array<string>(), new Array<string>()];
  const visit = (node: Node): void => {
    if ("value" in node) texts.push(node.value);
    if (node.nodeName === "#comment" || node.nodeName === "#documentType") used.add(node.nodeName);
    if (!("tagName" in node)) return;
    used.add(node.tagName);
    for (const { name, value } of node.attrs) {
      used.add(`${node.tagName}[${name}]`);
      if (name === "href") targets.push(value);
    }
    node.childNodes.forEach(visit);
  };
  fragment.childNodes.forEach(visit);
  return { used: [...used].sort(), targets, text: texts.join(""), errors };
}
