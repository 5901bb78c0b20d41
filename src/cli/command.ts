/** Defines commands, and reads their arguments. */
import { parseArgs } from "node:util";
import type { FlagValues } from "../config/load.ts";
import type { HostFacts } from "../config/paths.ts";
import { SETTINGS, type SettingKind, flagNameOf } from "../config/settings.ts";
import { closestName } from "../core/options.ts";

/** Ends with an exit code: 0 done, 1 failed, 2 wrong usage or configuration. */
export type ExitCode = 0 | 1 | 2;

export interface Flag {
  /** Without dashes. */
  name: string;
  short?: string;
  kind: "boolean" | "text" | "list";
  /** Placeholder for the value in help, such as `DIR`. */
  hint?: string;
  help: string;
  /** Path of the setting it gives; help then adds default and environment variable. */
  setting?: string;
}

export interface CommandArguments {
  flags: FlagValues;
  positionals: readonly string[];
  host: HostFacts;
}

export interface Command {
  name: string;
  /** How it is called, without the program's name. */
  usage: string;
  /** One line. */
  summary: string;
  /** Flags of its own. */
  flags: readonly Flag[];
  /** Whether the flags of the configuration apply. */
  configurable: boolean;
  /** How many words may follow; default none. */
  positionals?: number;
  run(args: CommandArguments): Promise<ExitCode>;
}

export type ParsedArguments =
  | { ok: true; flags: FlagValues; positionals: string[] }
  | { ok: false; problems: string[] };

const HELP_FLAG: Flag = { name: "help", short: "h", kind: "boolean", help: "Show this help." };

const CONFIG_FLAG: Flag = {
  name: "config",
  kind: "text",
  hint: "FILE",
  help: "JSON file with settings. Also DEEPAGENT_CONFIG.",
};

/** Flags a command understands, in the order help shows them; those of the configuration last. */
export function flagsOf(command: Command): Flag[] {
  const own = [...command.flags, HELP_FLAG];
  return command.configurable ? [...own, CONFIG_FLAG, ...settingFlags()] : own;
}

/** Reads the arguments after the command's name; every problem is reported at once. */
export function parseArguments(argv: readonly string[], command: Command): ParsedArguments {
  const flags = new Map(flagsOf(command).map((flag) => [flag.name, flag]));
  const options = Object.fromEntries(
    [...flags.values()].map((flag) => [
      flag.name,
      {
        type: flag.kind === "boolean" ? ("boolean" as const) : ("string" as const),
        multiple: flag.kind === "list",
        ...(flag.short === undefined ? {} : { short: flag.short }),
      },
    ]),
  );
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const problems: string[] = [];
  for (const token of tokens) {
    if (token.kind === "option") problems.push(...optionProblems(token, flags));
  }
  const allowed = command.positionals ?? 0;
  for (const word of positionals.slice(allowed)) {
    const quoting = allowed > 0 ? ' Put a text of several words in "quotes".' : "";
    problems.push(`Unexpected argument "${word}" for ${command.name}.${quoting}`);
  }
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, flags: values, positionals };
}

interface OptionToken {
  name: string;
  rawName: string;
  value?: string | undefined;
  inlineValue?: boolean | undefined;
}

function optionProblems(token: OptionToken, flags: ReadonlyMap<string, Flag>): string[] {
  const flag = flags.get(token.name);
  if (flag === undefined) {
    const meant = token.rawName.startsWith("--") ? closestName(token.name, flags.keys()) : undefined;
    return [`Unknown flag ${token.rawName}.${meant === undefined ? "" : ` Did you mean --${meant}?`}`];
  }
  if (flag.kind === "boolean") {
    return token.value === undefined ? [] : [`${token.rawName} takes no value.`];
  }
  const taken = token.value !== undefined && (token.inlineValue === true || !token.value.startsWith("-"));
  return taken ? [] : [`${token.rawName} needs a value: ${token.rawName} ${flag.hint ?? "VALUE"}.`];
}

function settingFlags(): Flag[] {
  return SETTINGS.map((setting) => ({
    name: flagNameOf(setting),
    help: "",
    setting: setting.path,
    ...VALUE_FORM[setting.kind],
  }));
}

const VALUE_FORM: Record<SettingKind, Pick<Flag, "kind" | "hint">> = {
  text: { kind: "text", hint: "VALUE" },
  path: { kind: "text", hint: "DIR" },
  number: { kind: "text", hint: "N" },
  paths: { kind: "list", hint: "DIR" },
  list: { kind: "list", hint: "NAME" },
  boolean: { kind: "boolean" },
};
