/** Arguments that need approval where a rule allows any: they start programs, or read and write files elsewhere. */
import { groupBy } from "../../core/group-by.ts";
import type { ShellCommand } from "./command.ts";
import table from "./options.json" with { type: "json" };
import type { ShellWord } from "./words.ts";

/** An entry of the table, which the README of the module explains. Lists are separated by blanks. */
interface Entry {
  readonly commands: string;
  readonly source: string;
  readonly options?: string;
  readonly dashes?: string;
  readonly endsOptions?: boolean;
  readonly subcommands?: string;
  readonly code?: boolean;
  readonly valued?: string;
  readonly interprets?: number;
  readonly operands?: number;
}

const split = (list = ""): string[] => list.split(" ").filter(Boolean);
const ENTRIES = groupBy(
  table.flatMap((entry: Entry) =>
    entry.commands.split(", ").map((name) => ({ entry, path: name.split(" ") })),
  ),
  ({ path }) => path[0],
);

/** Entries for a command. After options or computed words it may have any subcommand. `start`: its first argument. */
function* findEntries(words: readonly ShellWord[]) {
  const program = words[0]?.value?.replace(/^.*\//s, "") ?? "";
  for (const { entry, path } of ENTRIES.get(program) ??
    ENTRIES.get(program.replace(/(?<![\d.])[\d.]+$/, "")) ??
    []) {
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
const operandsAfter = (words: readonly ShellWord[], start: number, { valued }: Entry): ShellWord[] =>
  words.filter(({ value = "" }, index) => {
    const isOperand = !value.startsWith("-") || value === "--version" || value === "--help";
    return index >= start && isOperand && !split(valued).includes(words[index - 1]?.value ?? "");
  });

/** True for a word that a rule names after a program with subcommands. */
const isSubcommand = ({ value = "" }: ShellWord, { subcommands }: Entry): boolean =>
  !value.startsWith("-") || split(subcommands).includes(value);

/** True if a rule with these words does not cover a command that begins with them. */
export function needsApproval({ words, isOpen }: ShellCommand, rule: readonly ShellWord[]): boolean {
  // The last word represents the arguments that xargs adds.
  const all = isOpen ? [...words, { value: undefined, splits: true, mayBeOption: true }] : words;
  for (const { entry, start } of findEntries(all)) {
    const operands = operandsAfter(all, start, entry);
    if (operands.length < (entry.interprets ?? 0)) return true;
    const next = all[Math.max(start, rule.length)];
    if (all.length === rule.length) continue;
    const first = rule[start];
    if (entry.subcommands !== undefined && !(first && isSubcommand(first, entry)))
      if (next && !split(entry.subcommands).includes(next.value ?? "")) return true;
    const namesOperand = operandsAfter(rule, start, entry).length > 0;
    if (!namesOperand && (entry.code || (entry.interprets && next?.mayBeOption))) return true;
    if (operands.length > (entry.operands ?? Infinity)) return true;
    if (entry.operands !== undefined && operands.some(({ splits }) => splits)) return true;
    if (hasOption(all, Math.max(rule.length, 1), entry)) return true;
  }
  return false;
}

function hasOption(words: readonly ShellWord[], start: number, entry: Entry): boolean {
  const options = split(entry.options);
  const mayBeOperand = options.some((option) => /^(?:\^[^-]|=)/.test(option));
  for (const [index, { value, mayBeOption }] of words.entries()) {
    const isAfterOption = words[index - 1]?.mayBeOption !== false;
    if (entry.endsOptions && value === "--" && !isAfterOption) return false;
    if (index < start || options.length === 0) continue;
    if (value === undefined && (mayBeOption || mayBeOperand)) return true;
    if (value !== undefined && options.some((option) => isOption(value, option, entry.dashes))) return true;
  }
  return false;
}

function isOption(word: string, option: string, dashes = "letters"): boolean {
  if (option.startsWith("^")) return word.startsWith(option.slice(1));
  if (option.startsWith("=")) return !word.startsWith("-") && word.includes(option);
  const [, start = "", name = ""] = /^(--?)([^=]+)/.exec(word) ?? [];
  const isLong = start === "--" || (start === "-" && dashes !== "letters" && name.length > 1);
  if (option.startsWith("--")) return isLong && option.toLowerCase().startsWith(name.toLowerCase(), 2);
  const letter = option.charAt(1);
  return dashes === "words" ? name === letter : start === "-" && name.includes(letter);
}

/** The program or subcommand that runs its first argument, which a rule with these words does not name. */
export const findUnnamed = (rule: readonly ShellWord[]): string | undefined =>
  [...findEntries(rule)].find(({ entry, start }) => {
    if (entry.code && operandsAfter(rule, start, entry).length === 0) return true;
    const first = rule[start];
    return entry.subcommands !== undefined && first && !isSubcommand(first, entry);
  })?.name;
