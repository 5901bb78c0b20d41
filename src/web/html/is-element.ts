/**
 * Stands in for the package `hast-util-is-element`, which makes a function of each name that it looks for, again for
 * each node: with the list of blocks that takes most of the time for a page.
 */
import type { Element, Node } from "hast";

type Check = (node: Element, ...others: unknown[]) => unknown;
type Test = string | Check | readonly Test[] | null | undefined;

export function isElement(node: Node | undefined, test?: Test, ...others: unknown[]): node is Element {
  if (node?.type !== "element") return false;
  const element = node as Element; // by its type
  if (typeof test === "string") return element.tagName === test;
  if (typeof test === "function") return Boolean(test(element, ...others));
  return test?.some((one) => isElement(element, one, ...others)) ?? true;
}

export const convertElement =
  (test?: Test) =>
  (node: Node | undefined, ...others: unknown[]): boolean =>
    isElement(node, test, ...others);
