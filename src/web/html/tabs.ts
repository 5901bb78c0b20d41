/** Finds the panels of tabs, so that each is shown after its name. */
import { oneLine } from "../../core/text.ts";
import type { Element } from "./tree.ts";
import { attribute, childElements, descendants, hasWords, isElement, nodeText } from "./tree.ts";

/** The name of each panel. Lists of tabs, and labels, have the name "". */
export function panelNames(elements: readonly Element[]): ReadonlyMap<Element, string> {
  const names = new Map<Element, string>();
  const byId = new Map(elements.map((one) => [attribute(one, "id"), one]));
  for (const list of elements) {
    const labels = tabLabels(list);
    const ids = labels.map(
      (tab) => attribute(tab, "aria-controls") || attribute(tab, "href").replace(/^#/, ""),
    );
    const named = ids.flatMap((id) => (id === "" ? [] : (byId.get(id) ?? [])));
    const panels = named.length === labels.length ? named : panelsAfter(list, labels.length);
    for (const [index, tab] of labels.entries()) {
      const panel = panels[index];
      if (panel) names.set(panel, oneLine(nodeText(tab), 200)).set(list, "");
    }
  }
  return names;
}

/** Tabs by their roles, labels of radio buttons in a row, or the one label between a radio button and its panel. */
function tabLabels(list: Element): Element[] {
  if (attribute(list, "role") === "tablist")
    return descendants(list).filter((one) => attribute(one, "role") === "tab" && hasWords(nodeText(one)));
  const [before, , after] = list.tagName === "label" ? neighbours(list) : [];
  if (before && after && attribute(before, "type") === "radio" && !/^(input|label)$/.test(after.tagName))
    return [list];
  if (!list.childNodes.some(({ nodeName }) => nodeName === "label")) return [];
  const children = childElements(list);
  const labels = children.filter(({ tagName }) => tagName === "label");
  return labels.length > 1 && children.every(({ tagName }) => /^(label|input)$/.test(tagName)) ? labels : [];
}

/** The element before another, and those after it. */
function neighbours(node: Element): Element[] {
  const { parentNode: parent } = node;
  const siblings = parent && parent.childNodes.length <= 500 ? childElements(parent) : [];
  return siblings.slice(Math.max(siblings.indexOf(node) - 1, 0));
}

/** Panels that follow a list of `count` tabs: the children of the next element, or siblings of the list. */
function panelsAfter(list: Element, count: number): Element[] {
  if (count === 0) return [];
  let at: Element["parentNode"] = list;
  for (let level = 0; level < 3 && at && isElement(at); level += 1) {
    const around: Element[] = neighbours(at);
    const following = around.slice(around.indexOf(at) + 1);
    if (list.tagName === "label") return following.slice(0, 1);
    const panels = following.filter((one) => attribute(one, "role") === "tabpanel");
    const inside = following[0] ? childElements(following[0]) : [];
    if (panels.length === count || inside.length === count) return panels.length === count ? panels : inside;
    at = at.parentNode;
  }
  return [];
}
