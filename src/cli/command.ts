/** Defines commands, reads their arguments, and writes their help. */
import { parseArgs } from "node:util";
import type { FlagValues } from "../config/load.ts";
import type { HostFacts } from "../config/paths.ts";
import { PROGRAM, programLaunch } from "../config/program.ts";
import { settingInfo } from "../config/schema.ts";
import type { Setting, SettingKind } from "../config/settings.ts";
import { SETTINGS, SETTING_GROUPS, envName, flagName } from "../config/settings.ts";
import { defined } from "../core/unknown.ts";
import { didYouMean } from "../core/options.ts";
import type { StdioConnection } from "../handshake/handshake.ts";
import { columnsOf, wrapText } from "./terminal/text.ts";

/** Ends with an exit code: 0 done, 1 failed, 2 wrong usage or configuration, 3 a run stopped at a limit or missed its goal. */
export type ExitCode = 0 | 1 | 2 | 3;

export interface Flag {
  /** Without dashes. */
  name: string;
  short?: string;
  kind: "boolean" | "text" | "list";
  /** Placeholder for the value in help, such as `DIR`. */
  hint?: string;
  help: string;
  /** Path of the setting that the flag sets; help then adds default and environment variable. */
  setting?: string;
}

/** One thing that a command can do. */
export interface Action {
  name: string;
  /** Words after its name, such as `RUN`. */
  words: string;
  summary: string;
  /** Names of the flags that it accepts. */
  flags: readonly string[];
  examples: readonly string[];
}

export interface CommandArguments {
  flags: FlagValues;
  positionals: readonly string[];
  host: HostFacts;
  /** That of `serve` over stdio, if the handshake has read from it. */
  connection?: StdioConnection | undefined;
}

export interface Command {
  name: string;
  /** Its usage line, without the program's name. */
  usage: string;
  summary: string;
  flags: readonly Flag[];
  /** Calls of it, without the program's name. */
  examples?: readonly string[];
  actions?: readonly Action[];
  /** True if the command accepts the configuration flags. */
  configurable: boolean;
  /** Paths of the settings that its help shows first. Default: the most common ones. */
  settings?: readonly string[];
  /** Maximum number of positional arguments; default 0. */
  positionals?: number;
  run(args: CommandArguments): Promise<ExitCode>;
}

export const textOf = (value: FlagValues[string]): string | undefined =>
  typeof value === "string" ? value : undefined;

export const textsOf = (value: FlagValues[string]): readonly string[] | undefined =>
  typeof value === "object" ? value : undefined;

export type ParsedArguments =
  | { ok: true; flags: FlagValues; positionals: string[] }
  | { ok: false; problems: string[] };

/** A flag, from its label in help: `--json`, `-y, --yes`, `--limit N`; with `…` behind the value it may be repeated. */
export function flag(label: string, help: string): Flag {
  const [, short, name = "", hint, more] = /^(?:-(\w), )?--([\w-]+)(?: ([^…]+)(…)?)?$/.exec(label) ?? [];
  const kind = hint === undefined ? "boolean" : more === undefined ? "text" : "list";
  return { name, kind, help, short, hint };
}

const HELP_ALL_FLAG = flag("--help-all", "Show this help with all settings.");
const CONFIG_FLAG = flag("--config FILE", "JSON file with settings. Also DEEPAGENT_CONFIG.");

/** Flags a command understands, in the order help shows them; those of the configuration last, but for its own. */
export function flagsOf(command: Command): Flag[] {
  const own = [...command.flags, flag("-h, --help", "Show this help.")];
  const others = SETTINGS.map(toFlag).filter(({ name }) => own.every((flag) => flag.name !== name));
  return command.configurable ? [...own, HELP_ALL_FLAG, CONFIG_FLAG, ...others] : own;
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
        ...defined({ short: flag.short }),
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
  const problems = tokens.flatMap((token) => {
    if (token.kind !== "option") return [];
    const { name, rawName, value, inlineValue } = token;
    const flag = flags.get(name);
    if (flag === undefined) {
      const meant = rawName.startsWith("--") ? didYouMean(name, flags.keys(), "--") : "";
      return [`Unknown flag ${rawName}.${meant}`];
    }
    if (flag.kind === "boolean") return value === undefined ? [] : [`${rawName} takes no value.`];
    const taken = value !== undefined && (inlineValue || !value.startsWith("-"));
    return taken ? [] : [`${rawName} needs a value: ${rawName} ${flag.hint ?? "VALUE"}.`];
  });
  const allowed = command.positionals ?? 0;
  // The value of a mistyped flag looks like an argument.
  for (const word of problems.length > 0 ? [] : positionals.slice(allowed)) {
    const quoting = allowed > 0 ? " Quote arguments that contain spaces." : "";
    problems.push(`Unexpected argument "${word}" for ${command.name}.${quoting}`);
  }
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, flags: values, positionals };
}

const toFlag = (setting: Setting): Flag => ({
  name: flagName(setting),
  help: "",
  setting: setting.path,
  ...VALUE_FORM[setting.kind],
  ...(setting.hint === undefined ? {} : { hint: setting.hint }),
});

/** The flag of one setting, for a command that the configuration does not apply to. */
export function settingFlag(path: string): Flag {
  const setting = SETTINGS.find((setting) => setting.path === path);
  if (setting === undefined) throw new Error(`There is no setting ${path}.`);
  return toFlag(setting);
}

const VALUE_FORM: Record<SettingKind, Pick<Flag, "kind" | "hint">> = {
  text: { kind: "text", hint: "VALUE" },
  path: { kind: "text", hint: "DIR" },
  number: { kind: "text", hint: "N" },
  paths: { kind: "list", hint: "DIR" },
  list: { kind: "list", hint: "NAME" },
  boolean: { kind: "boolean" },
};

/** Text of `deepagent-mcp --help`. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map((command): [string, string] => [command.usage, command.summary]);
  const { command, args } = programLaunch(process.platform);
  const launch = { command, args: [...args, "--workspace", "/path/to/folder"] };
  const entry = JSON.stringify({ mcpServers: { deepagent: launch } });
  return [
    `${PROGRAM}: an MCP server that gives any client a durable deep agent.`,
    "",
    `Usage: ${PROGRAM} [COMMAND] [FLAGS]`,
    "",
    "Commands",
    ...table(rows),
    "",
    "Flags",
    ...table([
      ["-h, --help", "Show this help; after a command, its flags."],
      ["-v, --version", "Show the version."],
    ]),
    "",
    "In an MCP client's configuration:",
    `  ${entry}`,
    "",
  ].join("\n");
}

/** The most common settings, which help shows first. */
const COMMON = ["workspace", "model", "dataDir", "approvals.write", "approvals.execute"];

/**
 * Text of `deepagent-mcp COMMAND --help`, or of `deepagent-mcp COMMAND ACTION --help`; `all`: of `--help-all`. A flag
 * of one or two actions is left to their help.
 */
export function commandHelp(command: Command, action?: Action, all = false): string {
  const flags = flagsOf(command);
  const { actions = [], examples = [] } = command;
  const usersOf = ({ name }: Flag): readonly Action[] => actions.filter(({ flags }) => flags.includes(name));
  const isOwn = (flag: Flag): boolean => {
    const users = usersOf(flag);
    if (users.length === 0) return true;
    return action ? users.includes(action) : all || users.length > 2;
  };
  const own = flags.filter(
    (flag) => flag.setting === undefined && (all || flag !== HELP_ALL_FLAG) && isOwn(flag),
  );
  const settings = flags.filter((flag) => flag.setting !== undefined);
  const { settings: shownFirst = COMMON } = command;
  const common = settings.filter(({ setting = "" }) => !command.configurable || shownFirst.includes(setting));
  const usersText = (flag: Flag): string => {
    const users = action ? [] : usersOf(flag);
    return users.length === 0 ? "" : `${users.map(({ name }) => name).join(", ")}: `;
  };
  const usage = action ? `${command.name} ${action.name} ${action.words}`.trim() : command.usage;
  const calls = (action?.examples ?? examples).map((example) => `  ${PROGRAM} ${example}`);
  const choices = actions.map(({ name, words, summary }) => [`${name} ${words}`, summary] as const);
  return [
    (action ?? command).summary,
    "",
    `Usage: ${PROGRAM} ${usage} [FLAGS]`,
    ...part("Examples", calls),
    ...part("Actions", action ? [] : table(choices)),
    ...part("Flags", table(own.map((flag) => [flagLabel(flag), usersText(flag) + flag.help]))),
    ...(all
      ? SETTING_GROUPS.flatMap(([title, beginnings]) => {
          const isIn = ({ setting = "" }: Flag): boolean =>
            beginnings.some((path) => setting.startsWith(path));
          const rows = settings.filter(isIn).map((flag) => [flagLabel(flag), settingHelp(flag)] as const);
          return part(title, table(rows));
        })
      : part("Settings", table(common.map((flag) => [flagLabel(flag), shortHelp(flag)])))),
    ...(actions.length > 0 && !action && !all
      ? ["", `${PROGRAM} ${command.name} ACTION --help lists the flags of an action.`]
      : []),
    ...(command.configurable
      ? [
          "",
          all
            ? "Settings are resolved in this order: command line, environment, --config file, default."
            : "--help-all lists all settings with their environment variables.",
        ]
      : []),
    "",
  ].join("\n");
}

/** The first sentence about a setting, and its default. */
function shortHelp({ setting = "" }: Flag): string {
  const { description = "", defaultText } = settingInfo(setting);
  const [first = ""] = description.split(/(?<=\.) /, 1);
  return defaultText === undefined ? first : `${first} Default ${defaultText}.`;
}

const part = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ["", title, ...lines];

function flagLabel(flag: Flag): string {
  const short = flag.short === undefined ? "" : `-${flag.short}, `;
  const choices = flag.setting === undefined ? undefined : settingInfo(flag.setting).choices;
  const hint = choices === undefined || choices.length > 3 ? flag.hint : choices.join("|");
  return `${short}--${flag.name}${hint === undefined ? "" : ` ${hint}`}`;
}

function settingHelp(flag: Flag): string {
  const setting = SETTINGS.find(({ path }) => path === flag.setting);
  if (setting === undefined) return flag.help;
  const info = settingInfo(setting.path);
  return [
    info.description,
    info.choices === undefined ? undefined : `One of ${info.choices.join(", ")}.`,
    info.defaultText === undefined ? undefined : `Default ${info.defaultText}.`,
    flag.kind === "list" ? "May be repeated." : undefined,
    `[${envName(setting)}]`,
  ]
    .filter((part) => part !== undefined)
    .join(" ");
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const indent = 2;
  const column = Math.min(32, Math.max(0, ...rows.map(([label]) => label.length)) + indent);
  return rows.flatMap(([label, text]) => {
    const lines = wrapText(text, Math.min(columnsOf(process.stdout), 100) - column - indent);
    const first = label.length < column ? label.padEnd(column) + (lines.shift() ?? "") : label;
    return [first, ...lines.map((line) => " ".repeat(column) + line)].map(
      (line) => " ".repeat(indent) + line,
    );
  });
}
