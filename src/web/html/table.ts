/** Lays the cells of a table out on a grid: each under its head, and no more of them than the page has. */
import type { ElementContent } from "hast";
import { codeElement, codeText, isCodeBlock, isLineNumber } from "./code.ts";
import type { Element } from "./tree.ts";
import { attribute, childElements, descendants, hast, hastText, isMarked, nodeText } from "./tree.ts";

/** Converts a cell, as blocks or in one line. */
type ConvertCell = (cell: Element, inLine: boolean) => ElementContent[];

export function tableContent(table: Element, convert: ConvertCell): ElementContent[] {
  const parts = childElements(table);
  const caption = parts
    .filter(({ tagName }) => tagName === "caption")
    .map((one) => hast("p", convert(one, true)));
  const rows = parts
    .flatMap((part) => (/^t(head|body|foot)$/.test(part.tagName) ? childElements(part) : [part]))
    .filter(({ tagName }) => tagName === "tr");
  const cells = rows.map((row) => childElements(row).filter(({ tagName }) => /^t[dh]$/.test(tagName)));
  const isHead = (index: number): boolean =>
    rows[index]?.parentNode?.nodeName === "thead" ||
    cells[index]?.every(({ tagName }) => tagName === "th") === true;
  const body = rows.findIndex((_row, index) => !isHead(index));
  const heads = Math.min(body === -1 ? 1 : body, 4);
  const isLarge = (one: Element): boolean =>
    /^(table|h[1-4])$/.test(one.tagName) || (isCodeBlock(one) && codeText(one).split("\n", 3).length > 2);
  const isLayout =
    /^(presentation|none)$/.test(attribute(table, "role")) ||
    rows.length < 2 ||
    cells.flat().some((cell) => descendants(cell).some(isLarge));
  const grid = isLayout ? undefined : layOut(cells);
  const code = numberedCode(table, cells);
  return [
    ...caption,
    ...(code ?? (grid ? [regularTable(grid, heads, convert)] : asBlocks(cells, heads, convert))),
  ];
}

/** A cell may reach to the right and down. `isShown` is false there if its text is too long to be repeated. */
type Grid = ({ cell: Element; isShown: boolean } | undefined)[][];

/** Undefined for a table of one column, and for one that covers far more places than it has cells. */
function layOut(cells: Element[][]): Grid | undefined {
  const grid: Grid = cells.map(() => []);
  const most = 4 * cells.flat().length + 1000;
  let used = 0;
  const span = (cell: Element, name: string): number => Number.parseInt(attribute(cell, name), 10);
  for (const [y, row] of cells.entries()) {
    let x = 0;
    for (const cell of row) {
      while (grid[y]?.[x]) x += 1;
      const right = x + Math.min(Math.max(span(cell, "colspan") || 1, 1), 100);
      const down = span(cell, "rowspan");
      const bottom = Math.min(y + (down === 0 ? cells.length : Math.max(down || 1, 1)), cells.length);
      const isRepeated = row.length > 1 && nodeText(cell).length <= 60;
      if ((used += (right - x) * (bottom - y)) > most) return undefined;
      for (const below of grid.slice(y, bottom))
        for (let column = x; column < right; column += 1)
          below[column] ??= { cell, isShown: isRepeated || (below === grid[y] && column === x) };
      x = right;
    }
  }
  const width = grid.reduce((widest, row) => Math.max(widest, row.length), 0);
  return width < 2 || width * grid.length > most
    ? undefined
    : grid.map((row) => Array.from({ length: width }, (_, x) => row[x]));
}

/** Several rows of heads become one. */
function regularTable(grid: Grid, heads: number, convert: ConvertCell): ElementContent {
  const head = grid[0]?.map((_place, x) => {
    const above = grid.slice(0, heads).flatMap((row) => (row[x]?.isShown ? [row[x].cell] : []));
    return hast(
      "th",
      [...new Set(above)].flatMap((cell) => [...convert(cell, true), hastText(" ")]),
    );
  });
  const body = grid.slice(heads).map((row) =>
    hast(
      "tr",
      row.map((place) => hast("td", place?.isShown ? convert(place.cell, true) : [])),
    ),
  );
  return hast("table", [...(heads > 0 ? [hast("thead", [hast("tr", head ?? [])])] : []), ...body]);
}

/** Code beside its line numbers: one row with a block in each cell, or a row for each line. */
function numberedCode(table: Element, cells: Element[][]): ElementContent[] | undefined {
  if (isMarked(table, "codeTables")) {
    const lines = cells.map((row) => row.filter((cell) => !isLineNumber(cell)).map(codeText));
    return [hast("pre", [hastText(lines.map((line) => line.join("")).join("\n"))])];
  }
  const blocks =
    cells.length === 1
      ? (cells[0] ?? []).map((cell) => descendants(cell).filter(({ tagName }) => tagName === "pre"))
      : [];
  const code = blocks.flat().filter((block) => /[^\d\s]/.test(nodeText(block)));
  return blocks.every(({ length }) => length === 1) && code.length < blocks.length
    ? code.map(codeElement)
    : undefined;
}

/** Cells one after the other, each after its head. */
function asBlocks(cells: Element[][], heads: number, convert: ConvertCell): ElementContent[] {
  const names = cells.length > heads && cells[heads - 1]?.length !== 1 ? (cells[heads - 1] ?? []) : [];
  return cells.slice(names.length > 0 ? heads : 0).flatMap((row) =>
    row.flatMap((cell, x) => {
      const name = row.length === names.length ? names[x] : undefined;
      return [
        ...(name ? [hast("p", [hast("strong", convert(name, true))])] : []),
        hast("div", convert(cell, false)),
      ];
    }),
  );
}
