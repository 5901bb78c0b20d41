// What a page shows, read from its tree alone: headings, lines of code, cells of tables and text of its main part, and the
// text around it. `parse` is that of parse5.

const HIDDEN = new Set(
  "script style noscript template svg canvas object head title textarea select input datalist math audio video".split(
    " ",
  ),
);
const BLOCKS = new Set(
  "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main ol p pre section summary table tbody td tfoot th thead tr ul caption".split(
    " ",
  ),
);
/** Signs for links, numbers of lines, and lists of headings: neither content nor a fault. */
const SIGNS = new Set(
  "headerlink anchorjs hash-link header-anchor copybtn lineno linenos ln lnt linenodiv gutter line-numbers line-numbers-wrapper src-line-numbers sr-only visually-hidden mw-editsection noprint copiable-anchor toc".split(
    " ",
  ),
);
/** Menus and other parts around the content, by classes, IDs and roles. */
const MENUS =
  "nav .navbox .navheader .navfooter .spirit-nav .related .sphinxsidebar .breadcrumbs .navbar .t-navbar .footer .header-nav .prev-next .page-nav .docnav .nav_header .prev-next-area .menu-bar #column2 .tocset .navsettop .navsetbottom #header #footer [role=navigation] [role=banner] [role=contentinfo]".split(
    " ",
  );

export const key = (text) =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "");
export const oneLine = (text) =>
  text
    .replace(/[\u200B\u00AD\uFEFF]/g, "")
    .replace(/\s+/g, " ")
    .trim();

const attribute = (node, name) => node.attrs?.find((one) => one.name === name)?.value ?? "";
const classes = (node) => attribute(node, "class").split(/\s+/);
const children = (node) => node.childNodes ?? [];

/** Understands `tag`, `#id`, `.class`, `[name=value]` and their combinations in one element. */
function matches(node, selector) {
  const parts = selector.match(/^[\w-]+|#[\w-]+|\.[\w-]+|\[[^\]]+\]/g) ?? [];
  return (
    node.tagName !== undefined &&
    parts.every((part) => {
      if (part.startsWith("#")) return attribute(node, "id") === part.slice(1);
      if (part.startsWith(".")) return classes(node).includes(part.slice(1));
      const [, name, value] = /^\[([\w-]+)=([^\]]*)\]$/.exec(part) ?? [];
      return name === undefined ? node.tagName === part : attribute(node, name) === value;
    })
  );
}

function* below(node) {
  for (const child of children(node)) {
    yield child;
    yield* below(child);
  }
}
const find = (root, selector) => [...below(root)].filter((node) => matches(node, selector));

const isMenu = (node) => MENUS.some((selector) => matches(node, selector)) && find(node, "h1").length === 0;

function isHidden(node) {
  if (node.tagName === undefined) return false;
  if (HIDDEN.has(node.tagName) || classes(node).some((name) => SIGNS.has(name))) return true;
  if (/display\s*:\s*none|visibility\s*:\s*hidden/i.test(attribute(node, "style"))) return true;
  if (node.attrs.some(({ name }) => name === "hidden") && attribute(node, "role") !== "tabpanel") return true;
  if (node.tagName === "button") return !/^(h[1-6]|summary)$/.test(node.parentNode?.tagName ?? "");
  return isMenu(node) || attribute(node, "id") === "toc";
}

/** The visible text below a node. */
export function textOf(node) {
  if (node.nodeName === "#text") return node.value;
  if (isHidden(node)) return "";
  if (node.tagName === "br") return " ";
  const inner = children(node).map(textOf).join("");
  return BLOCKS.has(node.tagName) ? ` ${inner} ` : inner;
}

function linesOf(block) {
  let text = "";
  const breakLine = () => (text += text === "" || text.endsWith("\n") ? "" : "\n");
  const read = (node) => {
    if (node.nodeName === "#text") text += node.value;
    else if (node.tagName === "br") text += "\n";
    else if (node.tagName !== undefined && !isHidden(node)) {
      if (BLOCKS.has(node.tagName)) breakLine();
      children(node).forEach(read);
      if (BLOCKS.has(node.tagName)) breakLine();
    }
  };
  children(block).forEach(read);
  return text
    .replaceAll("\u00A0", " ")
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line.trim() !== "");
}

/** Rows of cells with their heads. Undefined for layout, and for tables with blocks in them. */
function dataTable(table) {
  const inside = [...below(table)].filter(({ tagName }) => tagName !== undefined);
  if (inside.some(({ tagName }) => /^(table|pre|ul|ol|dl|h[1-6])$/.test(tagName))) return undefined;
  const rows = inside.filter(({ tagName }) => tagName === "tr");
  const cells = rows.map((row) => children(row).filter(({ tagName }) => /^t[dh]$/.test(tagName ?? "")));
  const hasSpans = cells.flat().some((cell) => attribute(cell, "colspan") || attribute(cell, "rowspan"));
  const [heads, ...body] = cells;
  if (hasSpans || rows.length < 2 || !heads || heads.length < 2) return undefined;
  if (!heads.every(({ tagName }) => tagName === "th") || body.some((row) => row.length !== heads.length))
    return undefined;
  return {
    heads: heads.map((cell) => key(textOf(cell))),
    rows: body.map((row) => row.map((cell) => key(textOf(cell)))),
  };
}

/** Texts of the blocks below a node that have no block inside. */
function blocksOf(root, isWanted, sink) {
  let run = "";
  const flush = () => {
    if (key(run).length > 1) sink.push(oneLine(run));
    run = "";
  };
  const read = (node) => {
    if (node.nodeName === "#text") run += node.value;
    // A formula may be written in other signs.
    if (node.tagName === "math" || (node.tagName === "script" && attribute(node, "type").startsWith("math/")))
      flush();
    if (node.tagName === undefined || isHidden(node) || !isWanted(node)) return;
    const isBlock = BLOCKS.has(node.tagName) || node.tagName === "br";
    if (isBlock) flush();
    if (node.tagName !== "pre") children(node).forEach(read);
    if (isBlock) flush();
  };
  children(root).forEach(read);
  flush();
}

/** @param main selectors of the main part, separated by commas: the first that fits counts. */
export function reference(parse, html, main) {
  const page = parse(html);
  const body = find(page, "body")[0] ?? page;
  const found = main.split(",").map((selector) => (selector === "body" ? [body] : find(body, selector)));
  const root =
    found.flatMap((nodes) => nodes.filter((node) => key(textOf(node)).length > 5).slice(0, 1))[0] ?? body;
  const inside = [];
  const collect = (node) => {
    if (node.tagName !== undefined && isHidden(node)) return;
    inside.push(node);
    if (node.tagName !== "pre" && !matches(node, ".fragment")) children(node).forEach(collect);
  };
  children(root).forEach(collect);
  const blocks = [];
  blocksOf(root, () => true, blocks);
  const code = inside.filter((node) => node.tagName === "pre" || matches(node, ".fragment")).map(linesOf);
  const mainText = key([...blocks, ...code.flat()].join(" "));
  const around = [];
  // The title of the page may stand above its main part.
  if (root !== body)
    blocksOf(
      body,
      (node) => node !== root && !/^h[1-6]$/.test(node.tagName) && !matches(node, ".title"),
      around,
    );
  for (const menu of [...below(body)].filter(isMenu))
    for (const node of below(menu)) if (node.nodeName === "#text") around.push(oneLine(node.value));
  return {
    headings: inside
      .filter(({ tagName }) => /^h[1-6]$/.test(tagName ?? ""))
      .map((node) => key(oneLine(textOf(node))))
      .filter((text) => text !== ""),
    code: code.filter((lines) => lines.some((line) => /[^\d\s]/.test(line))),
    tables: inside
      .filter(({ tagName }) => tagName === "table")
      .map(dataTable)
      .filter((table) => table !== undefined),
    blocks,
    chrome: [...new Set(around)].filter((text) => key(text).length >= 12 && !mainText.includes(key(text))),
  };
}
