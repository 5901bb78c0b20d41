/** The languages of code and the looks of its parts, for texts and for the editor of the page. Runs in the browser. */
import { jsonLanguage } from "@codemirror/lang-json";
import { Language, StreamLanguage, type StreamParser, defineLanguageFacet } from "@codemirror/language";
import { c, cpp, csharp, dart, java, kotlin, scala } from "@codemirror/legacy-modes/mode/clike";
import { css } from "@codemirror/legacy-modes/mode/css";
import { diff } from "@codemirror/legacy-modes/mode/diff";
import { go } from "@codemirror/legacy-modes/mode/go";
import { typescript } from "@codemirror/legacy-modes/mode/javascript";
import { properties } from "@codemirror/legacy-modes/mode/properties";
import { python } from "@codemirror/legacy-modes/mode/python";
import { rust } from "@codemirror/legacy-modes/mode/rust";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { standardSQL } from "@codemirror/legacy-modes/mode/sql";
import { swift } from "@codemirror/legacy-modes/mode/swift";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { html } from "@codemirror/legacy-modes/mode/xml";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import { highlightCode, tagHighlighter, tags } from "@lezer/highlight";
import { GFM, parser } from "@lezer/markdown";

/** A line-by-line parser, or a function that creates a language of another kind. */
type Maker = StreamParser<unknown> | (() => Language);

/** Names of languages and ends of file names. A language is made when it is first needed. */
const LANGUAGES: readonly (readonly [names: string, maker: Maker])[] = [
  ["js mjs cjs jsx ts mts cts tsx javascript typescript node", typescript],
  ["json json5 jsonc jsonl webmanifest", () => jsonLanguage],
  // Marks of emphasis that do not pair up take quadratic time: 14 s for 100 kB.
  [
    "md markdown mdx",
    () =>
      new Language(defineLanguageFacet(), parser.configure([GFM, { remove: ["Emphasis"] }]), [], "markdown"),
  ],
  ["py pyi python python3", python],
  ["sh bash zsh shell console dockerfile makefile", shell],
  ["yaml yml", yaml],
  ["toml", toml],
  ["ini env properties", properties],
  ["css scss less", css],
  ["sql sqlite psql postgresql mysql", standardSQL],
  ["html htm xhtml xml svg vue rss", html],
  ["go golang", go],
  // Its marks for lifetimes have a modifier without a tag, about which a warning would be logged.
  ["rs rust", { ...rust, tokenTable: { special: [] } }],
  ["java php", java],
  ["kt kotlin", kotlin],
  ["c h", c],
  ["cc cpp hpp", cpp],
  ["cs csharp", csharp],
  ["dart", dart],
  ["scala", scala],
  ["swift", swift],
  ["diff patch", diff],
];

const makers: ReadonlyMap<string, Maker> = new Map(
  LANGUAGES.flatMap(([names, maker]) => names.split(" ").map((name): [string, Maker] => [name, maker])),
);
const made = new Map<Maker, Language>();

/** The language of that name; `undefined` if it is not known. */
export function languageNamed(name = ""): Language | undefined {
  const maker = makers.get(name.toLowerCase());
  if (maker === undefined) return undefined;
  const language = made.get(maker) ?? (typeof maker === "function" ? maker() : StreamLanguage.define(maker));
  made.set(maker, language);
  return language;
}

/** Tags of code, with the class and the colour that they get. */
export const LOOKS = [
  {
    tag: [tags.keyword, tags.atom, tags.bool, tags.null, tags.tagName, tags.typeName, tags.heading],
    class: "hk",
    color: "var(--hl-key)",
  },
  { tag: [tags.string, tags.regexp, tags.monospace, tags.inserted], class: "hs", color: "var(--hl-str)" },
  { tag: [tags.number, tags.deleted], class: "hn", color: "var(--hl-num)" },
  { tag: [tags.comment, tags.quote, tags.meta], class: "hc", color: "var(--hl-com)" },
  {
    tag: [tags.propertyName, tags.attributeName, tags.link, tags.url, tags.definition(tags.variableName)],
    class: "hf",
    color: "var(--hl-fn)",
  },
];

const HIGHLIGHTER = tagHighlighter(LOOKS);
/** Code that is longer, or has a longer line, stays without colours; so does code that takes longer to read. */
const MAX = { characters: 100_000, line: 2000, milliseconds: 500 };

/** A part of code, and the class of its look; empty if it has none. */
export type Part = readonly [text: string, look: string];

/** The parts of `code`, which together are the code. */
export function partsOf(code: string, name: string): Part[] {
  const parts: Part[] = [];
  const put = (text: string, look: string): void => void parts.push([text, look]);
  try {
    const tree = parseCode(code, name);
    if (tree === undefined) return [[code, ""]];
    highlightCode(code, tree, HIGHLIGHTER, put, () => put("\n", ""));
    return parts;
  } catch {
    // Too deeply nested for the stack.
    return [[code, ""]];
  }
}

/** Some parsers take quadratic time for a line, or for code that nests. They read it in steps of a few lines. */
function parseCode(code: string, name: string): ReturnType<Language["parser"]["parse"]> | undefined {
  const language = languageNamed(name);
  const isLong = code.length > MAX.characters || code.split("\n").some(({ length }) => length > MAX.line);
  if (language === undefined || isLong) return undefined;
  const end = performance.now() + MAX.milliseconds;
  const parse = language.parser.startParse(code);
  let tree = parse.advance();
  while (tree === null && performance.now() < end) tree = parse.advance();
  return tree ?? undefined;
}
