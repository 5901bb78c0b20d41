/**
 * Translates an expression that RE2 accepts into one for ripgrep that matches at least the same lines.
 *
 * ripgrep only proposes files; the lines are decided by RE2 afterwards. So the translation may match more,
 * never less. What differs: `\d`, `\w`, `\s` and `\b` are ASCII in RE2 and Unicode in Rust; `[`, `&`, `~`
 * and `-` nest or combine sets in Rust; `\Q…\E`, `\pN` of one letter and octal numbers are RE2's; anchors
 * are about one line, whose CRLF end the reader takes off. Undefined when a construct is not known here.
 */
export function toRustRegex(expression: string): string | undefined {
  const reader: Reader = { characters: Array.from(expression), at: 0 };
  const output: string[] = [];
  while (reader.at < reader.characters.length) {
    const part = nextPart(reader);
    if (part === undefined) return undefined;
    output.push(part);
  }
  return output.join("");
}

interface Reader {
  characters: string[];
  at: number;
}

const take = (reader: Reader): string | undefined => reader.characters[reader.at++];

/** The translation of the next construct. Empty for one that says nothing, such as flags that make no difference. */
function nextPart(reader: Reader): string | undefined {
  const character = take(reader);
  switch (character) {
    case undefined:
      return undefined;
    case "\\":
      return escapeOutside(reader);
    case "[":
      return set(reader);
    case "(":
      return group(reader);
    case "$":
      return LINE_END;
    default:
      return character;
  }
}

/** A line as ripgrep sees it may still have the carriage return of its line end. */
const LINE_END = "(?:\\r?$)";

const ASCII_SETS: Readonly<Record<string, string>> = {
  d: "0-9",
  w: "0-9A-Za-z_",
  s: "\\t\\n\\x0C\\r ",
};

const SIMPLE_ESCAPES = new Set("aftnrv".split(""));

function escapeOutside(reader: Reader): string | undefined {
  const character = take(reader);
  if (character === undefined) return undefined;
  const lower = character.toLowerCase();
  const ascii = ASCII_SETS[lower];
  if (ascii !== undefined) return character === lower ? `[${ascii}]` : `[^${ascii}]`;
  switch (character) {
    case "A":
      return "^";
    case "z":
      return LINE_END;
    case "b":
    case "B":
      return `(?-u:\\${character})`;
    case "Q":
      return quotedText(reader);
    default:
      return commonEscape(reader, character);
  }
}

/** Escapes that mean the same inside and outside of sets. */
function commonEscape(reader: Reader, character: string): string | undefined {
  if (SIMPLE_ESCAPES.has(character)) return `\\${character}`;
  if (character === "x") return hexadecimal(reader);
  if (character === "p" || character === "P") return unicodeClass(reader, character);
  if (/[0-9]/.test(character)) return octal(reader, character);
  return /[A-Za-z]/.test(character) ? undefined : literal(character);
}

function hexadecimal(reader: Reader): string | undefined {
  const rest = reader.characters.slice(reader.at, reader.at + 12).join("");
  const digits = /^(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})/.exec(rest);
  if (digits === null) return undefined;
  reader.at += digits[0].length;
  return `\\x{${digits[1] ?? digits[2] ?? ""}}`;
}

function octal(reader: Reader, first: string): string | undefined {
  const rest = first + reader.characters.slice(reader.at, reader.at + 2).join("");
  const digits = /^[0-7]{1,3}/.exec(rest)?.[0];
  if (digits === undefined) return undefined;
  reader.at += digits.length - 1;
  return `\\x{${Number.parseInt(digits, 8).toString(16)}}`;
}

function unicodeClass(reader: Reader, kind: string): string | undefined {
  const rest = reader.characters.slice(reader.at, reader.at + 64).join("");
  const name = /^(?:([A-Z])|\{(\^?)([A-Za-z_ ]+)\})/.exec(rest);
  if (name === null) return undefined;
  reader.at += name[0].length;
  const isNegated = (kind === "P") !== (name[2] === "^");
  return `\\${isNegated ? "P" : "p"}{${name[1] ?? name[3] ?? ""}}`;
}

function quotedText(reader: Reader): string | undefined {
  const output: string[] = [];
  for (let character = take(reader); character !== undefined; character = take(reader)) {
    if (character === "\\" && reader.characters[reader.at] === "E") {
      reader.at += 1;
      break;
    }
    output.push(literal(character));
  }
  return output.length === 0 && isRepeated(reader) ? undefined : output.join("");
}

/** Whether a repetition comes next; behind nothing it is about what stands before, but not always in the same way. */
const isRepeated = (reader: Reader): boolean => /[*+?{]/.test(reader.characters[reader.at] ?? "");

/** Flags: `m` would let anchors leave the line in ripgrep; with one line at a time it changes nothing. */
function group(reader: Reader): string | undefined {
  if (reader.characters[reader.at] !== "?") return "(";
  const rest = reader.characters.slice(reader.at, reader.at + 80).join("");
  const named = /^\?P?<(\w+)>/.exec(rest);
  if (named !== null) {
    reader.at += named[0].length;
    return "(?:";
  }
  const flags = /^\?([imsU]*)(?:-([imsU]+))?([:)])/.exec(rest);
  if (flags === null) return undefined;
  reader.at += flags[0].length;
  const [, on = "", off = "", end = ":"] = flags;
  const kept = (letters: string): string => letters.replaceAll("m", "");
  const setting = kept(on) + (kept(off) === "" ? "" : `-${kept(off)}`);
  if (end === ")") return isRepeated(reader) ? undefined : setting === "" ? "" : `(?${setting})`;
  return `(?${setting}:`;
}

function set(reader: Reader): string | undefined {
  const output: string[] = ["["];
  if (reader.characters[reader.at] === "^") output.push(take(reader) ?? "");
  for (let isFirst = true; ; isFirst = false) {
    const character = take(reader);
    if (character === undefined) return undefined;
    if (character === "]" && !isFirst) return `${output.join("")}]`;
    const part = setMember(reader, character);
    if (part === undefined) return undefined;
    output.push(part);
  }
}

function setMember(reader: Reader, character: string): string | undefined {
  if (character === "[") {
    const rest = reader.characters.slice(reader.at, reader.at + 16).join("");
    const named = /^:\^?[a-z]+:\]/.exec(rest);
    if (named === null) return "\\[";
    reader.at += named[0].length;
    return `[${named[0]}`;
  }
  if (character === "-") {
    // Between two members a range, at either end itself; RE2 has checked that it is one of these.
    const [before, second] = [reader.characters[reader.at - 2], reader.characters[reader.at - 3]];
    const isFirst = before === "[" || (before === "^" && second === "[");
    return isFirst || reader.characters[reader.at] === "]" ? "\\-" : "-";
  }
  if (character !== "\\") return "&~^".includes(character) ? `\\${character}` : character;
  const escaped = take(reader);
  if (escaped === undefined) return undefined;
  const lower = escaped.toLowerCase();
  const ascii = ASCII_SETS[lower];
  if (ascii !== undefined) return escaped === lower ? ascii : `[^${ascii}]`;
  return commonEscape(reader, escaped);
}

/** Only what has a meaning is escaped: in Rust `\<` and `\>` are word boundaries. */
const literal = (character: string): string =>
  /[\\.+*?()|[\]{}^$#&~-]/.test(character) ? `\\${character}` : character;
