/** The commands of a command line past their wrappers, such as `timeout 60`, and whether they need a rule. */
import builtins from "./builtins.json" with { type: "json" };
import { refuseLine, type ShellWord } from "./words.ts";
import table from "./wrappers.json" with { type: "json" };

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

/** `options`: a pattern of an option, in which a blank ends a word. `operand`: the pattern of a word before the command. */
export const WRAPPERS = new Map(Object.entries(table));

export const isListed = (list: keyof typeof builtins.names, name = ""): boolean =>
  builtins.names[list].split(" ").includes(name);

const MOST_WRAPPERS = 8;

/** Takes wrappers off. Throws a LineRefusal for those with other options than the table has. */
export function unwrap(
  text: string,
  all: readonly ShellWord[],
  assigned: readonly ShellAssignment[],
): ShellCommand {
  let [words, isOpen, isExternal] = [all, false, false];
  const assignments = [...assigned];
  for (let wrapped = 0; ; wrapped++) {
    if (wrapped > MOST_WRAPPERS)
      refuseLine(`it has more than ${MOST_WRAPPERS} programs that start each other`);
    const name = words[0]?.value ?? refuseLine("it computes which program it starts");
    const wrapper = WRAPPERS.get(name);
    if (!wrapper || (name === "command" && /^-[vV]$/.test(words[1]?.value ?? ""))) break;
    if (words.length === 1 && !isOpen) {
      // Without a command xargs runs echo.
      isOpen = wrapper.appends;
      if (wrapper.appends) words = words.map((word) => ({ ...word, value: "echo" }));
      break;
    }
    const { options, operand, appends } = wrapper;
    const before = `^(?:(?:${(options || "(?!)").replaceAll(" ", "\\0")})\\0)*(?:--\\0)?${operand && `(?:${operand})\\0`}`;
    // A word that is computed matches no pattern.
    const values = words.slice(1).map(({ value = "\0" }) => `${value}\0`);
    const [used] =
      new RegExp(before).exec(values.join("")) ?? refuseLine(`it uses ${name} in an unusual way`);
    let at = used.split("\0").length;
    for (; wrapper.assigns; at++) {
      const [, variable, value] = /^([A-Za-z_]\w*)=([^]*)$/.exec(words[at]?.value ?? "") ?? [];
      if (variable === undefined) break;
      assignments.push({ name: variable, value });
    }
    if (words[at]?.value?.startsWith("-")) refuseLine(`it uses ${name} with ${words[at]?.value}`);
    if (at >= words.length) refuseLine(`${name} in it has no command of its own`);
    const replaced = appends ? /^(?:[^]*\0)?-I\0?([^\0]+)/.exec(used)?.[1] : undefined;
    words = words.slice(at);
    if (replaced !== undefined)
      words = words.map((word) =>
        word.value?.includes(replaced) ? { ...word, value: undefined, mayBeOption: true } : word,
      );
    isOpen ||= appends;
    isExternal ||= name !== "command" && name !== "time";
  }
  // In some shells `time` takes options.
  if (words[0]?.value?.startsWith("-")) refuseLine("it has an option where a program should be");
  const isHarmless = assignments.length === 0 && hasNoEffect(words, isOpen, isExternal);
  return { text, words, assignments, isOpen, isHarmless };
}

function hasNoEffect(words: readonly ShellWord[], isOpen: boolean, isExternal: boolean): boolean {
  const [name = "", ...args] = words.map(({ value }) => value);
  if (isListed("harmlessWithAnyArguments", name)) return true;
  if (isOpen || isExternal) return false;
  if (args.length === 0) return isListed("harmlessAlone", name);
  const [first = ""] = args;
  if (name === "exit") return args.length === 1 && /^\d+$/.test(first);
  if (name === "cd") return args.length === 1 && /^(?!-)(?!.*\.\.(?:\/|$))[\w./@+ -]+$/.test(first);
  if (name === "command") return args.length === 2 && args[1] !== undefined;
  // Shells read these conditions alike, whatever the operands are, and evaluate no subscript.
  if (name === "[" ? args.pop() !== "]" : name !== "test") return false;
  if (args[0] === "!") args.shift();
  const isPlain = args.length === 2 ? /^-[defhLrswxzn]$/.test(args[0] ?? "") : args.length === 3;
  return isPlain && !words.some(({ splits }) => splits) && (args.length === 2 || /^!?=$/.test(args[1] ?? ""));
}
