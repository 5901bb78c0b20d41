import { parse as parseToml } from "smol-toml";
import { parse } from "yaml";
import { errorMessage } from "../../core/errors.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { memberOf, textMemberOf } from "../../core/unknown.ts";

/** Reads front matter, also the kind that other programs accept although it is not YAML. */

/** A Markdown file that begins with fields between `---` lines. */
interface FrontMatter {
  /** The values of the fields; `undefined` if they cannot be read. */
  fields: unknown;
  /** The reason why `fields` is missing, with the line in the file. */
  problem?: string;
  /** Why the fields were read line by line, if they were. */
  notice?: string;
  body: string;
}

/** Longest front matter, in characters. */
const MAX_LENGTH = 65_536;
/** Longest text for the parser: YAML of 6000 characters can take 50 ms, and twice as much three times that. */
const MAX_YAML = 6000;

/** Blank lines, comments, such as notes on a license, and headings, which people and generators put before it. */
const BEFORE = /^\uFEFF?(?:\s|#.*\n|<!--(?:[^-]|-(?!->)){0,2000}-->)*/;

/** Returns undefined if the text does not begin with front matter. A `path` of TOML: all are fields, also the body. */
export function parseFrontMatter(text: string, path = ""): FrontMatter | undefined {
  if (path.endsWith(".toml"))
    try {
      const fields = parseToml(text.replace(/^\uFEFF/, ""));
      const body = textMemberOf(fields, "developer_instructions") ?? textMemberOf(fields, "prompt") ?? "";
      return { fields, body };
    } catch (error) {
      return { fields: undefined, body: "", problem: `is not TOML: ${oneLine(errorMessage(error), 100)}` };
    }
  const before = BEFORE.exec(headOf(text, 4096))?.[0].length ?? 0;
  const opening = /^---[^\S\n]{0,100}\n/.exec(text.slice(before, before + 200))?.[0];
  if (opening === undefined) return undefined;
  const start = before + opening.length;
  const beginning = text.slice(start, start + MAX_LENGTH);
  const closing = /^---[^\S\n]{0,100}$/m.exec(beginning);
  if (!closing) {
    const problem = `is longer than ${MAX_LENGTH} characters`;
    return text.length > start + MAX_LENGTH ? { fields: undefined, problem, body: "" } : undefined;
  }
  const body = text.slice(start + closing.index + closing[0].length).replace(/^\n/, "");
  const block = beginning.slice(0, closing.index);
  const strict = parseYaml(block);
  if ("fields" in strict) return { ...strict, body };
  const fields = looseFields(block);
  if (fields === undefined) return { fields, problem: strict.problem, body };
  return { fields, notice: `${strict.problem}; it was read line by line`, body };
}

function parseYaml(block: string): { fields: unknown } | { problem: string } {
  if (block.length > MAX_YAML) return { problem: `is longer than ${MAX_YAML} characters` };
  try {
    return { fields: parse(block, { maxAliasCount: 0, logLevel: "error" }) };
  } catch (error) {
    const [said = ""] = errorMessage(error).split("\n");
    // The parser counts lines of the block, which begins in the second line of the file.
    const where = / at line (\d+), column \d+:?$/.exec(said);
    const what = said.slice(0, where?.index).replace(/[.:]$/, "");
    const line = where ? ` in line ${Number(where[1]) + 1}` : "";
    return { problem: `is not YAML: ${what}${line}; put quotes around a text with ': ' or '#' in it` };
  }
}

/** Each line `name: value` begins a field; of two with one name the later counts. Returns undefined if there is none. */
function looseFields(block: string): Record<string, unknown> | undefined {
  const fields: Array<{ name: string; lines: string[] }> = [];
  for (const line of block.split(/\r?\n/)) {
    // Fields stand at the beginning of a line, or behind tabs.
    const [, name, value = ""] = /^\t*([a-z][\w-]*)[ \t]*:(?:[ \t](.*))?$/i.exec(line) ?? [];
    // Capitals begin a sentence (`Context: …`), and these two are the speakers of example dialogues.
    if (name !== undefined && (fields.length === 0 || !/^([A-Z]|(user|assistant)$)/.test(name)))
      fields.push({ name, lines: [value.trim()] });
    else if (!line.startsWith("#")) fields.at(-1)?.lines.push(line);
  }
  if (fields.length === 0) return undefined;
  let left = MAX_YAML;
  const values = fields.map(({ name, lines }): [string, unknown] => {
    const source = `value: ${lines.join("\n").trimEnd()}`;
    left -= source.length + 60;
    const own = left < 0 ? {} : parseYaml(source);
    return [name, "fields" in own ? memberOf(own.fields, "value") : unquoted(lines)];
  });
  return Object.fromEntries(values);
}

/** The text of a field that is not YAML: a block text, a text in quotes, or all of its lines. */
function unquoted([first = "", ...more]: readonly string[]): string {
  const rest = more.map((line) => line.trim());
  const isBlock = /^[|>][-+]?$/.test(first);
  const text = (isBlock ? rest : [first, ...rest]).join(first.startsWith("|") ? "\n" : " ").trim();
  const quoted = isBlock ? undefined : /^(["'])(.*)\1$/s.exec(text);
  if (!quoted) return text;
  const [, mark, inner = ""] = quoted;
  return mark === "'" ? inner.replaceAll("''", "'") : inner.replace(/\\(["\\])/g, "$1");
}
