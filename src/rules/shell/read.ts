/**
 * Reads a command line: the commands that it runs, or the reason why a person has to look at it.
 *
 * The parser supplies the structure and the borders of words. Each word is read again from the source, and between
 * words there may be nothing but blanks, operators, keywords and comments. A type of node that is not listed is refused.
 */
import { createRequire } from "node:module";
import type { Assignment, Command, parse, PipelineNode, Redirection, AndOr, Statement, Word } from "unbash";
import {
  HARMLESS_ASSIGNMENTS,
  READ_BY_THE_SHELL,
  unwrap,
  type ShellAssignment,
  type ShellCommand,
} from "./command.ts";
import { readWord, Refusal, refuse, type ShellWord } from "./words.ts";

export type { ShellCommand } from "./command.ts";

/** `sh`: the subset that bash and the other shells of POSIX read alike. */
export type ShellDialect = "bash" | "sh";

export type ShellReading =
  | {
      readonly ok: true;
      readonly commands: readonly ShellCommand[];
      /** Arguments of `cd`. */
      readonly changesFolder: readonly string[];
    }
  /** The reason is a sentence about "it". */
  | { readonly ok: false; readonly reason: string };

const MOST_CHARACTERS = 10_000;
/** Shells give these names no meaning. */
const PLAIN_NAME = /^[a-z][a-z0-9]{0,15}$/;

const loadRequired = createRequire(import.meta.url);

interface Reader {
  readonly source: string;
  readonly dialect: ShellDialect;
  readonly commands: ShellCommand[];
  /** What was read, in the order of the source. Words of one unit have only blanks between them. */
  readonly spans: { readonly pos: number; readonly end: number; readonly unit: object }[];
}

export function readCommandLine(line: string, dialect: ShellDialect): ShellReading {
  try {
    const commands = readCommands(line, dialect);
    const changesFolder = commands.flatMap(({ words: [program, folder], isHarmless }) =>
      isHarmless && program?.value === "cd" && folder?.value ? [folder.value] : [],
    );
    if (changesFolder.length > 0 && commands.some(({ words }) => /^[^/]+\//.test(words[0]?.value ?? "")))
      refuse("it changes the folder, and starts a program by a relative path");
    return { ok: true, commands, changesFolder };
  } catch (error) {
    return { ok: false, reason: error instanceof Refusal ? error.message : "it could not be parsed" };
  }
}

function readCommands(source: string, dialect: ShellDialect): ShellCommand[] {
  if (source.length > MOST_CHARACTERS) refuse(`it is longer than ${MOST_CHARACTERS} characters`);
  if (!source.isWellFormed()) refuse("it is not valid Unicode");
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(source)) refuse("it has control characters");
  // Shells join such lines before they look for words, and parsers may not. Quotes make no difference.
  if (/(?:^|[^ \t])\\\n/.test(source)) refuse("it joins two lines with a backslash within a word");
  const unbash = loadRequired("unbash") as { parse: typeof parse }; // its own types
  const script = unbash.parse(source);
  if (script.errors?.length) refuse("it has a syntax error");
  const reader: Reader = { source, dialect, commands: [], spans: [] };
  walkAll(script.commands, reader);
  checkGaps(reader);
  return reader.commands;
}

const walkAll = (nodes: readonly (Statement | PipelineNode)[], reader: Reader): void => {
  for (const node of nodes) walk(node, reader);
};

function walk(node: Statement | PipelineNode | AndOr, reader: Reader): void {
  switch (node.type) {
    case "Statement":
      return walk(node.command, reader);
    case "Pipeline":
      if (reader.dialect === "sh" && node.operators.includes("|&"))
        refuse("it uses |&, which some shells do not have");
      return walkAll(node.commands, reader);
    case "AndOr":
      return walkAll(node.commands, reader);
    case "Command":
      return readCommand(node, reader);
    case "Subshell":
    case "BraceGroup":
      if (reader.source.startsWith("((", node.pos)) refuse("it may have arithmetic");
      return walkAll(node.body.commands, reader);
    case "Redirected":
      walk(node.command, reader);
      for (const redirection of node.redirects) readRedirection(redirection, reader, node);
      return;
    case "If":
      for (const part of [node, ...node.elif])
        walkAll([...part.clause.commands, ...part.then.commands], reader);
      return walkAll(node.else?.commands ?? [], reader);
    case "While":
      return walkAll([...node.clause.commands, ...node.body.commands], reader);
    case "For":
      if (!PLAIN_NAME.test(take(node.name, reader, node.name)))
        refuse("it sets a variable that may have an effect");
      for (const word of node.wordlist ?? refuse("it repeats commands for its parameters"))
        readParsedWord(word, reader, node);
      return walkAll(node.body.commands, reader);
    default:
      return refuse("it uses shell syntax that no rule covers");
  }
}

/** Notes that this part of the source was read, and returns it. */
function take({ pos, end }: { pos: number; end: number }, { source, spans }: Reader, unit: object): string {
  spans.push({ pos, end, unit });
  return source.slice(pos, end);
}

function readParsedWord(word: Word, reader: Reader, unit: object): ShellWord {
  const text = take(word, reader, unit);
  const read = readWord(text);
  if (text !== word.text || (read.value !== undefined && read.value !== word.value))
    refuse("it has a word with two readings");
  return read;
}

function readCommand(node: Command, reader: Reader): void {
  const words: ShellWord[] = [];
  const assignments: ShellAssignment[] = [];
  for (const part of [...node.prefix, ...(node.name ? [node.name] : []), ...node.suffix]) {
    if (part.type === "Word") words.push(readParsedWord(part, reader, node));
    else if (part.type !== "Assignment") readRedirection(part, reader, node);
    // Some builtins take assignments as arguments.
    else if (words.length > 0) words.push(readWord(take(part, reader, node)));
    else assignments.push(readAssignment(part, take(part, reader, node)));
  }
  if (words.length > 0) {
    reader.commands.push(unwrap(reader.source.slice(node.pos, node.end), words, assignments));
    return;
  }
  const isPlain = ({ name }: ShellAssignment): boolean =>
    PLAIN_NAME.test(name) || (HARMLESS_ASSIGNMENTS.has(name) && !READ_BY_THE_SHELL.has(name));
  if (!assignments.every(isPlain)) refuse("it sets a variable that may have an effect");
}

function readAssignment(node: Assignment, text: string): ShellAssignment {
  const [, name, value = ""] = /^([A-Za-z_]\w*)=([^]*)$/.exec(text) ?? [];
  if (name !== node.name || value.startsWith("(")) refuse("it assigns to an array, or appends to a variable");
  return { name, value: readWord(value).value };
}

/** Throws a Refusal unless it is to or from /dev/null, or a copy of a standard stream. */
function readRedirection(node: Redirection, reader: Reader, unit: object): void {
  if (node.type !== "Redirect") refuse("it has a here document or a here string");
  const text = take(node, reader, unit);
  const [, from, operator, target = ""] = /^([0-2&]?)([<>]+[|&]?)[ \t]*([^]+)$/.exec(text) ?? [];
  const { value } = readWord(target);
  const isCopy = operator === ">&" && from !== "&" && /^[0-2]$/.test(value ?? "");
  const operators = from !== "&" ? "< > >> >|" : reader.dialect === "bash" ? "> >>" : "";
  const isNull = value === "/dev/null" && operators.split(" ").includes(operator ?? "");
  if (target !== node.target?.text || !(isCopy || isNull)) refuse("it redirects to or from a file");
}

/** Throws a Refusal if there is anything else between what was read than blanks, or operators, keywords and comments. */
function checkGaps({ source, spans }: Reader): void {
  let last = { end: 0, unit: {} };
  for (const span of [...spans, { pos: source.length, end: source.length, unit: spans }]) {
    const gap = source.slice(last.end, span.pos).replaceAll("\\\n", " ");
    const bare = gap.replaceAll(/(^|[\s;&|(){}])#[^\n]*/g, "$1");
    const isBlank = /^[ \t]*$/.test(gap);
    const mayBeBlank = span.unit === last.unit || last.end === 0 || span.pos === source.length;
    const isBetween = BETWEEN_COMMANDS.test(bare) && (last.end === 0 || !/^[ \t]*[({]/.test(gap));
    if (span.pos < last.end || !(isBlank ? mayBeBlank : span.unit !== last.unit && isBetween))
      refuse("it has text that was not understood");
    last = span;
  }
}

const BETWEEN_COMMANDS =
  /^(?:[\s;&|!(){}]|(?:if|then|elif|else|fi|while|until|do|done|for|in|time(?:[ \t]+-p)?(?:[ \t]+--)?)(?![\w-]))*$/;
