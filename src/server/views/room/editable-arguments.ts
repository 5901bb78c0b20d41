import type { Approval } from "../../../runs/run.ts";

interface EditableArguments {
  /** One argument that is edited as plain text. Characters that a browser does not show or return are marks. */
  text?: { name: string; value: string; hasMarks: boolean };
  /** The others as JSON; characters that a browser does not show are escaped. */
  json: string;
}

export function editableArguments({ args }: Pick<Approval, "args">): EditableArguments {
  const name = ["content", "new_string", "command"].find(
    (key) => typeof args[key] === "string" && !args[key].includes(MARK),
  );
  if (name === undefined) return { json: visibleJson(args) };
  const { [name]: text, ...others } = args;
  const value = String(text).replace(UNSHOWN, (character) => `${MARK}${toHex(character).toUpperCase()}⟩`);
  return { text: { name, value, hasMarks: value !== text }, json: visibleJson(others) };
}

/** Begins the mark of a character, such as `⟨U+200D⟩`. */
const MARK = "⟨U+";

/** The text that was edited: forms send every line break as CRLF. */
export const unmarked = (typed: string): string =>
  typed
    .replaceAll("\r\n", "\n")
    .replace(/⟨U\+([0-9A-F]{4})⟩/g, (_mark, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

const toHex = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, "0");

const visibleJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(
    /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${toHex(character)}`,
  );

/** Characters that a browser does not show or return unchanged. */
const UNSHOWN =
  // oxlint-disable-next-line no-control-regex -- it looks for control characters
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\p{Surrogate}]/gu;
