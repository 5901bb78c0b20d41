/** The commands of a command line past their wrappers, such as `timeout 60`, and whether they need a rule. */
import builtins from "./builtins.json" with { type: "json" };
import { refuse, type ShellWord } from "./words.ts";
import wrappers from "./wrappers.json" with { type: "json" };

/** `value` is undefined if the shell computes it. */
export interface ShellAssignment {
  readonly name: string;
  readonly value: string | undefined;
}

export interface ShellCommand {
  /** The command in the source, wrappers and redirections included. */
  readonly text: string;
  /** The program, whose name is literal, and its arguments. */
  readonly words: readonly ShellWord[];
  readonly assignments: readonly ShellAssignment[];
  /** True if xargs adds arguments. */
  readonly isOpen: boolean;
  /** True if it has no effect outside its command line and needs no rule. */
  readonly isHarmless: boolean;
}

interface Wrapper {
  /** Kinds of their values; empty for an option without one. */
  readonly options: Readonly<Record<string, keyof typeof VALUES | "">>;
  readonly operand?: keyof typeof VALUES;
  readonly assigns?: boolean;
  readonly appends?: boolean;
}

const VALUES = {
  duration: /^\d+(?:\.\d+)?[smhd]?$/,
  integer: /^-?\d+$/,
  digits: /^\d+$/,
  name: /^\w+$/,
  buffer: /^(?:L|0|\d+[KM]?)$/,
  text: /^[^]+$/,
};
const WRAPPERS = wrappers as Readonly<Record<string, Wrapper>>; // the kinds are those of VALUES
const list = (names: string): ReadonlySet<string> => new Set(names.split(" "));

export const HARMLESS_ASSIGNMENTS = list(builtins.harmlessAssignments);
export const READ_BY_THE_SHELL = list(builtins.readByTheShell);
export const NEVER_ALLOWED = list(builtins.neverAllowed);
const WITH_ANY_ARGUMENTS = list(builtins.harmlessWithAnyArguments);
const ALONE = list(builtins.harmlessAlone);

export const wrapperNamed = (name: string): Wrapper | undefined =>
  Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;

/** Throws a Refusal for wrappers with other options than those of the table. */
export function unwrap(
  text: string,
  all: readonly ShellWord[],
  assigned: readonly ShellAssignment[],
): ShellCommand {
  let words = all;
  let [isOpen, isExternal] = [false, false];
  const assignments = [...assigned];
  for (let at = 0; ;) {
    const name = words[at]?.value ?? refuse("it computes which program it starts");
    // In some shells `time` takes options.
    if (name.startsWith("-")) refuse("it has an option where a program should be");
    const wrapper = wrapperNamed(name);
    if (!wrapper || (name === "command" && /^-[vV]$/.test(words[at + 1]?.value ?? ""))) {
      words = words.slice(at);
      break;
    }
    if (at + 1 === words.length && !isOpen) {
      // Without a command xargs runs echo.
      words = wrapper.appends ? [{ ...all[0]!, value: "echo" }] : words.slice(at);
      isOpen = wrapper.appends === true;
      break;
    }
    const { next, replaced } = skipOptions(name, wrapper, words, at + 1);
    at = next;
    for (; wrapper.assigns; at++) {
      const [, variable, value] = /^([A-Za-z_]\w*)=([^]*)$/.exec(words[at]?.value ?? "") ?? [];
      if (variable === undefined) break;
      assignments.push({ name: variable, value });
    }
    if (at >= words.length) refuse(`${name} in it has no command of its own`);
    if (replaced !== undefined) words = words.map((word) => replaceIn(word, replaced));
    isOpen ||= wrapper.appends === true;
    isExternal ||= name !== "command" && name !== "time";
  }
  const command = { text, words, assignments, isOpen };
  return { ...command, isHarmless: assignments.length === 0 && isHarmless(command, isExternal) };
}

const replaceIn = (word: ShellWord, replaced: string): ShellWord =>
  word.value?.includes(replaced) ? { ...word, value: undefined, mayBeOption: true } : word;

/** Returns the position of the command, and the text that xargs replaces with its input. */
function skipOptions(name: string, wrapper: Wrapper, words: readonly ShellWord[], start: number) {
  let next = start;
  let replaced: string | undefined;
  while (words[next]?.value?.startsWith("-")) {
    const option = words[next++]?.value ?? "";
    if (option === "--" && name !== "time") break;
    const isLong = option.startsWith("--");
    const [, key = "", attached] = (isLong ? /^([^=]+)(?:=([^]*))?$/ : /^(..)([^]+)?$/).exec(option) ?? [];
    const kind = wrapper.options[key];
    if (kind) {
      const value = attached ?? (isLong ? undefined : words[next++]?.value);
      if (value === undefined || !VALUES[kind].test(value)) refuse(`it uses ${name} with ${option}`);
      if (key === "-I") replaced = value;
    } else {
      const isFlag = attached === undefined && kind === "";
      const areFlags =
        !isLong && [...option.slice(1)].every((letter) => wrapper.options[`-${letter}`] === "");
      const isNumber = wrapper.options["-NUMBER"] === "" && /^-\d+$/.test(option);
      if (!isFlag && !areFlags && !isNumber) refuse(`it uses ${name} with ${option}`);
    }
  }
  if (wrapper.operand && !VALUES[wrapper.operand].test(words[next++]?.value ?? ""))
    refuse(`it uses ${name} in an unusual way`);
  return { next, replaced };
}

function isHarmless({ words, isOpen }: Pick<ShellCommand, "words" | "isOpen">, isExternal: boolean): boolean {
  const [name = "", ...args] = words.map(({ value }) => value);
  if (WITH_ANY_ARGUMENTS.has(name)) return true;
  if (isOpen || isExternal) return false;
  if (ALONE.has(name) && args.length === 0) return true;
  switch (name) {
    case "exit":
      return args.length === 1 && /^\d+$/.test(args[0] ?? "");
    case "cd":
      return args.length === 1 && /^(?!-)(?!.*\.\.(?:\/|$))[\w./@+ -]+$/.test(args[0] ?? "");
    case "command":
      return args.length === 2 && args[1] !== undefined;
    case "test":
      return isPlainTest(words.slice(1));
    case "[":
      return args.at(-1) === "]" && isPlainTest(words.slice(1, -1));
    default:
      return false;
  }
}

/** True for a condition that shells read alike whatever its operands are, and that evaluates no subscript. */
function isPlainTest(words: readonly ShellWord[]): boolean {
  if (words.some(({ splits }) => splits)) return false;
  const values = words.map(({ value }) => value);
  if (values[0] === "!") values.shift();
  if (values.length === 2) return /^-[defhLrswxzn]$/.test(values[0] ?? "");
  return values.length === 3 && /^!?=$/.test(values[1] ?? "");
}
