import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Piece, highlightLines } from "../../../src/server/views/content/highlight.ts";
import { syntaxNamed, syntaxOf } from "../../../src/server/views/content/languages.ts";
import { attempts } from "../../support/effort.ts";

/** Such as `‹k const› a`. */
const told = (lines: readonly Piece[][]): string =>
  lines
    .map((pieces) => pieces.map(({ text, look }) => (look ? `‹${look.slice(1)} ${text}›` : text)).join(""))
    .join("\n");

test.each([
  ["ts", "const a = `x${b}`; // c", "‹k const› a = ‹s `x${b}`›; ‹c // c›"],
  ["js", 'f(1) / 2 / g(/["/]/g)', '‹f f›(‹n 1›) / ‹n 2› / ‹f g›(‹s /["/]/g›)'],
  ["js", "/* a\nb */ x", "‹c /* a›\n‹c b */› x"],
  ["json", '{ "a": "b", "c": [1, true] }', '{ ‹f "a"›: ‹s "b"›, ‹f "c"›: [‹n 1›, ‹k true›] }'],
  ["python", 'def f():\n  """a\n  b"""', '‹k def› ‹f f›():\n  ‹s """a›\n‹s   b"""›'],
  ["bash", 'if [ "$#" -gt 1 ]; then # c', '‹k if› [ ‹s "$#"› -gt ‹n 1› ]; ‹k then› ‹c # c›'],
  ["html", '<!-- x --><a href="b">t</a>', '‹c <!-- x -->›‹k <a› ‹f href›=‹s "b"›‹k >›t‹k </a›‹k >›'],
  ["css", "a { margin-top: 2px }", "a { ‹f margin-top›: ‹n 2px› }"],
  ["yaml", "- b-c: 'x' # y", "- ‹f b-c›: ‹s 'x'› ‹c # y›"],
  ["sql", "SELECT count(*) -- x", "‹k SELECT› ‹f count›(*) ‹c -- x›"],
  ["go", "func f() { return `a\nb` }", "‹k func› ‹f f›() { ‹k return› ‹s `a›\n‹s b`› }"],
  ["rust", "fn f<'a>(x: &'a str) { 'x' }", "‹k fn› f<'a>(x: &'a ‹k str›) { ‹s 'x'› }"],
  ["java", "public int f() {}", "‹k public› ‹k int› ‹f f›() {}"],
  ["md", "# h\n- a `b`\n```\nlet\n```", "‹k # h›\n‹k -› a ‹s `b`›\n‹c ```›\n‹s let›\n‹c ```›"],
  ["diff", "@@ a\n+b\n-c\n d", "‹k @@ a›\n‹s +b›\n‹n -c›\n d"],
])("%s: %s", (language, code, expected) => {
  expect(told(highlightLines(code, syntaxNamed(language)))).toBe(expected);
});

test("the language of a file follows from its name, that of a block from what stands behind the fence", () => {
  expect(syntaxOf("/a.b/c.test.TS")).toBe(syntaxNamed("typescript {1,2}"));
  expect(syntaxOf("/a.ts/b")).toBeUndefined();
  expect(syntaxOf("/a/Dockerfile")).toBe(syntaxNamed("sh"));
  expect(syntaxNamed("constructor")).toBeUndefined();
  expect(syntaxNamed("")).toBeUndefined();
});

test("the pieces are the text, whatever it is", () => {
  const languages = [
    "ts",
    "json",
    "python",
    "sh",
    "html",
    "css",
    "md",
    "yaml",
    "sql",
    "go",
    "rust",
    "java",
    "diff",
  ];
  const code = fc.array(
    fc.oneof(
      fc.constantFrom(
        ...'/ * \\ " \' ` # - @ $ { } ( ) [ ] < > = : ! <!-- --> /* */ // """ ```'.split(" "),
        "\n",
        " ",
        "a",
        "if",
        "1",
      ),
      fc.string({ unit: "binary", maxLength: 3 }),
    ),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(fc.constantFrom(...languages), code, (language, parts) => {
      const text = parts.join("");
      const lines = highlightLines(text, syntaxNamed(language));
      expect(lines.map((pieces) => pieces.map((piece) => piece.text).join("")).join("\n")).toBe(text);
    }),
    attempts(2000),
  );
});

test.each(["-", "/[", "(/[", '"', "'", "`", "${", "<a ", '<a "', "f (", "a:", "@-", "\\", "~~~"])(
  "100 kB of %j on one line, which other expressions take minutes for",
  (unit) => {
    const text = unit.repeat(100_000 / unit.length);
    for (const language of ["ts", "css", "yaml", "html", "md", "rust"]) {
      const [pieces = []] = highlightLines(text, syntaxNamed(language));
      expect(pieces.map((piece) => piece.text).join("") === text).toBe(true);
    }
  },
);

test("what is too long stays plain", () => {
  expect(told(highlightLines("if\n".repeat(2000), syntaxNamed("ts")))).toBe("if\n".repeat(2000));
  expect(told(highlightLines(`if ${"a".repeat(100_000)}`, syntaxNamed("ts")))).not.toContain("‹");
});
