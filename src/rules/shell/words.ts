/**
 * Reads words of a command line from its source. A word is literal, or computed by the shell. Words that may start
 * another program are refused, and so are those that shells read differently.
 */

/** A word of a command line. */
export interface ShellWord {
  /** Its literal value. Undefined if the shell computes it. */
  readonly value: string | undefined;
  /** True if the shell may make several words of it, or none. */
  readonly splits: boolean;
  /** True if a word that the program gets for it may begin with "-". */
  readonly mayBeOption: boolean;
}

/** The reason why a person has to look at a command line: what "it" does. */
export class LineRefusal extends Error {}

export function refuseLine(reason: string): never {
  throw new LineRefusal(reason);
}

/** With braces, operands are literal, and operators neither assign nor fail nor evaluate. */
const EXPANSION = /\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]|\{#?[A-Za-z_]\w*(?:(?::?[-+]|%%?|##?)[\w.,/ *-]*)?\})/y;
const SUBSTITUTION = "it uses the output of another command";

/** Throws a LineRefusal. */
export function readWord(text: string): ShellWord {
  let value = "";
  /** Its first character; "-" if that is computed. */
  let first: string | undefined;
  let [isLiteral, isQuoted, splits, splitsAtBlanks] = [true, false, false, false];
  const add = (characters: string): void => {
    first ??= characters[0];
    value += characters;
  };
  for (let at = 0; at < text.length;) {
    const character = text.charAt(at);
    const next = text.charAt(at + 1);
    let length = 1;
    if (character === '"') isQuoted = !isQuoted;
    else if (character === "`") refuseLine(SUBSTITUTION);
    else if (character === "\\") {
      if (next === "" || next === "\n") refuseLine("it joins two lines with a backslash within a word");
      const isEscape = !isQuoted || '$`"\\'.includes(next);
      add(isEscape ? next : character);
      if (isEscape) length = 2;
    } else if (character === "$" && (!isQuoted || /[\w({[@*#?$!-]/.test(next))) {
      EXPANSION.lastIndex = at;
      length =
        EXPANSION.exec(text)?.[0].length ??
        refuseLine(next === "(" ? SUBSTITUTION : "it has an expansion that may run other commands");
      first ??= "-";
      isLiteral = false;
      if (!isQuoted || next === "@" || next === "*") splits = splitsAtBlanks = true;
    } else if (isQuoted) add(character);
    else if (character === "'") {
      const end = text.indexOf("'", at + 1);
      if (end < 0) refuseLine("it has an open quote");
      add(text.slice(at + 1, end));
      length = end + 1 - at;
    } else if ("();<>|&\n \t".includes(character)) refuseLine("it has an operator within a word");
    else {
      const isPattern = "*?[".includes(character) ? text !== "[" : character === "{" && next !== "}";
      // Some locales have blanks beyond ASCII.
      const isForeign = character > "~";
      if (isPattern || isForeign || (character === "~" && (at === 0 || /[=:]/.test(text.charAt(at - 1))))) {
        first ??= "-";
        isLiteral = false;
      }
      splits ||= isPattern || isForeign;
      splitsAtBlanks ||= isForeign;
      add(character);
    }
    at += length;
  }
  if (isQuoted) refuseLine("it has an open quote");
  return { value: isLiteral ? value : undefined, splits, mayBeOption: first === "-" || splitsAtBlanks };
}
