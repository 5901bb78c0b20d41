/** Bounds of JSON that comes from outside, and its canonical form. */
import { isObject } from "./unknown.ts";

/**
 * Limits of a message. Schema checks descend by calls, so a much deeper one overflows the stack. Parsing and checking
 * 200,000 members takes a second, 10,000 a few milliseconds.
 */
const MESSAGE_LIMITS = { depth: 200, values: 10_000 };
const tooDeep = ({ depth }: typeof MESSAGE_LIMITS): string =>
  `Invalid request: the message is nested deeper than ${depth} levels`;
const tooMany = ({ values }: typeof MESSAGE_LIMITS): string =>
  `Invalid request: the message has more than ${values} elements and members; put long lists into a file`;

/**
 * Finds a problem of the shape of `value`, as JSON.parse returned it. An array or object counts as many values
 * as it holds, and as one when it is empty.
 */
export function shapeProblem(value: unknown, limits = MESSAGE_LIMITS): string | undefined {
  let level = [value].filter(isObject);
  let values = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth >= limits.depth) return tooDeep(limits);
    const next: object[] = [];
    for (const container of level) {
      const inside: unknown[] = Object.values(container);
      values += Math.max(inside.length, 1);
      if (values > limits.values) return tooMany(limits);
      next.push(...inside.filter(isObject));
    }
    level = next;
  }
  return undefined;
}

/** Finds the same problems in JSON (UTF-8) before it is parsed. It does not check whether the text is JSON. */
export function bytesShapeProblem(json: Uint8Array, limits = MESSAGE_LIMITS): string | undefined {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1;
      values += 1;
    } else if (byte === COMMA) values += 1;
    if (depth > limits.depth) return tooDeep(limits);
    if (values > limits.values) return tooMany(limits);
  }
  return undefined;
}

/** End of the string that starts here; looks only at quotes and the characters before them. */
function endOfString(json: Uint8Array, start: number): number {
  for (let quote = json.indexOf(QUOTE, start + 1); quote !== -1; quote = json.indexOf(QUOTE, quote + 1)) {
    let backslashes = 0;
    while (json[quote - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
  }
  return json.length;
}

const QUOTE = 0x22;
const [BACKSLASH, COMMA, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from("\\,[]{}");

/** JSON with sorted keys: the same text for values that differ in the order of their keys alone. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

/** Longest message of a client, in bytes: to decode, parse and check one of 4 MB takes up to 240 ms. */
export const MAX_MESSAGE_BYTES = 768 * 1024;

export const MESSAGE_TOO_LONG = `Invalid request: the message must not exceed ${MAX_MESSAGE_BYTES} bytes; put long texts into a file and name it`;

declare const parsedType: unique symbol;

/** Text that holds a value of type T as JSON. Only `toJson` makes it, so parsing it returns a T. */
export type Json<T> = string & { readonly [parsedType]: T };

export const toJson = <T>(value: T): Json<T> => JSON.stringify(value) as Json<T>;

/** Throws SyntaxError for a text that `toJson` did not write. */
export const fromJson = <T>(json: Json<T>): T => JSON.parse(json) as T; // written by `toJson` from a T
