/** The rules that a person is offered for the commands of a command line: narrowest first, at most three for each. */
import { HARMLESS_ASSIGNMENTS, type ShellCommand } from "./command.ts";
import { readsCode } from "./options.ts";
import table from "./proposals.json" with { type: "json" };
import { readCommandLine, type ShellReading } from "./read.ts";
import { parseShellRule, ruleCovers, type ShellRule } from "./rule.ts";

export interface ShellProposal {
  /** The command in the source. */
  readonly command: string;
  /** `rule` has no `Bash(…)` around it. The examples are command lines that it covers. */
  readonly rules: readonly {
    readonly rule: string;
    readonly sentence: string;
    readonly examples: readonly [string, string, string];
  }[];
}

const DEPTH = new Map(Object.entries(table.depth));
const EXAMPLES = new Map(Object.entries(table.examples));
const READERS = new Set(table.readers.split(" "));
const EXACT = new Set(table.exact.split(", "));
const SCRIPTS = new Set(table.scripts.split(", "));

/** Proposals for the commands that need a rule and that no existing rule covers. */
export const proposeShellRules = (
  reading: ShellReading,
  existing: readonly ShellRule[],
): readonly ShellProposal[] =>
  (reading.ok ? reading.commands : [])
    .filter((command) => !command.isHarmless && !existing.some((rule) => ruleCovers(rule, command)))
    .map((command) => ({ command: command.text, rules: proposeFor(command) }));

function proposeFor(command: ShellCommand): ShellProposal["rules"] {
  const { words, isOpen } = command;
  const computed = words.findIndex(({ value }) => value === undefined);
  const literal = words.slice(0, computed < 0 ? undefined : computed).map(({ value = "" }) => value);
  const isWhole = literal.length === words.length && !isOpen;
  const head = (length: number): string => literal.slice(0, length).join(" ");
  const [program = ""] = literal;
  const isExact = program.includes("/") || [1, 2, 3].some((length) => EXACT.has(head(length)));
  const wide: string[][] = isWhole || isExact ? [] : [literal];
  const depth = DEPTH.get(head(2)) ?? DEPTH.get(program) ?? 1;
  const isNamed = literal.length >= depth && literal.slice(1, depth).every((word) => !word.startsWith("-"));
  if (!isExact && depth > 1 && isNamed) wide.push(literal.slice(0, depth));
  if (!isExact && depth > 2 && isNamed && /^(?:run|task)$/.test(literal[1] ?? ""))
    wide.push(literal.slice(0, 2));
  if (!isExact && READERS.has(program)) wide.push([program]);
  const assigned = command.assignments
    .filter(({ name }) => !HARMLESS_ASSIGNMENTS.has(name))
    .map(({ name, value = "" }) => `${name}=${value}`);
  const write = (list: readonly string[]): string => [...assigned, ...list].map(quote).join(" ");
  const exact = isWhole && !readsCode(words) ? [write(literal)] : [];
  const texts = new Set([...exact, ...wide.map((list) => `${write(list)} *`)]);
  return [...texts].flatMap((rule) => describe(rule, command) ?? []).slice(0, 3);
}

/** Returns undefined for a rule that does not cover its own command. */
function describe(text: string, command: ShellCommand): ShellProposal["rules"][number] | undefined {
  const rule = parseShellRule(text);
  if ("problem" in rule || !ruleCovers(rule, command)) return undefined;
  const start = rule.isWide ? text.slice(0, -2) : text;
  const name = rule.words.join(" ");
  const candidates = rule.isWide
    ? [command.text, ...(EXAMPLES.get(name) ?? []), start, `${start} --help`, `${start} a`, `${start} a b`]
    : [start, `CI=1 ${start}`, `${start} 2>&1`];
  const [first = start, second = start, third = start] = new Set(
    candidates.filter((line) => {
      const reading = readCommandLine(line, "sh");
      return reading.ok && reading.commands.every((one) => ruleCovers(rule, one));
    }),
  );
  const isScript = [1, 2].some((length) => SCRIPTS.has(rule.words.slice(0, length).join(" ")));
  const note = isScript ? " It runs code of the project, which the agent may be able to change." : "";
  const sentence = rule.isWide
    ? `Allow every command that starts with ${start}, except with options that start other programs or write elsewhere.`
    : `Allow exactly ${text}.`;
  return { rule: text, sentence: sentence + note, examples: [first, second, third] };
}

const quote = (word: string): string =>
  /^[\w@%+=:,./^[\]-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
