/** Changes one member of a YAML text and leaves every other line as it is, comments included. */
import { isDeepStrictEqual } from "node:util";
import { type Pair, type YAMLMap, isMap, isPair, isScalar, parseDocument, stringify } from "yaml";
import { type EditedText, eolOf } from "./json-text.ts";
import { isObject, memberOf, recordOf } from "../../core/unknown.ts";

/** The member at a path of names. `undefined`: it does not exist, or the text is not YAML. */
export function yamlValueAt(text: string, ...path: string[]): unknown {
  const parsed = parse(text);
  return parsed.ok ? path.reduce(memberOf, parsed.value) : undefined;
}

/**
 * Sets the member `name` below the member `key`, after the existing ones. `undefined` removes it; with
 * `dropsEmpty`, removing the last one also removes `key`.
 */
export function setYamlMember(
  text: string,
  key: string,
  name: string,
  value: object | undefined,
  dropsEmpty = false,
): EditedText {
  const parsed = parse(text);
  if (!parsed.ok) return { ok: false, problem: parsed.problem };
  const alien = { ok: false, problem: `its "${key}" is not what clients write there` } as const;
  const { top } = parsed;
  if (top === undefined && text.trim() !== "" && parsed.value !== null)
    return { ok: false, problem: "it does not hold a YAML map" };
  const pair = top && findPair(top, key);
  const members = pair?.value;
  const isEmpty = isScalar(members) ? members.value === null : isMap(members) && members.items.length === 0;
  if (pair !== undefined && !isMap(members) && !isEmpty) return alien;
  const result =
    pair !== undefined && isMap(members) && !isEmpty
      ? members.flow
        ? undefined
        : value === undefined && dropsEmpty && members.items.length === 1
          ? text.slice(0, pairStart(pair)) + text.slice(lineEnd(text, pairEnd(pair)))
          : withMember(text, members, name, value)
      : value === undefined
        ? text
        : withSection(text, pair, key, { [name]: value });
  if (result === undefined) return alien;
  const after = parse(result);
  const expected = { ...recordOf(parsed.value), [key]: { ...recordOf(memberOf(parsed.value, key)) } };
  const section = expected[key];
  if (isObject(section)) {
    if (value === undefined) Reflect.deleteProperty(section, name);
    else Reflect.set(section, name, value);
  }
  const isMeant = after.ok && isDeepStrictEqual(withoutEmpty(after.value, key), withoutEmpty(expected, key));
  return isMeant ? { ok: true, text: result } : alien;
}

/** The text with the member behind the last one of a map, in its place, or without it. */
function withMember(text: string, members: YAMLMap, name: string, value: object | undefined): string {
  const indent = " ".repeat(columnAt(text, pairStart(members.items[0])));
  const found = findPair(members, name);
  const block = value === undefined ? "" : indented({ [name]: value }, indent, text);
  if (found === undefined) {
    const end = lineEnd(text, pairEnd(members.items.at(-1)));
    return text.slice(0, end) + separator(text, end) + block + text.slice(end);
  }
  const start = pairStart(found) - columnAt(text, pairStart(found));
  const rest = text.slice(lineEnd(text, pairEnd(found)));
  // Without members the value would be null, so an empty map is written.
  const isLast = members.items.length === 1 && value === undefined;
  if (!isLast) return text.slice(0, start) + block + rest;
  return `${text.slice(0, start).trimEnd()} {}${eolOf(text)}${rest}`;
}

/** The text with a map in the place of an empty value, or at its end. */
function withSection(text: string, pair: Pair | undefined, key: string, members: object): string {
  if (pair === undefined) return text + separator(text, text.length) + indented({ [key]: members }, "", text);
  const end = lineEnd(text, pairEnd(pair));
  return text.slice(0, pairStart(pair)) + indented({ [key]: members }, "", text) + text.slice(end);
}

function indented(value: object, indent: string, text: string): string {
  // A line that is folded would have to be put together again by whoever changes it.
  const lines = stringify(value, {
    lineWidth: 0,
    indent: "  ".length,
    defaultStringType: "QUOTE_DOUBLE",
    defaultKeyType: "PLAIN",
  });
  return lines.replaceAll(/^(?=.)/gm, indent).replaceAll("\n", eolOf(text));
}

const separator = (text: string, place: number): string =>
  place === 0 || text[place - 1] === "\n" ? "" : eolOf(text);

/** Behind the line break of the line in which `place` is, or is the beginning of the next one. */
function lineEnd(text: string, place: number): number {
  if (place > 0 && text[place - 1] === "\n") return place;
  const end = text.indexOf("\n", place);
  return end === -1 ? text.length : end + 1;
}

const columnAt = (text: string, place: number): number => place - (text.lastIndexOf("\n", place - 1) + 1);

const pairStart = (pair: Pair | undefined): number => (isScalar(pair?.key) ? (pair.key.range?.[0] ?? 0) : 0);

/** Returns the end offset of a pair's value, without the text after it. */
function pairEnd(pair: Pair | undefined): number {
  const range = memberOf(pair?.value, "range");
  const end: unknown = Array.isArray(range) ? range[1] : undefined;
  return typeof end === "number" ? end : pairStart(pair);
}

const findPair = (map: YAMLMap, name: string): Pair | undefined =>
  map.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === name);

function parse(
  text: string,
): { ok: true; value: unknown; top: YAMLMap | undefined } | { ok: false; problem: string } {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) {
    const [place] = error.linePos ?? [];
    return {
      ok: false,
      problem: `it is not valid YAML${place ? `, line ${place.line}, column ${place.col}` : ""}`,
    };
  }
  try {
    const value: unknown = document.toJS();
    return { ok: true, value, top: isMap(document.contents) ? document.contents : undefined };
  } catch {
    // Its aliases stand for more than it may hold.
    return { ok: false, problem: "it is not valid YAML" };
  }
}

/** A section without members is as good as none. */
function withoutEmpty(value: unknown, key: string): unknown {
  const { [key]: section, ...rest } = recordOf(value);
  return Object.keys(recordOf(section)).length === 0 ? rest : { ...rest, [key]: section };
}
