/** Changes one member of a JSON text and leaves every other byte as it is, comments included. */
import { isDeepStrictEqual } from "node:util";
import type { Edit, Node } from "jsonc-parser";
import { applyEdits, createScanner, findNodeAtLocation, stripComments } from "jsonc-parser";
import { parseJson } from "../../config/load.ts";
import { memberOf } from "../../core/unknown.ts";

export type EditedText = { ok: true; text: string } | { ok: false; problem: string };

/** Sets the member at `path`. Everything else stays as it is, byte for byte, comments included. */
export const setMember = (text: string, path: readonly [string, ...string[]], value: unknown): EditedText =>
  edited(text, path, value, (root) => {
    let node = root;
    const below = (index: number): unknown =>
      path.slice(index).reduceRight((inner: unknown, name) => ({ [name]: inner }), value);
    for (const [index, key] of path.entries()) {
      // Some clients write `null` for a block without servers.
      if (node.type === "null") return [replacement(text, node, below(index))];
      if (node.type !== "object") return undefined;
      const next = findNodeAtLocation(node, [key]);
      if (next === undefined) {
        const inner = below(index + 1);
        return addition(text, node, (indent) => `${JSON.stringify(key)}: ${layout(text, inner, indent)}`);
      }
      node = next;
    }
    return [replacement(text, node, value)];
  });

const replacement = (text: string, { offset, length }: Node, value: unknown): Edit => ({
  offset,
  length,
  content: layout(text, value, lineIndent(text, offset)),
});

/** A text with an object in it: one below its comments, if it has nothing else. */
export const withObject = (text: string): string =>
  stripComments(text).trim() === "" ? `${text.trim() === "" ? "" : `${text.trimEnd()}\n`}{\n}\n` : text;

/** Adds an element to the list at `key`. Creates the list if it is missing. */
export function addElement(text: string, key: string, value: unknown): EditedText {
  const list = elements(text, key);
  if (list === undefined) return setMember(text, [key], [value]);
  return edited(text, [key], [...list, value], (root) => {
    const node = findNodeAtLocation(root, [key]);
    return node && addition(text, node, (indent) => layout(text, value, indent));
  });
}

export function elements(text: string, key: string): unknown[] | undefined {
  const value = valueAt(text, [key]);
  return Array.isArray(value) ? value : undefined;
}

/** Takes out the member or element at `path`, and the comma it needed. */
export function removeAt(text: string, path: readonly [string, ...(string | number)[]]): EditedText {
  const list = path.slice(0, -1);
  const index = path.at(-1);
  const before = valueAt(text, list);
  const after = Array.isArray(before) ? before.filter((_, place) => place !== index) : undefined;
  const checked = after === undefined ? path : list;
  return edited(text, checked, after, (root) => {
    const node = findNodeAtLocation(root, [...path]);
    return node && removal(text, node.parent?.type === "property" ? node.parent : node);
  });
}

/** Reads the value at a path; `undefined` if it does not exist or the text is not JSON. */
export function valueAt(text: string, path: readonly (string | number)[]): unknown {
  const parsed = parseJson(text);
  let value = parsed.ok ? parsed.value : undefined;
  for (const key of path) value = memberOf(value, key);
  return value;
}

/** Applies the edits, and takes the result only when a reader finds `value` at `path` and nothing else changed. */
function edited(
  text: string,
  path: readonly (string | number)[],
  value: unknown,
  edit: (root: Node) => Edit[] | undefined,
): EditedText {
  const parsed = parseJson(text);
  if (!parsed.ok) return { ok: false, problem: `it is not valid JSON, ${parsed.place}` };
  if (parsed.root.type !== "object") return { ok: false, problem: "it does not hold a JSON object" };
  const edits = edit(parsed.root);
  if (edits === undefined) return { ok: false, problem: `its "${path[0]}" is not what clients write there` };
  const result = applyEdits(text, edits);
  return parseJson(result).ok && isDeepStrictEqual(plain(valueAt(result, path)), plain(value))
    ? { ok: true, text: result }
    : { ok: false, problem: `its "${path[0]}" is there twice` };
}

const plain = (value: unknown): unknown => (value === undefined ? value : JSON.parse(JSON.stringify(value)));

/** Adds an item after the last one of an object or list. A comment on the last item's line stays beside it. */
function addition(text: string, container: Node, body: (indent?: string) => string): Edit[] | undefined {
  if (container.type !== "object" && container.type !== "array") return undefined;
  const last = container.children?.at(-1);
  const start = text.slice(container.offset, last?.offset ?? container.offset + container.length);
  if (last === undefined ? !text.trim().includes("\n") : !start.includes("\n"))
    return inline(text, container, body());
  const own = last && /(?:^|\n)([ \t]*)$/.exec(text.slice(0, last.offset))?.[1];
  const indent = own ?? lineIndent(text, container.offset) + indentUnit(text);
  const item = `${eolOf(text)}${indent}${body(indent)}`;
  if (last === undefined) {
    const close = container.offset + container.length - 1;
    const isBlank = text.slice(container.offset + 1, close).trim() === "";
    // Keeps the lines of an empty container, so that it has its form again without the item.
    const isSplit = !isBlank || text.slice(container.offset, close).includes("\n");
    const outer = isSplit ? "" : `${eolOf(text)}${lineIndent(text, container.offset)}`;
    return [{ offset: container.offset + 1, length: 0, content: item + outer }];
  }
  const end = last.offset + last.length;
  const comma = commaAfter(text, end);
  const behind = comma === undefined ? end : comma + 1;
  const [comment = ""] = /^[ \t]*(?:\/\/.*|\/\*[^*\n]*\*\/[ \t]*)?(?=\r?\n)/.exec(text.slice(behind)) ?? [];
  const place = behind + comment.trimEnd().length;
  if (comma !== undefined) return [{ offset: place, length: 0, content: `${item},` }];
  if (place === end) return [{ offset: end, length: 0, content: `,${item}` }];
  return [
    { offset: end, length: 0, content: "," },
    { offset: place, length: 0, content: item },
  ];
}

/** Adds an item to an object or list that is written in one line. */
function inline(text: string, container: Node, item: string): Edit[] {
  const last = container.children?.at(-1);
  if (last === undefined) return [{ offset: container.offset + 1, length: 0, content: item }];
  const end = last.offset + last.length;
  const comma = commaAfter(text, end);
  if (comma === undefined) return [{ offset: end, length: 0, content: `, ${item}` }];
  return [{ offset: comma + 1, length: 0, content: ` ${item},` }];
}

function removal(text: string, item: Node): Edit[] {
  const siblings = item.parent?.children ?? [];
  const previous = siblings[siblings.indexOf(item) - 1];
  const end = item.offset + item.length;
  const after = commaAfter(text, end);
  const comma = after ?? (previous && commaAfter(text, previous.offset + previous.length));
  const rest = text.slice(after === undefined ? end : after + 1);
  const before = text.slice(0, item.offset);
  // Keeps the line break after a line comment, which would swallow the following text.
  const filled = before.trimEnd();
  const isComment = filled.slice(filled.lastIndexOf("\n") + 1).includes("//");
  const keepsLine = isComment && before.includes("\n", filled.length) && !/^[ \t]*\r?\n/.test(rest);
  const start = keepsLine ? before.lastIndexOf("\n") + 1 : filled.length;
  const remove = { offset: start, length: end - start, content: "" };
  return comma === undefined ? [remove] : [remove, { offset: comma, length: 1, content: "" }];
}

function commaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const next = scanner.getTokenOffset();
  return text[next] === "," ? next : undefined;
}

export const eolOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n");
const indentUnit = (text: string): string => /^([ \t]+)["\]}]/m.exec(text)?.[1] ?? "  ";

const lineIndent = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", offset - 1) + 1))?.[0] ?? "";

/** Writes a value in lines that are indented, or in one line. */
const layout = (text: string, value: unknown, indent?: string): string =>
  indent === undefined
    ? JSON.stringify(value, null, 1).replaceAll(/\n */g, " ")
    : JSON.stringify(value, null, indentUnit(text)).replaceAll("\n", eolOf(text) + indent);
