/**
 * A second reader of command lines, without a parser: words, quotes, operators, comments, redirections to /dev/null and
 * copies of streams. It shares the reader of words, so it is an oracle of structure.
 */
import { unwrap, type ShellAssignment, type ShellCommand } from "../../../src/rules/shell/command.ts";
import { readWord } from "../../../src/rules/shell/words.ts";

const RESERVED = new Set(
  "if then else elif fi for while until do done case esac in select function coproc time { } [[ ]]".split(
    " ",
  ),
);
const PLAIN =
  /^(?:[a-z][a-z0-9]{0,15}|CI|NODE_ENV|FORCE_COLOR|NO_COLOR|TERM|TZ|COLUMNS|RUST_BACKTRACE|RUST_LOG|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|HUSKY)$/;
const REDIRECTION =
  /^[0-2]?>&[0-2](?=[\s;&|)]|$)|^&>>?[ \t]*\/dev\/null(?=[\s;&|)]|$)|^[0-2]?(?:>>?|>\||<)[ \t]*\/dev\/null(?=[\s;&|)]|$)/;

class NotUnderstood extends Error {}
const stop = (): never => {
  throw new NotUnderstood();
};

/** The commands, or undefined for a line that this reader or the reader of words does not understand. */
export function readStrictly(source: string): ShellCommand[] | undefined {
  try {
    if (!source.isWellFormed() || /(?:^|[^ \t])\\\n/.test(source)) stop();
    if (/[^\P{Cc}\t\n]/u.test(source)) stop();
    return readCommands(source);
  } catch {
    return undefined;
  }
}

function readCommands(source: string): ShellCommand[] {
  const commands: ShellCommand[] = [];
  let words: string[] = [];
  let [isStarted, isRedirected, isOpen] = [false, false, false];
  const finish = (operator: string): void => {
    if (!isStarted) {
      if ((operator !== "\n" && operator !== "") || (operator === "" && isOpen)) stop();
      return;
    }
    if (words[0] === "!") {
      words.shift();
      if (isRedirected || words.length === 0 || words[0] === "!") stop();
    }
    const assignments: ShellAssignment[] = [];
    for (let found; (found = /^([A-Za-z_]\w*)=/.exec(words[0] ?? "")); words.shift()) {
      const { value } = readWord(words[0]!.slice(found[0].length));
      assignments.push({ name: found[1]!, value });
    }
    if (words.length > 0) {
      if (assignments.length === 0 && RESERVED.has(words[0]!.replaceAll("\\\n", ""))) stop();
      commands.push(unwrap("", words.map(readWord), assignments));
    } else if (!assignments.every(({ name }) => PLAIN.test(name))) stop();
    words = [];
    isStarted = isRedirected = false;
    isOpen = ["&&", "||", "|", "|&"].includes(operator);
  };
  for (let at = 0; at < source.length;) {
    const rest = source.slice(at);
    const blank = /^(?:[ \t]|\\\n)+|^#[^\n]*/.exec(rest);
    const redirection = REDIRECTION.exec(rest);
    const operator = /^(?:&&|\|\||\|&|[|;&\n])/.exec(rest);
    if (blank) at += blank[0].length;
    else if (redirection) {
      at += redirection[0].length;
      isStarted = true;
      isRedirected ||= words.length === 0;
    } else if (operator) {
      if (/^(?:;;|;&)/.test(rest)) stop();
      finish(operator[0]);
      at += operator[0].length;
    } else {
      if (/^[<>()]|^[0-9]+[<>]/.test(rest)) stop();
      const end = wordEnd(source, at);
      words.push(source.slice(at, end));
      isStarted = true;
      at = end;
    }
  }
  finish("");
  return commands;
}

function wordEnd(source: string, from: number): number {
  let at = from;
  while (at < source.length && !/[\s;&|<>()]/.test(source[at]!)) {
    if (source[at] === "\\") at += 2;
    else if (source[at] === "'") {
      at = source.indexOf("'", at + 1) + 1;
      if (at === 0) stop();
    } else if (source[at] === '"') {
      for (at++; source[at] !== '"'; at++) {
        if (at >= source.length) stop();
        if (source[at] === "\\") at++;
        else if (source[at] === "`") stop();
        else if (/^\$[({]/.test(source.slice(at, at + 2)) && !/^\$\{\w+\}/.test(source.slice(at))) stop();
      }
      at++;
    } else {
      if (source[at] === "`" || /^\$[({'"]/.test(source.slice(at, at + 2))) stop();
      at++;
    }
  }
  return at;
}
