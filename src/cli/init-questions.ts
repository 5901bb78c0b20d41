/** Asks the questions of `init`: the choices, and the best one here. */
import {
  DEFAULT_MODELS,
  type Environment,
  KEY_NAMES,
  OFFLINE,
  modelChoice,
  variable,
} from "../agent/models/choose.ts";
import type { HostFacts } from "../config/paths.ts";
import { type ClientHere, type KeyPlace, type ModelHere, isProgram } from "./first-look.ts";
import type { Asker } from "./terminal/asker.ts";
import { chopText, padded, wrapText } from "./terminal/text.ts";
import questions from "./questions.json" with { type: "json" };

/** One of the things that a person can choose. */
export interface Choice<Value> {
  value: Value;
  label: string;
  /** Its reason or its meaning. */
  note: string;
}

/** A question with its choices, of which the first is the best here. */
export interface Question<Value> {
  title: string;
  choices: readonly Choice<Value>[];
}

const KEYS = "123456789abcdefghijk";

/** Shows the choices; one key takes one, Enter the first. */
export async function choose<Value>({ title, choices }: Question<Value>, asker: Asker): Promise<Value> {
  const { colors } = asker;
  const width = asker.size().columns - 1;
  const column = Math.max(...choices.map(({ label }) => label.length)) + 7;
  const isNarrow = column + 20 > width;
  const pieces = (text: string, columns: number): string[] =>
    wrapText(text, columns).flatMap((line) => chopText(line, columns));
  const lines = choices.flatMap(({ label, note }, index) => {
    const indent = isNarrow ? 5 : column;
    const [first = "", ...rest] = pieces(label, isNarrow ? width - indent : width);
    const notes = note === "" ? [] : pieces(note, width - indent).map((line) => colors.dim(line));
    const head = `  ${KEYS[index]}  ${first}`;
    const below = [...rest, ...notes].map((line) => " ".repeat(indent) + line);
    return isNarrow || note === "" ? [head, ...below] : [padded(head, column) + notes[0], ...below.slice(1)];
  });
  asker.print(["", ...wrapText(title, width).map((line) => colors.bold(line)), ...lines].join("\n"));
  for (;;) {
    const key = (await asker.key("Your choice, or Enter for 1 › ", false)).toLowerCase();
    const chosen = choices[key === "\r" || key === "\n" ? 0 : KEYS.indexOf(key)];
    if (chosen === undefined || key === "") continue;
    asker.print(colors.dim(`› ${chosen.label}`));
    return chosen.value;
  }
}

/** Those that are installed first; without any, all are equal. */
export function clientQuestion(clients: readonly ClientHere[]): Question<string> {
  const note = ({ isInstalled, hasServer }: ClientHere): string =>
    hasServer ? "already has this server" : isInstalled ? "found here" : "";
  const rank = ({ isInstalled, hasServer }: ClientHere): number => (hasServer ? 1 : isInstalled ? 0 : 2);
  const choices = [...clients]
    .sort((one, other) => rank(one) - rank(other))
    .map((client) => ({ value: client.name, label: client.title, note: note(client) }));
  return { title: "1 of 5  Which client should use it?", choices };
}

const OTHER = "other";

export async function askModel(
  models: readonly ModelHere[],
  { asker, env, step }: { asker: Asker; env: Environment; step: string },
): Promise<string> {
  const notes: Record<KeyPlace, string> = { environment: "is set here", keychain: "is in the keychain" };
  const known = [...models].sort(
    (one, other) => Number(other.from !== undefined) - Number(one.from !== undefined),
  );
  const title = `${step}Which model should the agent use?`;
  const rules = "fixed rules instead of a language model; no key needed";
  const choices = [
    ...known.map(({ spec, key, from }) => ({
      value: spec,
      label: spec,
      note: from === undefined ? `needs ${key}; you'll be asked for it` : `${key} ${notes[from]}`,
    })),
    { value: OFFLINE, label: OFFLINE, note: rules },
    { value: OTHER, label: "another", note: "of any provider" },
  ];
  const chosen = await choose({ title, choices }, asker);
  if (chosen !== OTHER) return chosen;
  for (;;) {
    const spec = (await asker.line("As provider:model › ")).trim();
    const problem = modelNameProblem(spec, env);
    if (problem === undefined) return spec;
    asker.print(asker.colors.yellow(problem));
  }
}

/** Describes the problem with a model name, regardless of its key; `undefined` if the name is usable. */
export function modelNameProblem(spec: string, env: Environment): string | undefined {
  if (spec === "") return `Write it as provider:model, such as ${DEFAULT_MODELS[0]?.provider}:NAME.`;
  const choice = modelChoice({ model: spec, env, lendable: true });
  return choice.ok || choice.keys !== undefined ? undefined : choice.message;
}

/** The variable with the key of a model, one that is set before others; `undefined`: it needs none. */
export function keyOf(spec: string, env: Environment): string | undefined {
  // Some addresses have the name of an account in them.
  const places = Object.entries(env).filter(([name]) => !KEY_NAMES.includes(name));
  const choice = [{}, Object.fromEntries(places)]
    .map((known) => modelChoice({ model: spec, env: known, lendable: true }))
    .find(({ keys }) => keys !== undefined);
  if (choice === undefined || choice.ok) return undefined;
  const { keys = [] } = choice;
  return keys.find((name) => variable(env, name) !== undefined) ?? keys[0];
}

/** Server flags for each answer. */
export const APPROVALS = {
  usual: {},
  all: { "approvals-write": "all" },
  files: { "approvals-execute": "unsandboxed" },
  none: { "approvals-write": "none", "approvals-execute": "unsandboxed" },
} as const;
export type Approvals = keyof typeof APPROVALS;

export const APPROVALS_QUESTION = questions.approvals as Question<Approvals>; // the table has these values

export const SANDBOX = { auto: {}, only: { execute: "sandbox" }, off: { execute: "off" } } as const;
export type Sandbox = keyof typeof SANDBOX;

export function sandboxQuestion(found: { ok: boolean; text: string }, host: HostFacts): Question<Sandbox> {
  const container = ["podman", "docker"].find((name) => isProgram(name, host));
  const also =
    container === undefined
      ? ""
      : `. ${container} is installed: see execute.sandbox in docs/configuration.md`;
  const auto = found.ok
    ? `in ${found.text}`
    : `as you, each approved, because no sandbox is available: ${found.text}${also}`;
  const notes = { auto, only: found.ok ? "never without one" : "none until one is available", off: "" };
  const { title, choices } = questions.sandbox as Question<Sandbox>; // the table has these values
  return { title, choices: choices.map((one) => ({ ...one, note: one.note || notes[one.value] })) };
}
