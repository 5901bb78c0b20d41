/** What the highlighter knows about languages. */
import { shownName } from "../../../core/text.ts";

export interface Language {
  keywords: ReadonlySet<string>;
  /** Keywords count in either case. */
  ignoresCase?: true;
  /** What a comment to the end of the line begins with. */
  lineComments?: readonly string[];
  blockComments?: readonly (readonly [open: string, close: string])[];
  /** Characters that strings stand between; on one line, with backslash escapes. */
  quotes: string;
  /** The same over several lines. */
  longQuotes?: readonly string[];
  /** Names that are shown like functions: before `(`, or before `:` as keys and properties. */
  names: "calls" | "keys";
  /** A `'` is a string only around one character, because it also begins lifetimes. */
  hasLifetimes?: true;
  /** A `/` where no value can end begins a regular expression. */
  hasExpressions?: true;
  /** A comment mark counts only at the start of a line or behind a blank, as `#` in `$#` does not. */
  spacedComments?: true;
  /** Names may hold hyphens. */
  hyphens?: true;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
const C_COMMENTS = { lineComments: ["//"], blockComments: [["/*", "*/"]] } as const;

const SCRIPT: Language = {
  ...C_COMMENTS,
  quotes: "\"'",
  longQuotes: ["`"],
  names: "calls",
  hasExpressions: true,
  keywords: words(
    "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let new null of override private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while with yield",
  ),
};

const LANGUAGES = {
  script: SCRIPT,
  json: { ...C_COMMENTS, quotes: '"', names: "keys", keywords: words("true false null") },
  python: {
    lineComments: ["#"],
    quotes: "\"'",
    longQuotes: ['"""', "'''"],
    names: "calls",
    keywords: words(
      "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
    ),
  },
  shell: {
    lineComments: ["#"],
    spacedComments: true,
    quotes: "\"'",
    names: "calls",
    hyphens: true,
    keywords: words(
      "case do done elif else esac exit export fi for function if in local readonly return set shift source then trap unset until while",
    ),
  },
  css: {
    blockComments: [["/*", "*/"]],
    quotes: "\"'",
    names: "keys",
    hyphens: true,
    keywords: words("and not only from to"),
  },
  yaml: {
    lineComments: ["#"],
    spacedComments: true,
    quotes: "\"'",
    names: "keys",
    hyphens: true,
    keywords: words("true false null yes no on off"),
  },
  sql: {
    lineComments: ["--"],
    blockComments: [["/*", "*/"]],
    quotes: "'\"",
    names: "calls",
    ignoresCase: true,
    keywords: words(
      "add all alter and as asc begin between by cascade case check column commit constraint create cross default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction true union unique update using values view when where with",
    ),
  },
  go: {
    ...C_COMMENTS,
    quotes: "\"'",
    longQuotes: ["`"],
    names: "calls",
    keywords: words(
      "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type uint8 var",
    ),
  },
  rust: {
    ...C_COMMENTS,
    quotes: '"',
    hasLifetimes: true,
    names: "calls",
    keywords: words(
      "as async await bool break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static str struct super trait true type u8 u32 u64 unsafe use usize where while",
    ),
  },
  /** Java, Kotlin, C, C++, C# and others of their kind. */
  java: {
    ...C_COMMENTS,
    quotes: "\"'",
    longQuotes: ['"""'],
    names: "calls",
    keywords: words(
      "abstract auto boolean break byte case catch char class const constexpr continue default delete do double else enum extends extern false final finally float for fun goto if implements import include inline instanceof int interface internal long namespace new null nullptr object operator override package private protected public record return sealed short signed sizeof static string struct super switch synchronized template this throw throws true try typedef typename union unsigned using val var virtual void volatile when while",
    ),
  },
} as const satisfies Record<string, Language>;

/** Languages that are read line by line, or by tags. */
type OwnForm = "markup" | "markdown" | "diff";

export type Syntax = Language | OwnForm;

const NAMES: Readonly<Record<keyof typeof LANGUAGES | OwnForm, string>> = {
  script: "js mjs cjs jsx ts mts cts tsx javascript typescript node",
  json: "json json5 jsonc jsonl webmanifest",
  python: "py pyi python python3",
  shell: "sh bash zsh shell console dockerfile makefile toml ini env properties",
  css: "css scss less",
  yaml: "yaml yml",
  sql: "sql sqlite psql postgresql mysql",
  go: "go golang",
  rust: "rs rust",
  java: "java kt kotlin c h cc cpp hpp cs csharp swift dart scala php",
  markup: "html htm xhtml xml svg vue rss",
  markdown: "md markdown mdx",
  diff: "diff patch",
};

type LanguageKey = keyof typeof NAMES;

const KEYS: ReadonlyMap<string, LanguageKey> = new Map(
  Object.entries(NAMES).flatMap(([key, names]) =>
    names.split(" ").map((name): [string, LanguageKey] => [name, key as LanguageKey]),
  ),
);

function syntaxAt(name: string): Syntax | undefined {
  const key = KEYS.get(name.toLowerCase());
  return key === undefined || key === "markup" || key === "markdown" || key === "diff" ? key : LANGUAGES[key];
}

/** The syntax of a language by its name, as behind the fence of a code block. */
export const syntaxNamed = (name: string): Syntax | undefined =>
  syntaxAt(shownName(name).split(/[\s,{]/, 1)[0] ?? "");

/** The syntax of a file by the end of its name. */
export const syntaxOf = (path: string): Syntax | undefined => syntaxAt(endOf(path));

/** The name of that language, for the editor. */
export const languageOf = (path: string): string | undefined => KEYS.get(endOf(path).toLowerCase());

const endOf = (path: string): string =>
  path.slice(Math.max(path.lastIndexOf("."), path.lastIndexOf("/")) + 1);
