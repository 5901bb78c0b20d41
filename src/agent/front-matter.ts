import { parse } from "yaml";

/** A Markdown file that begins with YAML between `---` lines. */
export interface FrontMatter {
  /** What the YAML says; `undefined` when it is none. */
  fields: unknown;
  /** The text after it. */
  body: string;
}

/** `undefined` when the text does not begin with front matter. */
export function frontMatterOf(text: string): FrontMatter | undefined {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines[0]?.trimEnd() !== "---") return undefined;
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end === -1) return undefined;
  return { fields: parseYaml(lines.slice(1, end).join("\n")), body: lines.slice(end + 1).join("\n") };
}

function parseYaml(block: string): unknown {
  try {
    return parse(block, { maxAliasCount: 0 });
  } catch {
    return undefined;
  }
}
