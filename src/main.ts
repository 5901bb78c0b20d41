#!/usr/bin/env node
import module from "node:module";
import { homedir } from "node:os";
import { type Command, type ExitCode, parseArguments } from "./cli/command.ts";
import { COMMANDS } from "./cli/commands.ts";
import { compileCacheDir, packageVersion } from "./config/paths.ts";
import { ConfigurationError, errorMessage } from "./core/errors.ts";

const HOST = { cwd: process.cwd(), home: homedir(), platform: process.platform, env: process.env };

process.stdout.on("error", endWithReader);
process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<ExitCode> {
  keepCompiledCode();
  const [first = "serve", ...rest] = argv;
  if (["help", "--help", "-h"].includes(first)) return showHelp(rest[0]);
  if (["version", "--version", "-v"].includes(first)) {
    process.stdout.write(`${packageVersion()}\n`);
    return 0;
  }
  const named = !first.startsWith("-");
  const command = commandNamed(named ? first : "serve");
  if (command === undefined) return complain([`Unknown command "${first}".`]);
  try {
    return await runCommand(command, named ? rest : argv);
  } catch (error) {
    return complain([errorMessage(error)], error instanceof ConfigurationError ? 2 : 1);
  }
}

async function runCommand(command: Command, argv: readonly string[]): Promise<ExitCode> {
  const parsed = parseArguments(argv, command);
  if (!parsed.ok) return complain(parsed.problems);
  if (parsed.flags["help"] === true) return showHelp(command.name);
  return command.run({ flags: parsed.flags, positionals: parsed.positionals, host: HOST });
}

async function showHelp(name?: string): Promise<ExitCode> {
  const { commandHelp, overview } = await import("./cli/command.ts");
  if (name === undefined || name.startsWith("-")) {
    process.stdout.write(overview(COMMANDS));
    return 0;
  }
  const command = commandNamed(name);
  if (command === undefined) return complain([`Unknown command "${name}".`]);
  process.stdout.write(commandHelp(command));
  return 0;
}

function commandNamed(name: string): Command | undefined {
  return COMMANDS.find((command) => command.name === name);
}

/**
 * Ends as at Ctrl-C, which parks what runs, when nobody reads any more, as after `runs list | head -1`.
 * Throws what else goes wrong with standard output.
 */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  if (!process.emit("SIGINT")) process.exit();
}

async function complain(problems: readonly string[], code: ExitCode = 2): Promise<ExitCode> {
  const { commandLine } = await import("./config/program.ts");
  const hint = code === 2 ? [`Run ${commandLine(HOST, ["--help"])} to see commands and flags.`] : [];
  process.stderr.write([...problems, ...hint].map((line) => `deepagent-mcp: ${line}\n`).join(""));
  return code;
}

/**
 * Lets Node (22.1 and later) keep compiled code between starts. Not in the default place, the shared
 * temporary folder, where another user of the machine could have put something.
 */
function keepCompiledCode(): void {
  if (!("enableCompileCache" in module) || typeof module.enableCompileCache !== "function") return;
  module.enableCompileCache(compileCacheDir({ home: homedir(), env: process.env }));
}
