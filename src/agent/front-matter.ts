import { parse } from "yaml";

/** A Markdown file that begins with YAML between `---` lines. */
export interface FrontMatter {
  /** What the YAML says; `undefined` when it is none. */
  fields: unknown;
  /** Why it is none, with the line in the file. */
  problem?: string;
  /** The text after it. */
  body: string;
}

/** `undefined` when the text does not begin with front matter. */
export function frontMatterOf(text: string): FrontMatter | undefined {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines[0]?.trimEnd() !== "---") return undefined;
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end === -1) return undefined;
  return { ...parseYaml(lines.slice(1, end).join("\n")), body: lines.slice(end + 1).join("\n") };
}

function parseYaml(block: string): { fields: unknown; problem?: string } {
  try {
    return { fields: parse(block, { maxAliasCount: 0 }) };
  } catch (error) {
    return { fields: undefined, problem: yamlProblem(error) };
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
