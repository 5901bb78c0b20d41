/**
 * Rules for shell commands: `npm run test` is exactly these words, `npm run test *` is these words and then any, `*` is
 * any command. Words are compared, never texts.
 */
import { isListed, WRAPPERS } from "./command.ts";
import { findUnnamed, needsApproval } from "./options.ts";
import { readCommandLine, type ShellCommand } from "./read.ts";

/** Its words and assignments are literal. It has none for `*`. */
export interface ShellRule extends Pick<ShellCommand, "words" | "assignments"> {
  readonly text: string;
  /** True if any arguments may follow. */
  readonly isWide: boolean;
  /** The reason why the rule can only deny and ask. */
  readonly neverAllows: string | undefined;
}

/** `text`: without `Bash(…)` around it. `npm run test:*` is read as `npm run test *`. */
export function parseShellRule(text: string): ShellRule | { readonly problem: string } {
  const trimmed = text.trim();
  const isWide = /[ :]\*$/.test(trimmed);
  const start = isWide ? trimmed.slice(0, -2).trim() : trimmed;
  if (trimmed === "*") return { text, words: [], assignments: [], isWide: true, neverAllows: undefined };
  const reading = readCommandLine(start, "bash");
  if (!reading.ok) return { problem: `"${text}" is not one command: ${reading.reason}.` };
  const [command] = reading.commands;
  if (command?.text !== start)
    return { problem: `"${text}" is not one command. Write a rule for each command.` };
  const { words, assignments, isOpen } = command;
  if (isOpen)
    return { problem: 'Write the rule for the command after xargs, such as "wc *": it applies to xargs.' };
  if ([...words, ...assignments].some(({ value }) => value === undefined))
    return {
      problem: `"${text}" has words that the shell computes. Quote them; "*" can only be the last word.`,
    };
  const name = words[0]?.value ?? "";
  const runner = words.length === 1 && WRAPPERS.has(name) ? name : findUnnamed(words);
  const neverAllows = isListed("neverAllowed", name)
    ? `${name} can change what other commands do, so no rule allows it.`
    : isWide && runner
      ? `Write what ${runner} runs directly after it: the rule covers nothing else.`
      : undefined;
  return { text, words, assignments, isWide, neverAllows };
}

/** True if a rule that allows its commands allows this one. */
export function ruleCovers(rule: ShellRule, command: ShellCommand): boolean {
  const { words, assignments, isOpen } = command;
  if (rule.neverAllows !== undefined || isListed("neverAllowed", words[0]?.value)) return false;
  const isNamed = ({ name, value }: (typeof assignments)[number]): boolean =>
    value !== undefined && rule.assignments.some((one) => one.name === name && one.value === value);
  if (!assignments.every((one) => isListed("harmlessAssignments", one.name) || isNamed(one))) return false;
  if (!rule.words.every(({ value }, index) => words[index]?.value === value)) return false;
  if (!rule.isWide && (isOpen || words.length > rule.words.length)) return false;
  return !needsApproval(command, rule.words);
}

/** True if a rule that denies its commands, or asks for them, may be about this one. Computed words match any. */
export function ruleTouches(rule: ShellRule, { words, assignments, isOpen }: ShellCommand): boolean {
  for (const { name, value } of rule.assignments) {
    const assigned = assignments.findLast((one) => one.name === name);
    if (!assigned || (assigned.value ?? value) !== value) return false;
  }
  for (const [index, { value: expected = "" }] of rule.words.entries()) {
    const word = words[index];
    if (!word) return isOpen;
    if (word.value === undefined && word.splits) return true;
    const isName = index === 0 && !expected.includes("/");
    const value = isName ? word.value?.replace(/^.*\//s, "") : word.value;
    if ((value ?? expected) !== expected) return false;
  }
  return rule.isWide || isOpen || words.slice(rule.words.length).every(({ splits }) => splits);
}
