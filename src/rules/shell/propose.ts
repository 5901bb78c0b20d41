/** The rules that a person is offered for the commands of a command line. */
import { isListed, type ShellCommand } from "./command.ts";
import table from "./proposals.json" with { type: "json" };
import type { ShellReading } from "./read.ts";
import { parseShellRule, ruleCovers, type ShellRule } from "./rule.ts";

export interface ShellProposal {
  /** The command in the source. */
  readonly command: string;
  /** At most three rules without `Bash(…)`, narrowest first. The examples are command lines that each covers. */
  readonly rules: readonly {
    readonly rule: string;
    readonly sentence: string;
    readonly examples: readonly [string, string, string];
  }[];
}

const DEPTH = new Map(Object.entries(table.depth));
const EXAMPLES = new Map(Object.entries(table.examples));

/** Proposals for the commands that need a rule and that no existing rule covers. */
export const proposeShellRules = (
  reading: ShellReading,
  existing: readonly ShellRule[],
): readonly ShellProposal[] =>
  (reading.ok ? reading.commands : [])
    .filter((command) => !command.isHarmless && !existing.some((rule) => ruleCovers(rule, command)))
    .map((command) => {
      const rules = candidateRules(command).flatMap((rule) => describeRule(rule, command) ?? []);
      return { command: command.text, rules: rules.slice(0, 3) };
    });

function candidateRules({ words, assignments, isOpen }: ShellCommand): string[] {
  const computed = words.findIndex(({ value }) => value === undefined);
  const literal = words.slice(0, computed < 0 ? undefined : computed).map(({ value = "" }) => value);
  const isWhole = computed < 0 && !isOpen;
  const [program = "", subcommand = ""] = literal;
  const starts = [1, 2, 3].map((length) => literal.slice(0, length).join(" "));
  const isExact = program.includes("/") || starts.some((start) => table.exact.split(", ").includes(start));
  const depth = DEPTH.get(starts[1] ?? "") ?? DEPTH.get(program) ?? 1;
  const isNamed = literal.length >= depth && !literal.slice(1, depth).some((word) => word.startsWith("-"));
  const lengths = [
    isWhole ? 0 : literal.length,
    depth > 1 && isNamed ? depth : 0,
    depth > 2 && isNamed && /^(?:run|task)$/.test(subcommand) ? 2 : 0,
    table.alone.split(" ").includes(program) ? 1 : 0,
  ];
  const assigned = assignments.filter(({ name }) => !isListed("harmlessAssignments", name));
  const write = (length: number): string =>
    [...assigned.map(({ name, value = "" }) => `${name}=${value}`), ...literal.slice(0, length)]
      .map((word) => (/^[\w@%+=:,./^-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
      .join(" ");
  const wide = lengths.filter((length) => length > 0 && !isExact).map((length) => `${write(length)} *`);
  return [...new Set([...(isWhole ? [write(literal.length)] : []), ...wide])];
}

/** Returns undefined for a rule that does not cover its own command. */
function describeRule(text: string, command: ShellCommand): ShellProposal["rules"][number] | undefined {
  const rule = parseShellRule(text);
  if ("problem" in rule || !ruleCovers(rule, command)) return undefined;
  const start = rule.isWide ? text.slice(0, -2) : text;
  const [first = start, second = `CI=1 ${start}`, third = `${start} 2>&1`] = rule.isWide
    ? (EXAMPLES.get(start) ?? [start, `${start} a`, `${start} --help`])
    : [];
  const scope = rule.isWide
    ? `Allow every command that starts with ${start}, except with options that start other programs or write elsewhere.`
    : `Allow exactly ${text}.`;
  const names = [1, 2].map((length) => start.split(" ", length).join(" "));
  const note = names.some((name) => table.projectCode.split(", ").includes(name)) ? ` ${table.note}` : "";
  return { rule: text, sentence: scope + note, examples: [first, second, third] };
}
