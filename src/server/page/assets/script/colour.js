/** Colours code that stands in the page. It puts spans around parts of the text, and leaves the text as it is. */
import { partsOf } from "../../../views/content/highlight.ts";

/** Colours an element that holds code, as lines of a table or as one text, by the language that it names. */
export function colour(element) {
  const { language } = element.dataset;
  const rows = [...element.querySelectorAll("tr")];
  if (rows.length === 0) return colourText([element], language);
  if (element.localName !== "diff-text") return colourText(rows.map(codeOf), language);
  for (const run of runsOf(rows)) {
    // Each side of a diff is a text of its own. Unchanged lines belong to both, and get the colours of the new one.
    for (const [side, own] of [
      [".c, .d", ".d"],
      [".c, .a", ".c, .a"],
    ]) {
      const lines = run.filter((row) => row.matches(side));
      colourText(lines.map(codeOf), language, (cell) => cell.parentElement.matches(own));
    }
    for (const row of run)
      row.querySelector(".twin")?.replaceChildren(...codeOf(row).cloneNode(true).childNodes);
  }
}

const codeOf = (row) => row.querySelector(".cd");

/** Rows that follow each other in the file. */
function runsOf(rows) {
  const runs = [[]];
  for (const row of rows) {
    if (row.matches(".gap")) runs.push([]);
    else runs.at(-1).push(row);
  }
  return runs;
}

/** Reads the lines in `elements` as one text, and colours those that are `isOwn`. */
function colourText(elements, language, isOwn = () => true) {
  const nodes = elements.map(textNodes);
  const code = nodes.map((line) => line.map(({ data }) => data).join("")).join("\n");
  const parts = partsOf(code, language).values();
  let rest = "";
  let look = "";
  const take = (length) => {
    const taken = [];
    for (let left = length; left > 0;) {
      if (rest === "") [rest, look] = parts.next().value;
      const text = rest.slice(0, left);
      rest = rest.slice(text.length);
      left -= text.length;
      taken.push(
        look === ""
          ? text
          : Object.assign(document.createElement("span"), { className: look, textContent: text }),
      );
    }
    return taken;
  };
  for (const [index, element] of elements.entries()) {
    // The line break before it stands in no element.
    if (index > 0) take(1);
    for (const node of nodes[index]) {
      const taken = take(node.length);
      if (isOwn(element)) node.replaceWith(...taken);
    }
  }
}

/** The texts in an element, without the marks for what cannot be seen. */
function textNodes(element) {
  const nodes = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.matches(".ws")) nodes.push(walker.currentNode);
  return nodes;
}
