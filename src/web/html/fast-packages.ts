/**
 * Stands in for packages that are slow. `hast-util-is-element` makes a function of each name that it looks for, again for
 * each node: with the list of blocks that takes most of the time for a page.
 */
import type { Element, Node } from "hast";
import { byIdentity } from "../../core/by-identity.ts";

type Test = string | ((node: Element, ...others: unknown[]) => unknown) | readonly Test[] | null | undefined;

/** The names of a list, and what else it tests. */
const parts = byIdentity((list: readonly Test[]) => ({
  names: new Set(list),
  others: list.filter((one) => typeof one !== "string"),
}));

export function isElement(node: Node | undefined, test?: Test, ...others: unknown[]): node is Element {
  if (node?.type !== "element") return false;
  const element = node as Element; // by its type
  if (typeof test === "string") return element.tagName === test;
  if (typeof test === "function") return Boolean(test(element, ...others));
  if (!test) return true;
  const { names, others: checks } = parts(test);
  return names.has(element.tagName) || checks.some((one) => isElement(element, one, ...others));
}

export const convertElement =
  (test?: Test) =>
  (node: Node | undefined, ...others: unknown[]): boolean =>
    isElement(node, test, ...others);

/** In place of `@ungap/structured-clone`: nothing else uses the tree that would be copied. */
// oxlint-disable-next-line import/no-default-export -- as that package exports it
export default (tree: Node): Node => tree;
