/** The head of a table whose first column has sentences, and whose second one only says where a decision is recorded. */
const RECORDS = "| protects | record |";

/** A section of a page of Markdown: from a heading to the next one of its level. Throws if the heading is missing. */
export function section(markdown: string, heading: string): string {
  const lines = markdown.split("\n");
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`no heading "${heading}"`);
  const level = heading.slice(0, heading.indexOf(" ") + 1);
  const end = lines.findIndex((line, index) => index > start && line.startsWith(level));
  return lines.slice(start, end === -1 ? undefined : end).join("\n");
}

/**
 * Finds the sentences in the paragraphs, list items and tables of a page of Markdown, without links and emphasis. A
 * row of a table without records gives "first cell: sentence" for each sentence of its second cell. Headings,
 * generated parts, and lines that only introduce a list are left out.
 */
export function sentences(markdown: string): string[] {
  const lines = markdown.replaceAll(/<!--.*?-->[^]*?<!-- end -->/g, "").split("\n");
  let head = "";
  return lines.flatMap((line, index) => {
    if (line.startsWith("#") || line.startsWith("|---") || /^\s*$|:$/.test(line)) return [];
    if (!line.startsWith("|")) return split(line.replace(/^- /, ""));
    if (lines[index + 1]?.startsWith("|---") === true) {
      head = line;
      return [];
    }
    const [first = "", second = ""] = line.split("|").slice(1);
    if (head === RECORDS) return split(first);
    return split(second).map((sentence) => `${withoutMarks(first)}: ${sentence}`);
  });
}

/** Splits a text where a full stop is followed by a capital, a quotation, code or a link. */
const split = (text: string): string[] =>
  withoutEmphasis(text)
    .split(/(?<=[.!?]) +(?=["`(]*[A-Z]|["`[])/)
    .map(withoutMarks);

const withoutEmphasis = (text: string): string => text.replaceAll("**", "");

const withoutMarks = (text: string): string =>
  withoutEmphasis(text)
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim();
