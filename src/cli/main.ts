import { existsSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { isatty } from "node:tty";
import { type Command, type ExitCode, parseArguments } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { compileCacheDir, packageVersion } from "../config/paths.ts";
import type { StdioConnection } from "../handshake/handshake.ts";
import { ConfigurationError, errorMessage, orElse } from "../core/errors.ts";

// Containers may have users that the system does not know; packages and other programs look for the folder, too.
const home = orElse(homedir, undefined) ?? (process.env["HOME"] = "/");
const HOST = { cwd: startFolder(), home, platform: process.platform, env: process.env };

process.stdout.on("error", endWithReader);
// The program does not end because nobody reads its logs.
process.stderr.on("error", () => undefined);

/** Runs the command of the command line. `connection`: that of a client whose first request was answered before the program was loaded. */
export async function run(connection?: StdioConnection): Promise<void> {
  process.exitCode = await main(process.argv.slice(2), connection);
}

/** The folder that this was started in. It may have been deleted since, and made again, as builds do. */
function startFolder(): string {
  try {
    return process.cwd();
  } catch {
    const { PWD = "/" } = process.env;
    // Programs are started in a folder that exists.
    process.chdir(existsSync(PWD) ? PWD : "/");
    return PWD;
  }
}

async function main(argv: readonly string[], connection?: StdioConnection): Promise<ExitCode> {
  // Lets Node (22.1 and later) keep compiled code between starts. Not in the default place, the shared temporary
  // folder, where another user of the machine could have put something.
  if ("enableCompileCache" in module && typeof module.enableCompileCache === "function")
    module.enableCompileCache(compileCacheDir({ home: HOST.home, env: process.env }));
  const [first = "serve", ...rest] = argv;
  if (argv.length === 0 && isatty(0) && isatty(1)) return greet();
  if (["help", "--help", "-h"].includes(first)) return showHelp(rest[0], rest[1]);
  if (["version", "--version", "-v"].includes(first)) return print(packageVersion());
  const named = !first.startsWith("-");
  const command = commandNamed(named ? first : "serve");
  if (command === undefined) return unknownCommand(first);
  try {
    const parsed = parseArguments(named ? rest : argv, command);
    if (!parsed.ok) return complain(parsed.problems);
    const { help, "help-all": all } = parsed.flags;
    if (help === true || all === true) return showHelp(command.name, parsed.positionals[0], all === true);
    return await command.run({ ...parsed, host: HOST, connection });
  } catch (error) {
    return complain([errorMessage(error)], error instanceof ConfigurationError ? 2 : 1);
  }
}

/** A person called the program alone: no client speaks MCP to it here. */
async function greet(): Promise<ExitCode> {
  const [{ greeting }, { colorsFor, columnsOf }] = await Promise.all([
    import("./greeting.ts"),
    import("./terminal/text.ts"),
  ]);
  const style = { columns: columnsOf(process.stdout), colors: colorsFor(process.stdout, HOST.env) };
  return print(await greeting(HOST, style));
}

async function showHelp(name?: string, actionName?: string, all = false): Promise<ExitCode> {
  const { commandHelp, overview } = await import("./command.ts");
  if (name === undefined || name.startsWith("-")) return print(overview(COMMANDS));
  const command = commandNamed(name);
  if (command === undefined) return unknownCommand(name);
  const action = command.actions?.find(({ name }) => name === actionName);
  return print(commandHelp(command, action, all));
}

async function unknownCommand(name: string): Promise<ExitCode> {
  const { didYouMean } = await import("../core/options.ts");
  const known = COMMANDS.map((command) => command.name);
  return complain([`Unknown command "${name}".${didYouMean(name, known)}`]);
}

const commandNamed = (name: string): Command | undefined => COMMANDS.find((command) => command.name === name);

/**
 * Ends as at Ctrl-C, which parks what runs, when nobody reads any more, as after `runs list | head -1` or when the
 * terminal was closed. Throws what else goes wrong with the output.
 */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
  // Later writes fail too, and must not end runs before they are parked.
  process.stdout.off("error", endWithReader).on("error", () => undefined);
  if (!process.emit("SIGINT") && !process.emit("SIGHUP")) process.exit();
}

async function complain(problems: readonly string[], code: 1 | 2 = 2): Promise<ExitCode> {
  const { commandLine } = await import("../config/program.ts");
  const hint = code === 2 ? [`Run ${commandLine(HOST, ["--help"])} to see commands and flags.`] : [];
  return (await import("./output.ts")).complain([...problems, ...hint], code);
}

const print = async (text: string): Promise<ExitCode> => (await import("./output.ts")).say(text.trimEnd());
