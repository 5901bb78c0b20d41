/** Changes one table of a TOML text and leaves every other line as it is, comments included. */
import { isDeepStrictEqual } from "node:util";
import { type TomlTable, parse, stringify } from "smol-toml";
import { orElse } from "../../core/errors.ts";
import { memberOf, recordOf } from "../../core/unknown.ts";
import { type EditedText, eolOf } from "./json-text.ts";

export function tomlValueAt(text: string, ...path: string[]): unknown {
  const value: unknown = orElse((): unknown => parse(text), undefined);
  return path.reduce(memberOf, value);
}

/** Sets the table `[key.name]`, in its place or at the end. `undefined` removes it. */
export function setTomlTable(text: string, key: string, name: string, value?: object): EditedText {
  const before = orElse((): TomlTable | undefined => parse(text), undefined);
  if (before === undefined) return { ok: false, problem: "it is not valid TOML" };
  const lines = text.split(/(?<=\n)/);
  const isOurs = (line: string): boolean => {
    const [first, second] = (/^\s*\[([^[\]]+)\]/.exec(line)?.[1] ?? "")
      .split(".")
      .map((part) => part.trim().replace(/^(["'])(.*)\1$/, "$2"));
    return first === key && second === name;
  };
  const found = lines.findIndex(isOurs);
  let start = found < 0 ? lines.length : found;
  const next = lines.findIndex((line, at) => at > start && /^\s*\[/.test(line) && !isOurs(line));
  let end = next < 0 ? lines.length : next;
  // Comments above the next table are about that one.
  if (next >= 0) while (end > start && /^\s*(?:#|$)/.test(lines[end - 1] ?? "")) end -= 1;
  if (value === undefined && start > 0 && lines[start - 1]?.trim() === "") start -= 1;
  const head = lines.slice(0, start).join("");
  const eol = eolOf(text);
  const gap = found >= 0 || head === "" ? "" : eol.repeat(head.endsWith("\n") ? 1 : 2);
  const block = value && gap + stringify({ [key]: { [name]: value } }).replaceAll("\n", eol);
  const result = head + (block ?? "") + lines.slice(end).join("");
  const { [name]: _old, ...others } = recordOf(before[key]);
  const wanted = { ...before, [key]: { ...others, ...(value && { [name]: value }) } };
  const after = { [key]: {}, ...orElse(() => parse(result), {}) };
  if (isDeepStrictEqual(asJson(after), asJson(wanted))) return { ok: true, text: result };
  return { ok: false, problem: `its "${key}" is not what clients write there` };
}

/** Converts dates to texts, and objects to plain ones. */
const asJson = (value: object): unknown => JSON.parse(JSON.stringify(value));
