/** Checks options that callers without types may pass, and finds the names they may have meant. */
import { ConfigurationError } from "./errors.ts";
import { isObject } from "./unknown.ts";

/** Kinds of values, as messages name them, with the test for each. */
const OPTION_KINDS = {
  anything: () => true,
  "a text": (value) => typeof value === "string",
  "a number": (value) => typeof value === "number",
  "true or false": (value) => typeof value === "boolean",
  "a function": (value) => typeof value === "function",
  "a list": (value) => Array.isArray(value),
  "a list of non-empty texts": (value) =>
    Array.isArray(value) && value.every((item) => typeof item === "string" && item.trim() !== ""),
  "a list of objects { folder, at }": (value) =>
    Array.isArray(value) && value.every((item) => hasAll("string", item, "folder", "at")),
  "a plain object": isPlainObject,
  "a plain object of texts": (value) =>
    isPlainObject(value) &&
    memberValues(value).every((item) => typeof item === "string" || item === undefined),
  "an object { accessKeyId, secretAccessKey }": (value) =>
    hasAll("string", value, "accessKeyId", "secretAccessKey"),
  "an object with { input, output } for each model": (value) =>
    isPlainObject(value) && memberValues(value).every((price) => hasAll("number", price, "input", "output")),
  "a plain object or false": (value) => value === false || isPlainObject(value),
  "a schema, or a list of them": (value) => typeof value === "object" || typeof value === "function",
  "a model, or a text such as 'anthropic:NAME'": (value) =>
    typeof value === "string"
      ? value.trim() !== ""
      : typeof value === "function" || hasMethods(value, "invoke"),
  "a checkpointer, or true or false": (value) =>
    typeof value === "boolean" || hasMethods(value, "getTuple", "put"),
  "a store, such as `new InMemoryStore()`": (value) => hasMethods(value, "get", "put", "search"),
} as const satisfies Record<string, (value: unknown) => boolean>;

type OptionKind = keyof typeof OPTION_KINDS;

/** The kind of each option of an object: the compiler refuses a table that lacks one. `or null`: null has a meaning. */
export type OptionTable<Options> = { readonly [Name in keyof Options]-?: string };

/**
 * Reads the options of callers whose types nobody checked. An option that is `null` counts as left out.
 *
 * @param owner the name of the function or class in messages.
 * @throws ConfigurationError `UNKNOWN_OPTION` for names that are not in the table, `INVALID_OPTION` for values
 *   of another kind. Neither shows a value, which may be a secret.
 */
export function readOptions<Options extends object>(
  owner: string,
  given: Options | null | undefined,
  table: OptionTable<NoInfer<Options>>,
): Options {
  const options = given ?? {};
  if (!isPlainObject(options)) {
    const problem = `${owner} takes a plain object of options; got ${describeKind(given)}.`;
    throw new ConfigurationError("INVALID_OPTION", problem);
  }
  const kinds: Readonly<Record<string, string>> = table;
  const known = Object.keys(kinds);
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(kinds, name));
  if (unknown.length > 0) {
    const problems = unknown.map((name) => unknownName(owner, name, known));
    throw new ConfigurationError("UNKNOWN_OPTION", problems.join(" "));
  }
  const named = Object.entries(options).filter(([name, value]) => {
    const kind = kinds[name] ?? "anything";
    const takesNull = kind.endsWith(OR_NULL);
    if (value === null || value === undefined) return value === null && takesNull;
    const plain = (takesNull ? kind.slice(0, -OR_NULL.length) : kind) as OptionKind; // the two forms of a table's values
    if (OPTION_KINDS[plain](value)) return true;
    // Names the first member, too, if only that is wrong.
    const isOuterRight = Array.isArray(value) ? plain.startsWith("a list") : isPlainObject(value);
    const inner = isOuterRight ? memberValues(value)[0] : undefined;
    const got = describeKind(value) + (inner === undefined ? "" : ` with ${describeKind(inner)}`);
    const problem = `${owner}: '${name}' takes ${kind}; got ${got}.`;
    throw new ConfigurationError("INVALID_OPTION", problem);
  });
  return Object.fromEntries(named) as Options; // its own entries, without those that are left out
}

/**
 * Refuses names that are known ones but for underscores and letter case, in objects that may have others.
 *
 * @throws ConfigurationError `UNKNOWN_OPTION`
 */
export function checkSpelling(owner: string, names: readonly string[], known: readonly string[]): void {
  const misspelt = names.find((name) => !known.includes(name) && sameLetters(name, known) !== undefined);
  if (misspelt !== undefined)
    throw new ConfigurationError("UNKNOWN_OPTION", unknownName(owner, misspelt, known));
}

const OR_NULL = " or null";

function unknownName(owner: string, name: string, known: readonly string[]): string {
  const problem = `${owner} has no option '${name}'`;
  const same = sameLetters(name, known);
  if (same !== undefined) return `${problem}; it is called '${same}' here.`;
  const meant = closestName(name, known);
  return meant === undefined
    ? `${problem}; its options are ${known.join(", ")}.`
    : `${problem}; did you mean '${meant}'?`;
}

function sameLetters(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string): string => text.replaceAll("_", "").toLowerCase();
  return known.find((other) => plain(other) === plain(name));
}

const memberValues = (value: unknown): unknown[] => Object.values(Object(value));

const hasAll = (type: "string" | "number", value: unknown, ...names: string[]): boolean =>
  isPlainObject(value) && names.every((name) => typeof Reflect.get(Object(value), name) === type);

const hasMethods = (value: unknown, ...names: string[]): boolean =>
  isObject(value) && names.every((name) => typeof Reflect.get(value, name) === "function");

function isPlainObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function describeKind(value: unknown): string {
  if (value === null || typeof value === "boolean" || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "a text";
  if (typeof value !== "object") return `a ${typeof value}`;
  return isPlainObject(value) ? "a plain object" : `an object of class ${value.constructor.name}`;
}

/** The likeliest of `names` first: spelt nearly as `name`, or with it as a part between underscores. */
export function closestNames(name: string, names: Iterable<string>, limit = 3): string[] {
  const wanted = name.toLowerCase();
  const found = [...names].flatMap((candidate) => {
    const known = candidate.toLowerCase();
    const most = Math.max(2, candidate.length / 4);
    const isFar = Math.abs(wanted.length - known.length) > most;
    const distance = isFar ? Infinity : editDistance(wanted, known);
    if (distance <= most && distance < candidate.length) return [{ candidate, distance }];
    return known.split(/_+/).includes(wanted) ? [{ candidate, distance: known.length }] : [];
  });
  return found
    .sort((a, b) => a.distance - b.distance)
    .slice(0, limit)
    .map(({ candidate }) => candidate);
}

/** The likeliest one. */
export const closestName = (name: string, names: Iterable<string>): string | undefined =>
  closestNames(name, names, 1)[0];

/** A question about the likeliest one, after a space; empty if none is near. */
export function didYouMean(name: string, names: Iterable<string>, before = ""): string {
  const meant = closestName(name, names);
  return meant === undefined ? "" : ` Did you mean ${before}${meant}?`;
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
