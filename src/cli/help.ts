import { PROGRAM, programLaunch } from "../config/program.ts";
import { settingInfo } from "../config/schema.ts";
import { SETTINGS, envNameOf } from "../config/settings.ts";
import { type Command, type Flag, flagsOf } from "./command.ts";

const WIDTH = 100;

/** Text of `deepagent-mcp --help`. */
export function overview(commands: readonly Command[]): string {
  const { command, args } = programLaunch();
  const rows = commands.map((command): [string, string] => [command.usage, command.summary]);
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
    `  ${JSON.stringify({ mcpServers: { deepagent: { command, args: [...args, "--workspace", "/path/to/folder"] } } })}`,
    "",
  ].join("\n");
}

/** Text of `deepagent-mcp COMMAND --help`. */
export function commandHelp(command: Command): string {
  const flags = flagsOf(command);
  const own = flags.filter((flag) => flag.setting === undefined);
  const settings = flags.filter((flag) => flag.setting !== undefined);
  return [
    command.summary,
    "",
    `Usage: ${PROGRAM} ${command.usage} [FLAGS]`,
    "",
    "Flags",
    ...table(own.map((flag) => [labelOf(flag), flag.help])),
    ...(settings.length === 0
      ? []
      : [
          "",
          "Settings (defaults < --config file < environment < flags); times are seconds",
          ...table(settings.map((flag) => [labelOf(flag), settingHelp(flag)])),
        ]),
    "",
  ].join("\n");
}

function labelOf(flag: Flag): string {
  const short = flag.short === undefined ? "" : `-${flag.short}, `;
  return `${short}--${flag.name}${flag.hint === undefined ? "" : ` ${flag.hint}`}`;
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
    `[${envNameOf(setting)}]`,
  ]
    .filter((part) => part !== undefined)
    .join(" ");
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const indent = 2;
  const column = Math.min(32, Math.max(...rows.map(([label]) => label.length)) + indent);
  return rows.flatMap(([label, text]) => {
    const lines = wrap(text, WIDTH - column - indent);
    const first = label.length < column ? label.padEnd(column) + (lines.shift() ?? "") : label;
    return [first, ...lines.map((line) => " ".repeat(column) + line)].map(
      (line) => " ".repeat(indent) + line,
    );
  });
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
