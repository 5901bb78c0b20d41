// Compares Markdown with what the page shows: parts that arrived whole, and how much of the text is menus.
import { key, oneLine } from "./reference.mjs";

/** Markdown without escapes, entities and the addresses of links. */
const plain = (text) =>
  text
    .replace(
      /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\((?:<[^>]*>|(?:[^()\s\\]|\\.|\([^()]*\))*)(?:\s+"[^"]*")?\)/g,
      "$1",
    )
    .replace(/<br\s*\/?>/gi, " ")
    .replace(/\\([\\`*_{}[\]()#+\-.!|<>~$&])/g, "$1")
    .replace(/&(?:nbsp|#160|#xA0);/gi, " ")
    .replace(/&(?:lt|#x3C|#60);/gi, "<")
    .replace(/&(?:gt|#x3E|#62);/gi, ">")
    .replace(/&(?:quot|#34);/gi, '"')
    .replace(/&(?:amp|#x26|#38);/gi, "&");

/** The lines of Markdown, without marks of quotations and lists, and whether they stand between fences. */
function readLines(markdown) {
  let fence;
  return markdown.split("\n").map((line) => {
    const bare = line.replace(/^[>\s]*(?:(?:[-*+]|\d+[.)])\s+)*/, "");
    const [, mark, rest = ""] = /^(`{3,}|~{3,})(.*)$/.exec(bare) ?? [];
    if (fence === undefined && mark !== undefined && !rest.includes("`")) fence = mark;
    else if (fence !== undefined && mark?.startsWith(fence) && rest.trim() === "") fence = undefined;
    else return { line, bare, isCode: fence !== undefined };
    return { line: "", bare: "", isCode: true };
  });
}

const cellsOf = (line) =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => key(plain(cell)));

function tablesOf(lines) {
  const tables = [];
  for (const [index, { bare, isCode }] of lines.entries()) {
    if (isCode || !/^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(bare)) continue;
    const end = lines.findIndex((one, at) => at > index && !one.bare.includes("|"));
    const rows = lines.slice(index + 1, end === -1 ? undefined : end).map((one) => cellsOf(one.bare));
    tables.push({ heads: cellsOf(lines[index - 1]?.bare ?? ""), rows });
  }
  return tables;
}

/** Cells that stand in the row of their first cell, below their head. */
function countCells(table, shown) {
  let most = 0;
  for (const { heads, rows } of shown) {
    let count = 0;
    for (const row of table.rows) {
      const same = rows.find(
        (one) => one[0]?.includes(row[0]) && row.every((cell, x) => one[x]?.includes(cell)),
      );
      const near = same ?? rows.find((one) => row[0] !== "" && one[0] === row[0]) ?? [];
      count += row.filter(
        (cell, x) => cell !== "" && near[x]?.includes(cell) && heads[x]?.includes(table.heads[x]),
      ).length;
    }
    most = Math.max(most, count);
  }
  return most;
}

/** Lines of a block that arrived, each as a line of its own: of the whole block, or one by one. */
function countLines(block, known, joined) {
  const wanted = block.map((line) => line.trim());
  if (joined.includes(`\n${wanted.join("\n")}\n`)) return wanted.length;
  return wanted.filter((line) => known.has(line)).length;
}

/** Pairs of what arrived and what there was; for `junk`, of characters around the content and all. */
export function score({ headings, code, tables, blocks, chrome }, markdown) {
  const lines = readLines(markdown);
  const codes = lines.flatMap(({ line, bare }) => [
    line.replace(/^[\s]*>\s?/, "").trim(),
    line.trim(),
    bare.trim(),
    plain(line).trim(),
    plain(bare).trim(),
  ]);
  const joined = `\n${lines
    .map(({ line }) => line.replace(/^(?:> ?|\s)*/, "").trim())
    .filter((line) => line !== "")
    .join("\n")}\n`;
  const titles = lines.flatMap(({ bare, isCode }, index) => {
    if (isCode) return [];
    const isUnderlined = /^(=+|-{2,})\s*$/.test(lines[index + 1]?.bare ?? "") && !bare.includes("|");
    const text = /^#{1,6}\s+(.*)$/.exec(bare)?.[1] ?? (isUnderlined ? bare : "");
    return text === "" ? [] : [key(plain(text)), key(plain(text).replace(/<[^<>]*>/g, ""))];
  });
  const isTitle = (text) =>
    titles.some(
      (one) =>
        one === text || (one.length < text.length + 25 && (one.startsWith(text) || one.endsWith(text))),
    );
  const shown = tablesOf(lines);
  const text = key(plain(markdown));
  // The name of a page is often in its menus, too.
  const prose = key(plain(lines.map(({ line, bare }) => (/^#{1,6}\s/.test(bare) ? "" : line)).join("\n")));
  const words = blocks.map((block) => {
    const whole = key(block);
    if (text.includes(whole)) return [whole.length, whole.length];
    const parts = oneLine(block)
      .split(/(?:(?<=(?: \S+){4}) )/)
      .map(key);
    return [parts.filter((part) => text.includes(part)).join("").length, whole.length];
  });
  const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);
  return {
    code: [sum(code.map((block) => countLines(block, new Set(codes), joined))), code.flat().length],
    cells: [
      sum(tables.map((table) => countCells(table, shown))),
      tables.flatMap(({ rows }) => rows.flat()).filter((cell) => cell !== "").length,
    ],
    headings: [headings.filter(isTitle).length, headings.length],
    text: [sum(words.map(([found]) => found)), sum(words.map(([, all]) => all))],
    junk: [
      sum(chrome.filter((one) => prose.includes(key(one))).map((one) => key(one).length)),
      Math.max(text.length, 1),
    ],
  };
}
