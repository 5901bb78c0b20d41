/** Compares the programs that shells start for generated command lines with those that the reader found in them. */
import { unwrap, type ShellCommand } from "../../../src/rules/shell/command.ts";
import { proposeShellRules } from "../../../src/rules/shell/propose.ts";
import { readCommandLine } from "../../../src/rules/shell/read.ts";
import { parseShellRule, ruleCovers, type ShellRule } from "../../../src/rules/shell/rule.ts";
import { readWord, type ShellWord } from "../../../src/rules/shell/words.ts";
import { corpus } from "./corpus.ts";
import { lineGenerator } from "./line-generator.ts";
import { runInShells } from "./shells.ts";

type Reader = typeof readCommandLine;

interface Passing {
  readonly line: string;
  readonly commands: readonly ShellCommand[];
  readonly rules: readonly ShellRule[];
  /** True if it passes for every shell. */
  readonly isForSh: boolean;
}

export interface Comparison {
  readonly passing: number;
  readonly started: number;
  /** Programs that no command of their line stands for. */
  readonly unclaimed: unknown[];
  /** Programs that no rule of their line covers. */
  readonly uncovered: unknown[];
}

const parse = (text: string): ShellRule => {
  const rule = parseShellRule(text);
  if ("problem" in rule) throw new Error(rule.problem);
  return rule;
};
const RULES =
  "npm run test *,npm ci,git status *,git log *,ls *,cat *,grep *,wc *,head *,fails *,node build.mjs *"
    .split(",")
    .map(parse);

/** Lines of the corpus, each with the rules that a person might save for it. */
const BASES = corpus.flatMap(({ line }) => {
  const reading = readCommandLine(line, "bash");
  const names = reading.ok ? reading.commands.map(({ words }) => words[0]?.value ?? "") : [];
  const own = [...new Set(names.filter((name) => /^[a-z][\w-]*$/.test(name)))];
  const proposed = proposeShellRules(reading, []).flatMap(({ rules }) =>
    rules.map(({ rule }) => parse(rule)),
  );
  return own.length > 0
    ? [{ line, own, rules: [...proposed, ...own.map((name) => parse(`${name} *`))] }]
    : [];
});
const PROGRAMS = new Set([
  ..."npm git ls cat grep wc head fails node".split(" "),
  ...BASES.flatMap(({ own }) => own),
]);

/** `read`: a reader that may be broken. */
export function comparePrograms(count: number, seed: number, read: Reader = readCommandLine): Comparison {
  const { line, mutate, chance, pick } = lineGenerator(seed);
  const passing = new Map<string, Passing>();
  for (let made = 0; made < count; made++) {
    const base = chance(0.4) ? pick(BASES) : { line: line(), rules: RULES };
    const text = ("own" in base || chance(0.5) ? mutate(base.line) : base.line).replace(/\n+$/, "");
    const reading = read(text, "bash");
    const passes = (one: typeof reading): boolean =>
      one.ok &&
      one.commands.every(
        (command) => command.isHarmless || base.rules.some((rule) => ruleCovers(rule, command)),
      );
    if (!reading.ok || !passes(reading) || text === "") continue;
    passing.set(text, {
      line: text,
      commands: reading.commands,
      rules: base.rules,
      isForSh: passes(read(text, "sh")),
    });
  }
  return compare([...passing.values()]);
}

function compare(passing: readonly Passing[]): Comparison {
  const programs = runInShells(
    passing.map(({ line }) => line),
    PROGRAMS,
  );
  const [unclaimed, uncovered]: [unknown[], unknown[]] = [[], []];
  let started = 0;
  for (const [index, { line, commands, rules, isForSh }] of passing.entries())
    for (const shell of isForSh ? (["bash", "sh"] as const) : (["bash"] as const))
      for (const argv of programs[index]![shell]) {
        started++;
        if (!commands.some(({ words, isOpen }) => stands(words, isOpen, argv)))
          unclaimed.push({ shell, line, argv });
        if (!isCovered(argv, rules)) uncovered.push({ shell, line, argv });
      }
  return { passing: passing.length, started, unclaimed, uncovered };
}

/** True if the words stand for the arguments. A computed word that splits stands for any number of them. */
function stands(
  words: readonly ShellWord[],
  isOpen: boolean,
  argv: readonly string[],
  word = 0,
  argument = 0,
): boolean {
  const { value, splits, mayBeOption } = words[word] ?? {};
  if (word === words.length) return isOpen || argument === argv.length;
  if (value !== undefined)
    return value === argv[argument] && stands(words, isOpen, argv, word + 1, argument + 1);
  if (splits && stands(words, isOpen, argv, word + 1, argument)) return true;
  if (argument === argv.length || (!mayBeOption && argv[argument]?.startsWith("-"))) return false;
  return stands(words, isOpen, argv, splits ? word : word + 1, argument + 1);
}

function isCovered(argv: readonly string[], rules: readonly ShellRule[]): boolean {
  const [name = ""] = argv;
  // These are harmless in their line, where they may have computed words.
  if (["test", "[", "cd", "command"].includes(name)) return true;
  const words = argv.map((value) => ({ ...readWord(`'${value.replaceAll("'", "'\\''")}'`), value }));
  const command = unwrap(name, words, []);
  return command.isHarmless || rules.some((rule) => ruleCovers(rule, command));
}
