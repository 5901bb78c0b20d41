/**
 * Rules for shell commands: `npm run test` is exactly these words, `npm run test *` is these words and then any, `*` is
 * any command. Words are compared, never texts.
 */
import { HARMLESS_ASSIGNMENTS, NEVER_ALLOWED, wrapperNamed, type ShellCommand } from "./command.ts";
import { findUselessRule, needsApproval } from "./options.ts";
import { readCommandLine } from "./read.ts";

export interface ShellRule {
  readonly text: string;
  /** Empty for `*`. */
  readonly words: readonly string[];
  readonly assignments: ReadonlyMap<string, string>;
  /** True if any arguments may follow. */
  readonly isWide: boolean;
  /** The reason why the rule can only deny and ask. */
  readonly neverAllows: string | undefined;
}

/** `text`: without `Bash(…)` around it. The form `npm run test:*` is read as `npm run test *`. */
export function parseShellRule(text: string): ShellRule | { readonly problem: string } {
  const trimmed = text.trim();
  const isWide = /(?:^|[ :])\*$/.test(trimmed);
  const start = isWide ? trimmed.slice(0, -2).trim() : trimmed;
  if (trimmed === "*") return { text, words: [], assignments: new Map(), isWide, neverAllows: undefined };
  const reading = readCommandLine(start, "bash");
  if (!reading.ok) return { problem: `"${text}" is not one command: ${reading.reason}.` };
  const [command] = reading.commands;
  if (!command || command.text !== start)
    return { problem: `"${text}" is not one command. Write a rule for each command.` };
  if (command.isOpen)
    return { problem: `Write the rule for the command after xargs, such as "wc *": it applies to xargs.` };
  const words: string[] = [];
  const assignments = new Map<string, string>();
  for (const { value } of command.words) if (value !== undefined) words.push(value);
  for (const { name, value } of command.assignments) if (value !== undefined) assignments.set(name, value);
  if (words.length < command.words.length || assignments.size < command.assignments.length)
    return {
      problem: `"${text}" has words that the shell computes. Quote them; "*" can only be the last word.`,
    };
  return { text, words, assignments, isWide, neverAllows: whyUseless(words, isWide) };
}

function whyUseless(words: readonly string[], isWide: boolean): string | undefined {
  const [name = ""] = words;
  if (NEVER_ALLOWED.has(name)) return `${name} can change what other commands do, so no rule allows it.`;
  if (!isWide) return undefined;
  if (words.length === 1 && wrapperNamed(name))
    return `${name} starts another command. Write the rule for that command.`;
  return findUselessRule(words);
}

/** True if a rule that allows its commands allows this one. */
export function ruleCovers(rule: ShellRule, command: ShellCommand): boolean {
  const { words, isOpen } = command;
  if (rule.neverAllows !== undefined || NEVER_ALLOWED.has(words[0]?.value ?? "")) return false;
  const isKnown = ({ name, value }: ShellCommand["assignments"][number]): boolean =>
    HARMLESS_ASSIGNMENTS.has(name) || (value !== undefined && rule.assignments.get(name) === value);
  if (!command.assignments.every(isKnown)) return false;
  if (!rule.words.every((word, index) => words[index]?.value === word)) return false;
  return rule.isWide ? !needsApproval(command, rule.words) : !isOpen && words.length === rule.words.length;
}

/** True if a rule that denies its commands, or asks for them, may be about this one. Computed words match any. */
export function ruleTouches(rule: ShellRule, { words, assignments, isOpen }: ShellCommand): boolean {
  for (const [name, value] of rule.assignments) {
    const assigned = assignments.findLast((one) => one.name === name);
    if (!assigned || (assigned.value ?? value) !== value) return false;
  }
  for (const [index, expected] of rule.words.entries()) {
    const word = words[index];
    if (!word) return isOpen;
    if (word.value === undefined && word.splits) return true;
    const isProgram = index === 0 && !expected.includes("/");
    const value = isProgram ? word.value?.replace(/^.*\//s, "") : word.value;
    if (value !== undefined && value !== expected) return false;
  }
  return rule.isWide || isOpen || words.length <= rule.words.length || words.some(({ splits }) => splits);
}
