/**
 * Reads a command line: the commands that it runs, or the reason why a person has to look at it.
 *
 * The parser supplies the structure and the borders of words. Each word is read again from the source, and between
 * words there may be nothing but blanks, operators, keywords and comments. A type of node that is not listed is refused.
 */
import { createRequire } from "node:module";
import type { Command, forEachChild, parse, SyntaxNode, Word } from "unbash";
import { isListed, unwrap, type ShellAssignment, type ShellCommand } from "./command.ts";
import { readWord, LineRefusal, refuseLine, type ShellWord } from "./words.ts";

export type { ShellCommand } from "./command.ts";

/** `sh`: the subset that bash and other POSIX shells read alike. */
export type ShellDialect = "bash" | "sh";

export type ShellReading =
  | {
      readonly ok: true;
      readonly commands: readonly ShellCommand[];
      /** Arguments of `cd`. */
      readonly changesFolder: readonly string[];
      /** True if a program is named by a path that depends on the folder. */
      readonly isRelative: boolean;
    }
  /** The reason is a sentence about "it". */
  | { readonly ok: false; readonly reason: string };

const MOST_CHARACTERS = 10_000;
/** Shells attach no meaning to these names of variables. */
const PLAIN_NAME = /^[a-z][a-z0-9]{0,15}$/;

interface Reader {
  readonly unbash: { readonly parse: typeof parse; readonly forEachChild: typeof forEachChild };
  readonly source: string;
  readonly dialect: ShellDialect;
  readonly commands: ShellCommand[];
  /** Ranges that were read, in order. Between those of one unit there are only blanks. */
  readonly spans: { readonly pos: number; readonly end: number; readonly unit: object }[];
}

export function readCommandLine(source: string, dialect: ShellDialect): ShellReading {
  try {
    if (source.length > MOST_CHARACTERS) refuseLine(`it is longer than ${MOST_CHARACTERS} characters`);
    if (!source.isWellFormed()) refuseLine("it is not valid Unicode");
    if (/[^\P{Cc}\t\n]/u.test(source)) refuseLine("it has control characters");
    // Shells join such lines before they look for words, and parsers may not. Quotes make no difference.
    if (/(?:^|[^ \t])\\\n/.test(source)) refuseLine("it joins two lines with a backslash within a word");
    const unbash = createRequire(import.meta.url)("unbash") as Reader["unbash"]; // its own types
    const script = unbash.parse(source);
    if (script.errors?.length) refuseLine("it has a syntax error");
    const commands: ShellCommand[] = [];
    const reader: Reader = { unbash, source, dialect, commands, spans: [] };
    walk(script, script, reader);
    checkGaps(reader);
    const changesFolder = commands.flatMap(({ words: [program, folder], isHarmless }) =>
      isHarmless && program?.value === "cd" && folder?.value ? [folder.value] : [],
    );
    const isRelative = commands.some(({ words }) => /^[^/]+\//.test(words[0]?.value ?? ""));
    if (changesFolder.length > 0 && isRelative)
      refuseLine("it changes the folder, and starts a program by a relative path");
    return { ok: true, commands, changesFolder, isRelative };
  } catch (error) {
    return { ok: false, reason: error instanceof LineRefusal ? error.message : "it could not be parsed" };
  }
}

/** To or from /dev/null, or copies of standard streams. */
const HARMLESS_REDIRECTION =
  /^(?:[0-2]?(?:<|>>?|>\|)[ \t]*\/dev\/null|&>>?[ \t]*\/dev\/null|[0-2]?>&[ \t]*[0-2])$/;

const STRUCTURE =
  /^(?:Script|Statement|CompoundList|AndOr|Pipeline|Time|Negation|Redirected|Subshell|BraceGroup|If|Elif|While|For)$/;

function walk(node: SyntaxNode, parent: SyntaxNode, reader: Reader): void {
  if (node.type === "Command") return readCommand(node, reader);
  if (/^(?:Redirect|HereDoc|HereString)$/.test(node.type)) {
    const text = readRange(node, reader, parent);
    const isForBash = reader.dialect === "sh" && text.startsWith("&");
    if (isForBash || !HARMLESS_REDIRECTION.test(text)) refuseLine("it redirects to or from a file");
    return;
  }
  if (node.type === "Word") {
    // The name of a loop's variable stands apart from its words.
    readParsedWord(node, reader, parent.type === "For" && parent.name === node ? node : parent);
    return;
  }
  if (!STRUCTURE.test(node.type)) refuseLine("it uses shell syntax that no rule covers");
  if (node.type === "For" && !node.wordlist) refuseLine("it repeats commands for its parameters");
  if (node.type === "For" && !PLAIN_NAME.test(node.name.text)) refuseLine(SETS_VARIABLE);
  if (node.type === "Subshell" && reader.source.startsWith("((", node.pos))
    refuseLine("it may have arithmetic");
  if (node.type === "Pipeline" && reader.dialect === "sh" && node.operators.includes("|&"))
    refuseLine("it uses |&, which some shells do not have");
  reader.unbash.forEachChild(node, (child) => walk(child, node, reader));
}

const SETS_VARIABLE = "it sets a variable that may have an effect";

/** Notes that a range of the source was read, and returns it. */
function readRange(
  { pos, end }: { pos: number; end: number },
  { source, spans }: Reader,
  unit: object,
): string {
  spans.push({ pos, end, unit });
  return source.slice(pos, end);
}

function readParsedWord(word: Word, reader: Reader, unit: object): ShellWord {
  const text = readRange(word, reader, unit);
  const read = readWord(text);
  if (text !== word.text || (read.value ?? word.value) !== word.value)
    refuseLine("it has a word with two readings");
  return read;
}

function readCommand(node: Command, reader: Reader): void {
  const words: ShellWord[] = [];
  const assignments: ShellAssignment[] = [];
  for (const part of [...node.prefix, ...(node.name ? [node.name] : []), ...node.suffix]) {
    if (part.type === "Word") words.push(readParsedWord(part, reader, node));
    else if (part.type !== "Assignment") walk(part, node, reader);
    // Some builtins take assignments as arguments.
    else if (words.length > 0) words.push(readWord(readRange(part, reader, node)));
    else {
      const [, name, value = ""] = /^([A-Za-z_]\w*)=([^]*)$/.exec(readRange(part, reader, node)) ?? [];
      if (name !== part.name || value.startsWith("("))
        refuseLine("it assigns to an array, or appends to a variable");
      assignments.push({ name, value: readWord(value).value });
    }
  }
  const isPlain = ({ name }: ShellAssignment): boolean =>
    PLAIN_NAME.test(name) || (isListed("harmlessAssignments", name) && !isListed("readByTheShell", name));
  if (words.length > 0)
    reader.commands.push(unwrap(reader.source.slice(node.pos, node.end), words, assignments));
  else if (!assignments.every(isPlain)) refuseLine(SETS_VARIABLE);
}

const BETWEEN_COMMANDS =
  /^(?:[\s;&|!(){}]|(?:if|then|elif|else|fi|while|until|do|done|for|in|time(?:[ \t]+-p)?(?:[ \t]+--)?)(?![\w-]))*$/;

/** Throws a LineRefusal for anything else between the ranges than blanks, or operators, keywords and comments. */
function checkGaps({ source, spans }: Reader): void {
  const text = `${source}\n`;
  let last = { end: 0, unit: {} };
  for (const span of [...spans, { pos: text.length, end: text.length, unit: spans }]) {
    const gap = text.slice(last.end, span.pos).replaceAll("\\\n", " ");
    const bare = gap.replaceAll(/(^|[\s;&|(){}])#[^\n]*/g, "$1");
    const isBetween = BETWEEN_COMMANDS.test(bare) && (last.end === 0 || /^[ \t]*[^ \t({]/.test(gap));
    if (span.pos < last.end || !(span.unit === last.unit ? /^[ \t]*$/.test(gap) : isBetween))
      refuseLine("it has text that was not understood");
    last = span;
  }
}
