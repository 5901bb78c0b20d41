import { expect, test } from "vitest";
import { type Scope, PageContent } from "../../src/web/html/content.ts";
import { writeMarkdown } from "../../src/web/html/markdown.ts";
import { cutPage, parsePage, withoutTags } from "../../src/web/html/tree.ts";

const read = (html: string, scope: Scope = "main"): string => {
  const page = parsePage(html);
  return writeMarkdown(new PageContent(page, "https://site.test/a/b", scope).convert(page));
};
const table = (rows: string): string => read(`<table>${rows}</table>`);

test.each([
  [
    "powers and indices",
    "10<sup>6</sup> H<sub>2</sub>O 1<sup>st</sup> e<sup>-x+1</sup>",
    "10^6 H_2O 1st e^(-x+1)",
  ],
  ["a note", 'word<sup><a href="#n1">3</a></sup>', "word[3]"],
  [
    "prices that are struck through",
    "<s>$5</s> <span style='text-decoration: line-through'>$4</span> $3",
    "~~$5~~ ~~$4~~ $3",
  ],
  ["numbers of items", "<ol><li>a<li value=7>b<li>c</ol>", "1. a\n7. b\n8. c"],
  ["numbers that go down", "<ol reversed><li>a<li>b</ol>", "2. a\n1. b"],
  [
    "ticks",
    "<ul><li><input type=checkbox checked> a<li><label><input type=checkbox> b</label></ul>",
    "- [x] a\n- [ ] b",
  ],
  ["open dialogs only", "<dialog open>shown</dialog><dialog>closed</dialog>", "shown"],
  ["quotes of windows-1252", "&#147;a&#148;", "“a”"],
  [
    "links with whole addresses",
    '<a href="../c?(1)">c</a> <a href="#d">d</a> <a href="x:y">e</a>',
    "[c](https://site.test/c?%281%29) d e",
  ],
  [
    "shadow roots",
    "<x-a><template shadowrootmode=open><p>in <slot></slot>, <slot name=s>none</slot></p></template>light</x-a>",
    "in light, none",
  ],
  [
    "an accordion",
    "<h3><button aria-controls=p>Why?</button></h3><div id=p hidden>So.</div><div hidden>never</div>",
    "### Why?\n\nSo.",
  ],
  [
    "texts for screens and for screen readers once",
    "<p><span aria-hidden=true>5 $</span><span class=sr-only>5 dollars</span></p>",
    "5 dollars",
  ],
  ["headings without their anchors", '<h2>Use<a class=headerlink href="#use">¶</a></h2>', "## Use"],
  ["elements of any name", "<constructor>x</constructor><toString>y</toString>", "xy"],
  ["names as they are", "<p>snake_case * [x]</p>", "snake_case * [x]"],
])("a page keeps %s", (_name, html, expected) => {
  expect(read(html)).toBe(expected);
});

const KATEX =
  '<span class="katex"><span class="katex-mathml"><math><semantics><mi>x</mi><annotation encoding="application/x-tex">x^2</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">x2</span></span>';

test.each([
  ["KaTeX", KATEX, "$x^2$"],
  [
    "MathJax",
    '<span class="MathJax_Preview">x2</span><script type="math/tex; mode=display">x^2</script>',
    "$$x^2$$",
  ],
  [
    "MediaWiki",
    '<span class="mwe-math-mathml-inline" style="display: none"><math alttext="{\\displaystyle x^{2}}"><mi>x</mi></math></span>',
    "$x^{2}$",
  ],
  ["MathML alone", "<math><mfrac><mi>a</mi><msqrt><mi>b</mi></msqrt></mfrac></math>", "(a)/(√(b))"],
])("a formula of %s is read once", (_name, html, expected) => {
  expect(read(html)).toBe(expected);
});

test.each([
  [
    "lines with a break each",
    "<pre><code><div>a<br></div><div>  b<br></div></code></pre>",
    "```\na\n  b\n```",
  ],
  [
    "lines without line feeds",
    '<pre class="language-js"><span class="line">a</span><span class="line">b</span></pre>',
    "```js\na\nb\n```",
  ],
  [
    "numbers in the line",
    '<pre><span class="lineno">1 </span>a\n<span style="user-select:none">2</span>b</pre>',
    "```\na\nb\n```",
  ],
  ["numbers in a cell", "<table><tr><td><pre>1\n2</pre><td><pre>a\nb</pre></table>", "```\na\nb\n```"],
  ["a fence in it", "<pre>```\na\n```</pre>", "````\n```\na\n```\n````"],
  ["output that is numbers", "<pre>1\n2</pre>", "```\n1\n2\n```"],
])("code with %s keeps its lines", (_name, html, expected) => {
  expect(read(html)).toBe(expected);
});

test("cells stand under their heads", () => {
  expect(table("<tr><th>A<th>B<tr><td rowspan=2>1<td>x<tr><td>y|z")).toBe(
    "| A | B |\n| - | - |\n| 1 | x |\n| 1 | y\\|z |",
  );
  expect(
    table("<thead><tr><th rowspan=2>Y<th colspan=2>S<tr><th>N<th>O</thead><tr><td>1<td>2<td>3"),
  ).toContain("| Y | S N | S O |");
  expect(table("<tr><th>A<th>B<tr><td><ul><li>x<li>y</ul><td><pre>p\nq</pre>")).toContain(
    "| • x<br>• y | `p`<br>`q` |",
  );
  expect(table("<tr><th>A<th>B<tr><td>x<td><pre>p\nq\nr</pre>")).toContain("**B**\n\n```\np\nq\nr\n```");
});

test.each([
  [
    "roles",
    "<div role=tablist><button role=tab aria-controls=a>L</button><button role=tab>W</button></div><div role=tabpanel id=a>l</div><div role=tabpanel hidden>w</div>",
  ],
  [
    "labels",
    "<div><input type=radio><label>L</label><input type=radio><label>W</label></div><div><div>l</div><div>w</div></div>",
  ],
  [
    "a label before each",
    "<input type=radio><label>L</label><div>l</div><input type=radio><label>W</label><div>w</div>",
  ],
])("panels of tabs by %s have their names", (_name, html) => {
  expect(read(html)).toBe("**L**\n\nl\n\n**W**\n\nw");
});

test("menus are left out, and notes and headers of the content are not", () => {
  const page = "<header><nav>menu</nav>top</header><aside>note</aside><p>words</p><footer>since 1.5</footer>";
  expect(read(page, "main")).toBe("top\n\nnote\n\nwords\n\nsince 1.5");
  expect(read(page, "body")).toBe("words");
  expect(read(page, "everything")).toContain("menu");
});

test("lists of links above the heading of a page are menus, and others are content", () => {
  const links = (count: number): string => `<ul>${"<li><a href=x>link</a>".repeat(count)}</ul>`;
  const page = (above: string, head = "<title>t</title>"): string =>
    read(`${head}${above}<h1>Head</h1><p>words</p>${links(8)}`, "body");
  expect(page(links(8)).startsWith("# Head")).toBe(true);
  expect(page(links(8))).toContain("link");
  for (const above of [links(7), `<ul>${"<li><a href=x>link</a>: prose".repeat(8)}</ul>`])
    expect(page(above).startsWith("- [link]")).toBe(true);
  // The heading of a piece from the middle of a page is not its first.
  expect(page(links(8), "").startsWith("- [link]")).toBe(true);
});

test("boxes beside the text that have a title of their own are content", () => {
  const box = (inside: string): string => `<div class=sidebar>${inside}</div><p>words</p>`;
  expect(read(box("<div class=titlepage><p class=title>Basics</p></div>text"), "body")).toContain("Basics");
  expect(read(box("menu"), "body")).toBe("words");
});

test("what a page claims to be is not made larger than it is", () => {
  const spans = `<tr>${'<td colspan="100000" rowspan="100000">a'.repeat(100)}`.repeat(20);
  expect(table(spans).length).toBeLessThan(50_000);
  const ragged = `<tr>${"<td>a".repeat(3000)}${"<tr><td>b".repeat(3000)}`;
  expect(table(ragged).length).toBeLessThan(100_000);
  const nested = read("<ul><li>x".repeat(200));
  expect(Math.max(...nested.split("\n").map((line) => line.length))).toBeLessThan(100);
  const hosts = `<x-a><template shadowrootmode=open>${"<slot></slot>".repeat(30)}</template>`.repeat(6);
  expect(read(`${hosts}light`)).toBe("light");
  expect(read(`<h1>${" <i></i>".repeat(50_000)}x`)).toBe("# x");
  const fonts = Array.from({ length: 3000 }, (_, index) => `<p><font size="${index}">x`).join("");
  expect(() => parsePage(fonts)).toThrow(RangeError);
  expect(withoutTags(`<script>bad()</script>${fonts}<!-- c`)).toMatch(/^x\nx\n/);
});

test("a large page is read in pieces inside what surrounds them, and one that nests too deeply in none", () => {
  const section = `<section><h2>Part</h2><p>${"words ".repeat(100)}</p></section>`;
  const pieces = cutPage(`<body><main id="m">${section.repeat(500)}</main></body>`) ?? [];
  expect(pieces.length).toBeGreaterThan(2);
  expect(pieces.every((piece) => piece.startsWith('<body><main id="m"><section>'))).toBe(true);
  expect(
    pieces.map((piece) => read(piece).match(/^## Part$/gm)?.length ?? 0).reduce((sum, count) => sum + count),
  ).toBe(500);
  expect(cutPage("<div>".repeat(600))).toBeUndefined();
  expect(cutPage(`<p ${Array.from({ length: 300 }, (_, index) => `a${index}`).join(" ")}>`)).toBeUndefined();
});
