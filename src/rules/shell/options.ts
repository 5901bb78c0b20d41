/**
 * Arguments by which otherwise harmless programs start programs, or read and write files elsewhere. They need approval
 * where a rule allows any arguments.
 */
import { groupBy } from "../../core/group-by.ts";
import type { ShellCommand } from "./command.ts";
import table from "./options.json" with { type: "json" };
import type { ShellWord } from "./words.ts";

/** An entry of the table, for programs and subcommands. Lists are separated by blanks. */
interface Entry {
  readonly commands: string;
  readonly source: string;
  /** `--long`, with abbreviations; `-o`, alone or among other letters; `^text` at the start of a word; `=` in a word. */
  readonly options?: string;
  /** Forms of long options: `words` also have one dash and no letters are combined; `both` allows either. */
  readonly dashes?: string;
  /** True if `--` ends the options. */
  readonly endsOptions?: boolean;
  /** The arguments that may come first if a rule leaves the first one open. */
  readonly subcommands?: string;
  /** True if a rule must include the first argument: a program, code or a host. */
  readonly code?: boolean;
  /** Options whose value is the next word, before that argument. */
  readonly valued?: string;
  /** Programs with fewer arguments than this read code from standard input. */
  readonly interprets?: number;
  /** Number of arguments that the program does not write to. */
  readonly operands?: number;
}

type Word = Pick<ShellWord, "value" | "splits">;

const split = (list = ""): string[] => list.split(" ").filter(Boolean);
const ENTRIES = groupBy(
  table.flatMap((entry: Entry) =>
    entry.commands.split(", ").map((name) => ({ entry, path: name.split(" ") })),
  ),
  ({ path }) => path[0],
);
/** Stands for the arguments that xargs adds. */
const ADDED: ShellWord = { text: "", value: undefined, splits: true, mayBeOption: true };

/** Entries for a command, and after options or computed words for all subcommands that it may have. `start`: the position of the first argument. */
function* entriesFor(words: readonly Word[]) {
  const program = words[0]?.value?.replace(/^.*\//s, "") ?? "";
  for (const { entry, path } of ENTRIES.get(program) ?? ENTRIES.get(program.replace(/[\d.]+$/, "")) ?? []) {
    let [found, start, isSure] = [1, 1, true];
    for (const [index, { value, splits }] of words.entries()) {
      if (index === 0 || found === path.length) continue;
      if (value === undefined || value.startsWith("-")) isSure = false;
      if (value === undefined || value === path[found]) {
        found = splits ? path.length : found + 1;
        start = index + 1;
      } else if (isSure) break;
    }
    if (found === path.length) yield { entry, start, name: path.join(" ") };
  }
}

/** Arguments that are neither options nor their values. */
const operandsAfter = (words: readonly Word[], start: number, { valued }: Entry): Word[] =>
  words.filter(
    ({ value }, index) =>
      index >= start && !value?.startsWith("-") && !split(valued).includes(words[index - 1]?.value ?? ""),
  );

/** True if a rule with these words does not cover the arguments that follow them. */
export function needsApproval({ words, isOpen }: ShellCommand, literal: readonly string[]): boolean {
  const all = isOpen ? [...words, ADDED] : words;
  const inRule = words.slice(0, literal.length);
  for (const { entry, start } of entriesFor(all)) {
    const next = all[Math.max(start, literal.length)];
    const isIncluded = literal.length > start && !literal[start]?.startsWith("-");
    if (entry.subcommands !== undefined && !isIncluded && next)
      if (!split(entry.subcommands).includes(next.value ?? "")) return true;
    const hasOperand = operandsAfter(inRule, start, entry).length > 0;
    if (entry.code && !hasOperand) return true;
    if (entry.interprets && !hasOperand && (next?.mayBeOption ?? true)) return true;
    const operands = operandsAfter(all, start, entry);
    const most = entry.operands ?? operands.length;
    if (operands.length > most || (entry.operands && operands.some(({ splits }) => splits))) return true;
    if (hasOption(all, literal.length, entry)) return true;
  }
  return false;
}

function hasOption(words: readonly ShellWord[], start: number, entry: Entry): boolean {
  const options = split(entry.options);
  const mayBeOperand = options.some((option) => /^(?:\^[^-]|=)/.test(option));
  for (const [index, { value, mayBeOption }] of words.entries()) {
    const previous = words[index - 1]?.value;
    if (entry.endsOptions && value === "--" && previous !== undefined && !previous.startsWith("-"))
      return false;
    if (index < Math.max(start, 1) || options.length === 0) continue;
    if (
      value === undefined
        ? mayBeOption || mayBeOperand
        : options.some((option) => isOption(value, option, entry))
    )
      return true;
  }
  return false;
}

function isOption(word: string, option: string, { dashes }: Entry): boolean {
  if (option.startsWith("^")) return word.startsWith(option.slice(1));
  if (option.startsWith("=")) return !word.startsWith("-") && word.includes(option);
  const [, start = "", name = ""] = /^(--?)([^=]+)/.exec(word) ?? [];
  const isWord = start === "--" || (start === "-" && dashes !== undefined && name.length > 1);
  if (option.startsWith("--")) return isWord && option.toLowerCase().startsWith(name.toLowerCase(), 2);
  const letter = option.charAt(1);
  return dashes === "words" ? name === letter : start === "-" && word.includes(letter, 1);
}

/** The reason why a rule with these words and any others covers no command. */
export function findUselessRule(literal: readonly string[]): string | undefined {
  const words = literal.map((value) => ({ value, splits: false }));
  for (const { entry, start, name } of entriesFor(words)) {
    if (entry.code && operandsAfter(words, start, entry).length === 0)
      return `${name} runs what its first argument says. Include that argument in the rule.`;
    if (entry.subcommands !== undefined && literal[start]?.startsWith("-"))
      return `Write the subcommand directly after ${name}. The rule covers no options before it.`;
  }
  return undefined;
}

/** True if the program reads its code from standard input, so that a rule without arguments would allow any code. */
export const readsCode = (words: readonly ShellWord[]): boolean =>
  [...entriesFor(words)].some(
    ({ entry, start }) => operandsAfter(words, start, entry).length < (entry.interprets ?? 0),
  );
