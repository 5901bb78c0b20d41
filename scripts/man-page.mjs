/**
 * Writes docs/man/deepagent-mcp.1 from the table of commands. With --check it writes nothing and fails when the page
 * is not what it would write.
 */
import { writeGenerated } from "./generated.mjs";
import { loadSources } from "./sources.mjs";

/** Commands are left out of what is loaded: each loads its code when it runs. */
const lazy = ({ onResolve }) =>
  onResolve({ filter: /^\./ }, ({ kind }) => (kind === "dynamic-import" ? { external: true } : undefined));

const { COMMANDS, flagsOf, settingHelp } = await loadSources(
  'export * from "./src/cli/command.ts"; export * from "./src/cli/commands.ts";',
  [{ name: "lazy", setup: lazy }],
);
await writeGenerated("docs/man/deepagent-mcp.1", render());

function render() {
  const serve = COMMANDS.find(({ name }) => name === "serve");
  const settings = flagsOf(serve).filter(({ setting, name }) => setting !== undefined || name === "config");
  const parts = [
    '.\\" Generated from the table of commands by scripts/man-page.mjs; do not edit.',
    '.TH DEEPAGENT-MCP 1 "" "" "User Commands"',
    ".SH NAME",
    "deepagent\\-mcp \\- MCP server that gives any client a durable deep agent",
    ".SH SYNOPSIS",
    ".B deepagent\\-mcp",
    "[\\fICOMMAND\\fR] [\\fIFLAGS\\fR]",
    ".SH DESCRIPTION",
    text(
      "Hands a task that takes minutes to hours to an agent that plans, reads and searches files, sends subagents out, asks before it changes anything, and leaves a report and a memory behind. The run belongs to the server: a client's time-out or a killed process does not lose it.",
    ),
    ".PP",
    text("Without a command it serves MCP on standard input and output, as a client starts it."),
    ".SH COMMANDS",
    ...COMMANDS.flatMap(command),
    ".SH SETTINGS",
    text(
      "A setting comes from its flag, else from its environment variable, else from the file that --config names, else it has its default. Times are seconds. The file has some settings that have no flag: see docs/configuration.md of the package.",
    ),
    ...settings.flatMap((flag) => entry(label(flag), flag.setting ? settingHelp(flag) : flag.help)),
    ".SH EXIT STATUS",
    ...entry("0", "It is done."),
    ...entry("1", "It failed, or the run did."),
    ...entry("2", "The arguments or the configuration are wrong; nothing was done."),
    ".SH ENVIRONMENT",
    text("Each setting names its variable. Besides:"),
    ...entry("DEEPAGENT_CONFIG", "The file of --config."),
    ...entry("ANTHROPIC_API_KEY, OPENAI_API_KEY, …", "Keys of the providers of models, by their own names."),
    ".SH SEE ALSO",
    text("README.md and docs/ of the package, which have everything else."),
  ];
  return `${parts.join("\n")}\n`;
}

function command(shown) {
  const { usage, summary, actions = [], examples = [], configurable } = shown;
  const own = flagsOf(shown).filter(
    ({ setting, name }) => setting === undefined && !["config", "help"].includes(name),
  );
  return [
    `.SS ${text(usage)}`,
    text(summary),
    ...(configurable ? [".br", text("Takes the settings below.")] : []),
    ...actions.flatMap(({ name, words, summary }) => entry(`${name} ${words}`.trim(), summary)),
    ...own.flatMap((flag) => entry(label(flag), flag.help)),
    ...(examples.length === 0
      ? []
      : [".PP", ".EX", ...examples.map((example) => text(`deepagent-mcp ${example}`)), ".EE"]),
  ];
}

function label({ name, short, hint }) {
  return `${short === undefined ? "" : `-${short}, `}--${name}${hint === undefined ? "" : ` ${hint}`}`;
}

function entry(name, meaning) {
  return [".TP", `\\fB${text(name)}\\fR`, text(meaning)];
}

/** Text in which troff sees no command: a hyphen stays one that can be pasted. */
function text(words) {
  const safe = words
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replaceAll("`", "")
    .replaceAll(/\s*\n\s*/g, " ");
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}
