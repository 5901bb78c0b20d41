import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Part, languageNamed, partsOf } from "../../../src/server/views/content/highlight.ts";
import { languageOf } from "../../../src/server/views/content/texts.ts";
import { attempts } from "../../support/effort.ts";

/** Such as `‹k const› a`. */
const told = (parts: readonly Part[]): string =>
  parts.map(([text, look]) => (look === "" ? text : `‹${look.slice(1)} ${text}›`)).join("");
const textOf = (parts: readonly Part[]): string => parts.map(([text]) => text).join("");

test.each([
  ["ts", "const a = `x${b}`; // c", "‹k const› ‹f a› = ‹s `x${›b‹s }`›; ‹c // c›"],
  ["js", "/* a\nb */ x", "‹c /* a›\n‹c b */› x"],
  ["json", '{ "a": "b", "c": [1, true] }', '{ ‹f "a"›: ‹s "b"›, ‹f "c"›: [‹n 1›, ‹k true›] }'],
  ["python", 'def f():\n  """a\n  b"""', '‹k def› ‹f f›():\n  ‹s """a›\n‹s   b"""›'],
  ["bash", 'if [ "$#" -gt 1 ]; then # c', '‹k if› [ ‹s "›‹f $#›‹s "› ‹f -gt› ‹n 1› ]; ‹k then› ‹c # c›'],
  ["html", '<!-- x --><a href="b">t</a>', '‹c <!-- x -->›<‹k a› ‹f href›=‹s "b"›>t</‹k a›>'],
  ["css", "a { margin-top: 2px }", "‹k a› { ‹f margin-top›: ‹n 2px› }"],
  ["yaml", "- b-c: 'x' # y", "‹c - ›‹k b-c›‹c : ›‹s 'x'› ‹c # y›"],
  ["toml", 'a = "b" # c', '‹f a› = ‹s "b"› ‹c # c›'],
  ["ini", "a = b", "‹f a ›=‹c  b›"],
  ["sql", "SELECT count(*) -- x", "‹k SELECT› ‹k count›(*) ‹c -- x›"],
  ["go", "func f() { return `a\nb` }", "‹k func› f() { ‹k return› ‹s `a›\n‹s b`› }"],
  ["rust", "fn f<'a>(x: &'a str) { 'x' }", "‹k fn› ‹f f›<'a>(x: &'a ‹k str›) { ‹s 'x'› }"],
  ["java", "public int f() {}", "‹k public› ‹k int› ‹f f›() {}"],
  ["kt", "fun f() = 1", "‹k fun› ‹f f›() = ‹n 1›"],
  ["c", "int f(void);", "‹k int› ‹f f›(‹k void›);"],
  ["cpp", "class A {};", "‹k class› ‹f A› {};"],
  ["cs", "using A;", "‹k using› A;"],
  ["swift", "let a = 1", "‹k let› ‹f a› = ‹n 1›"],
  ["dart", "final a = 1;", "‹k final› a = ‹n 1›;"],
  ["scala", "val a = 1", "‹k val› ‹f a› = ‹n 1›"],
  ["md", "# h\n- a `b`\n```\nlet\n```", "‹k hc #›‹k  h›\n‹c -› a ‹c `›‹s b›‹c `›\n‹c ```›\n‹s let›\n‹c ```›"],
  ["diff", "@@ a\n+b\n-c\n d", "‹c @@ a›\n‹s +b›\n‹n -c›\n d"],
])("%s: %s", (language, code, expected) => {
  expect(told(partsOf(code, language))).toBe(expected);
});

test("the language of a file follows from its name", () => {
  expect(languageOf("/a.b/c.test.TS")).toBe("ts");
  expect(languageOf("/a.ts/b")).toBe("b");
  expect(languageNamed(languageOf("/a/Dockerfile"))).toBe(languageNamed("sh"));
  expect(languageNamed("TypeScript")).toBe(languageNamed("ts"));
  expect(languageNamed("constructor")).toBeUndefined();
  expect(languageNamed("")).toBeUndefined();
});

const LANGUAGES = "ts json python sh html css md yaml toml ini sql go rust java kt cpp cs swift diff".split(
  " ",
);

test("the parts are the text, whatever it is", () => {
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
    fc.property(fc.constantFrom(...LANGUAGES), code, (language, parts) => {
      const text = parts.join("");
      expect(textOf(partsOf(text, language))).toBe(text);
    }),
    attempts(2000),
  );
});

test.each(["-", "/[", '"', "`", "${", "<a ", "f (", "*_", "**a* ", "[", "> ", "- a\n", "\\"])(
  "100 kB of %j is given back",
  (unit) => {
    const line = unit.repeat(1990 / unit.length);
    for (const text of [unit.repeat(100_000 / unit.length), `${line}\n`.repeat(49)]) {
      for (const language of ["ts", "json", "md", "yaml"]) {
        expect(textOf(partsOf(text, language)) === text).toBe(true);
      }
    }
  },
);

test("what is too long stays plain", () => {
  expect(told(partsOf("if (a) b;\n".repeat(11_000), "ts"))).not.toContain("‹");
  expect(told(partsOf(`if (${"a".repeat(2000)}) b;`, "ts"))).not.toContain("‹");
});
