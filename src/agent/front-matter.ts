import { parse } from "yaml";
import { headOf } from "../core/text.ts";

/** A Markdown file that begins with YAML between `---` lines. */
export interface FrontMatter {
  /** What the YAML says; `undefined` when it is none. */
  fields: unknown;
  /** Why there are none: what the front matter is or is not, with the line in the file. */
  problem?: string;
  /** The text after it. */
  body: string;
}

/** Longest front matter, in characters: YAML of 6000 can take the parser 50 ms, and twice as much three times that. */
const MAX_LENGTH = 6000;

const OPENING = /^\uFEFF?---[^\S\n]{0,100}\n/;
const CLOSING = /^---[^\S\n]{0,100}$/m;

/** `undefined` when the text does not begin with front matter. */
export function frontMatterOf(text: string): FrontMatter | undefined {
  const start = OPENING.exec(headOf(text, 200))?.[0].length;
  if (start === undefined) return undefined;
  const beginning = text.slice(start, start + MAX_LENGTH);
  const closing = CLOSING.exec(beginning);
  if (!closing) {
    const problem = `is longer than ${MAX_LENGTH} characters`;
    return text.length > start + MAX_LENGTH ? { fields: undefined, problem, body: "" } : undefined;
  }
  const body = text.slice(start + closing.index + closing[0].length).replace(/^\n/, "");
  return { ...parseYaml(beginning.slice(0, closing.index)), body };
}

function parseYaml(block: string): { fields: unknown; problem?: string } {
  try {
    return { fields: parse(block, { maxAliasCount: 0, logLevel: "error" }) };
  } catch (error) {
    return { fields: undefined, problem: `is not YAML: ${yamlProblem(error)}` };
  }
}

/** The parser counts lines of the block, which begins in the second line of the file. */
function yamlProblem(error: unknown): string {
  if (!(error instanceof Error)) return "it is not YAML";
  const [said = ""] = error.message.split("\n");
  const where = / at line (\d+), column \d+:?$/.exec(said);
  const what = said.slice(0, where?.index).replace(/[.:]$/, "");
  const line = where ? ` in line ${Number(where[1]) + 1}` : "";
  return `${what}${line}; put quotes around a text with ': ' or '#' in it`;
}
