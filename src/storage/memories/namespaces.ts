import { isDeepStrictEqual } from "node:util";
import type { ListNamespacesOperation, MatchCondition } from "@langchain/langgraph-checkpoint";
import { InvalidNamespaceError } from "@langchain/langgraph-checkpoint";

/**
 * A namespace as text: each part as a JSON string followed by a comma. No part can look like the end of
 * another, whatever it contains, so a namespace lies below a prefix exactly when its text starts with it.
 */
export const encodeNamespace = (namespace: readonly string[]): string =>
  namespace.map((part) => `${JSON.stringify(part)},`).join("");

export const decodeNamespace = (encoded: string): string[] =>
  JSON.parse(`[${encoded.slice(0, -1)}]`) as string[];

/** Encoded namespaces from `from` up to, not including, `to`. */
export interface NamespaceRange {
  from: string;
  to: string;
}

export function rangeBelow(prefix: readonly string[]): NamespaceRange {
  const from = encodeNamespace(prefix);
  // "#" follows the quotation mark that every part starts with, "-" the comma that every part ends with.
  return { from, to: from === "" ? "#" : `${from.slice(0, -1)}-` };
}

/** Throws where only LangGraph itself puts items, by `batch`. */
export function checkRoot(namespace: readonly string[]): void {
  if (namespace[0] === "langgraph")
    throw unusableNamespace(namespace, 'its first part must not be "langgraph"');
}

/** Throws unless an item can be put there. Unlike other stores, parts may contain dots. */
export function checkAddress(namespace: readonly string[], key: string): void {
  if (namespace.length === 0) throw unusableNamespace(namespace, "it has no part");
  if (namespace.some((part) => typeof part !== "string" || part === ""))
    throw unusableNamespace(namespace, "each part must be a text that is not empty");
  if (typeof key !== "string" || /\p{Surrogate}/u.test(key)) {
    throw new TypeError(
      `The key ${JSON.stringify(key)} cannot be used: it must be well-formed Unicode text.`,
    );
  }
}

const unusableNamespace = (namespace: readonly string[], problem: string): InvalidNamespaceError =>
  new InvalidNamespaceError(`The namespace ${JSON.stringify(namespace)} cannot be used: ${problem}.`);

/** Those of the encoded namespaces that a listing shows. */
export function listedNamespaces(
  stored: readonly string[],
  { matchConditions = [], maxDepth, limit, offset }: ListNamespacesOperation,
): string[][] {
  const matching = stored
    .map(decodeNamespace)
    .filter((namespace) =>
      // `*` stands for any one part.
      matchConditions.every(({ matchType, path }) => {
        const start = matchType === "prefix" ? 0 : namespace.length - path.length;
        return (
          start >= 0 &&
          start + path.length <= namespace.length &&
          path.every((part, index) => part === "*" || part === namespace[start + index])
        );
      }),
    )
    .map((namespace) => namespace.slice(0, maxDepth));
  const cut = [...new Map(matching.map((one) => [encodeNamespace(one), one])).values()];
  const first = boundedCount(offset ?? 0);
  return cut.slice(first, first + boundedCount(limit ?? MAX_COUNT));
}

export const MAX_COUNT = 2 ** 31 - 1;

/** Turns a number into a limit or offset that a database accepts. */
export const boundedCount = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, 0), MAX_COUNT));

/** The parts all matching namespaces start with. */
export function literalPrefix(conditions: readonly MatchCondition[]): string[] {
  const prefix = conditions.find(({ matchType }) => matchType === "prefix")?.path ?? [];
  const wildcard = prefix.indexOf("*");
  return wildcard === -1 ? prefix : prefix.slice(0, wildcard);
}

/** Also of 0 and -0, which are stored alike. */
const isEqual = (actual: unknown, wanted: unknown): boolean =>
  actual === wanted || isDeepStrictEqual(actual, wanted);

const OPERATORS: Readonly<Record<string, (actual: unknown, wanted: unknown) => boolean>> = {
  $eq: (actual, wanted) => isEqual(actual, wanted),
  $ne: (actual, wanted) => !isEqual(actual, wanted),
  $gt: (actual, wanted) => compare(actual, wanted) > 0,
  $gte: (actual, wanted) => compare(actual, wanted) >= 0,
  $lt: (actual, wanted) => compare(actual, wanted) < 0,
  $lte: (actual, wanted) => compare(actual, wanted) <= 0,
  $in: (actual, wanted) => Array.isArray(wanted) && wanted.some((one) => isEqual(actual, one)),
  $nin: (actual, wanted) => !Array.isArray(wanted) || !wanted.some((one) => isEqual(actual, one)),
};

/** True if the top-level fields of `value` match `filter`: a value, or operators such as `{ $gte: 3 }`. */
export const matchesFilter = (value: Record<string, unknown>, filter: Record<string, unknown>): boolean =>
  Object.entries(filter).every(([field, wanted]) => {
    const actual = Object.hasOwn(value, field) ? value[field] : undefined;
    const operators = readOperators(wanted);
    if (operators === undefined) return isEqual(actual, wanted);
    return operators.every(([name, operand]) => OPERATORS[name]?.(actual, operand) === true);
  });

function readOperators(wanted: unknown): [string, unknown][] | undefined {
  if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted)) return undefined;
  const entries = Object.entries(wanted);
  return entries.every(([name]) => Object.hasOwn(OPERATORS, name)) ? entries : undefined;
}

/** Compares numbers as numbers and texts, such as dates, by their characters; NaN when two values have no order. */
function compare(actual: unknown, wanted: unknown): number {
  const difference = Number(actual) - Number(wanted);
  if (!Number.isNaN(difference) || typeof actual !== "string" || typeof wanted !== "string")
    return Number(actual) === Number(wanted) ? 0 : difference;
  return actual < wanted ? -1 : actual === wanted ? 0 : 1;
}
