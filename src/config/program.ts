import { existsSync, realpathSync } from "node:fs";
import { delimiter, join, resolve, sep } from "node:path";
import type { FlagValues } from "./load.ts";
import type { HostFacts } from "./paths.ts";
import { defaultDataDir, expandHome, isPublished, packageName, packageRoot } from "./paths.ts";
import type { Config } from "./schema.ts";
import { SETTINGS, type Setting, flagName } from "./settings.ts";

/** Name of the package and of its command. */
export const PROGRAM = "deepagent-mcp";

/** A program and its arguments, as a client starts it: without a shell. */
export interface Launch {
  command: string;
  args: string[];
}

/**
 * The command with which a client starts this program, whatever its `PATH`: npx if npx started a published one,
 * otherwise its file. On Windows npx is a script, which only a shell starts.
 */
export function programLaunch(platform: NodeJS.Platform): Launch {
  const npx = npxWords();
  if (npx === undefined) return { command: process.execPath, args: [programFile()] };
  const [command, ...args] = platform === "win32" ? ["cmd", "/c", ...npx] : npx;
  return { command, args };
}

const programFile = (): string => join(packageRoot(), "dist/bin/deepagent-mcp.js");

/** The words that start a package fetched by npx; `undefined`: this program is installed in another way. */
function npxWords(): [string, ...string[]] | undefined {
  const isFromNpx = isPublished() && programFile().split(sep).includes("_npx");
  return isFromNpx ? ["npx", "-y", packageName()] : undefined;
}

/** A line for a person's shell that calls this program, by its shortest name that works there. */
export function commandLine(host: HostFacts, words: readonly string[]): string {
  const node = process.execPath;
  const program =
    npxWords() ??
    (leadsTo(PROGRAM, programFile(), host)
      ? [PROGRAM]
      : [leadsTo("node", node, host) ? "node" : node, programFile()]);
  return [...program, ...words].map((word) => shellWord(word, host.platform)).join(" ");
}

/** True if a shell that looks for `name` finds `file`. Folders that npm adds for its scripts are not the shell's. */
function leadsTo(name: string, file: string, { env }: HostFacts): boolean {
  const folders = (env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => !/node_modules[\\/]\.bin$/.test(folder));
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  return found !== undefined && realpathSync(found) === realpathSync(file);
}

export function shellWord(word: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)) return word;
  return platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The flag by which a command finds the same runs, unless it does by itself. */
export const dataDirFlag = ({ dataDir }: Pick<Config, "dataDir">, host: HostFacts): string[] =>
  dataDir === defaultDataDir(host) ? [] : ["--data-dir", dataDir];

/** The configuration's flags, without those of `left`; paths are absolute. */
export function givenFlags(flags: FlagValues, host: HostFacts, left: readonly string[] = []): string[] {
  const absolute = (path: string): string => resolve(host.cwd, expandHome(path, host.home));
  const { config } = flags;
  const isPath = ({ kind }: Setting): boolean => kind === "path" || kind === "paths";
  return [
    ...(typeof config === "string" ? ["--config", absolute(config)] : []),
    ...SETTINGS.filter(({ path }) => !left.includes(path)).flatMap((setting) => {
      const name = `--${flagName(setting)}`;
      const value = flags[flagName(setting)];
      if (value === undefined || typeof value === "boolean") return value === true ? [name] : [];
      const values = typeof value === "string" ? [value] : value;
      return values.map((text) => `${name}=${isPath(setting) ? absolute(text) : text}`);
    }),
  ];
}
