import { getNodeValue, parseTree, type Node, type ParseError } from "jsonc-parser";

/** A JSON text with comments and trailing commas: its value and its tree, or where it is broken. */
export type ParsedJson = { ok: true; value: unknown; root: Node } | { ok: false; place: string };

/** Never quotes the text: a secret may stand where it is broken. */
export function parseJson(text: string): ParsedJson {
  const errors: ParseError[] = [];
  try {
    const root = parseTree(text, errors, { allowTrailingComma: true });
    const [first] = errors;
    if (root !== undefined && first === undefined) return { ok: true, value: getNodeValue(root), root };
    return { ok: false, place: placeOf(text, first?.offset ?? 0) };
  } catch {
    // The parser is recursive: a text that is nested too deeply exhausts the stack.
    return { ok: false, place: "nested too deeply" };
  }
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
