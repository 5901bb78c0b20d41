/** Shows the providers of models, and adds their packages to the program. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PROVIDERS, variable } from "../agent/models/choose.ts";
import type { Provider } from "../agent/models/profiles/schema.ts";
import {
  LOADER,
  addedVersion,
  isBesideProgram,
  loadPackage,
  packagesFolder,
} from "../agent/models/packages.ts";
import { loadConfig } from "../config/load.ts";
import type { HostFacts } from "../config/paths.ts";
import { commandLine, dataDirFlag } from "../config/program.ts";
import { startChild } from "../core/child-process.ts";
import { errorMessage } from "../core/errors.ts";
import { didYouMean } from "../core/options.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { complain, say } from "./output.ts";
import { printOutput } from "./terminal/printer.ts";
import { padded } from "./terminal/text.ts";

export async function runModels({ flags, host, positionals }: CommandArguments): Promise<ExitCode> {
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) return complain(loaded.problems.join("; "), 2);
  const { dataDir } = loaded.config;
  const [action, name] = positionals;
  if (action === "list" && name === undefined) {
    const add = (provider: string): string =>
      commandLine(host, ["models", "add", provider, ...dataDirFlag({ dataDir }, host)]);
    return say(...listLines(packagesFolder(dataDir), host), "", add("PROVIDER"));
  }
  if (action === "add" && name !== undefined) return addProvider(name, packagesFolder(dataDir), host);
  return complain("models has two actions: list, and add PROVIDER.", 2);
}

function listLines(folder: string, { env }: HostFacts): string[] {
  const rows = Object.entries(PROVIDERS).map(
    ([provider, facts]) => [provider, whereIs(facts, folder), keyState(facts, env)] as const,
  );
  const widthOf = (column: 0 | 1): number => Math.max(...rows.map((row) => row[column].length)) + 2;
  const [first, second] = [widthOf(0), widthOf(1)];
  return rows.map(([provider, place, key]) => padded(provider, first) + padded(place, second) + key);
}

function whereIs({ package: own, wire }: Provider, folder: string): string {
  const otherwise = wire === undefined ? "not installed" : "built in";
  if (own?.versions === undefined) return "built in";
  const added = addedVersion(folder, own.name);
  if (added !== undefined) return `installed, ${added}`;
  return isBesideProgram(own.name) ? "beside the program" : otherwise;
}

function keyState({ keys = [], keyless }: Provider, env: HostFacts["env"]): string {
  const [usual] = keys;
  if (usual === undefined) return "needs no API key";
  const set = keys.find((name) => variable(env, name) !== undefined);
  if (set !== undefined) return `${set} (set)`;
  return keyless === "always" ? `${usual} (optional)` : usual;
}

async function addProvider(provider: string, folder: string, host: HostFacts): Promise<ExitCode> {
  if (!Object.hasOwn(PROVIDERS, provider)) {
    const known = Object.keys(PROVIDERS);
    const hint = didYouMean(provider, known) || ` Known: ${known.join(", ")}.`;
    return complain(`Unknown provider ${JSON.stringify(provider.slice(0, 80))}.${hint}`, 2);
  }
  const { package: own, keys: [key] = [] } = PROVIDERS[provider] ?? {};
  if (own?.versions === undefined) return say(`${provider} is built in.`);
  const { name, versions, chatModel } = own;
  const problem = await install(`${name}@${versions}`, folder, host);
  if (problem !== undefined) return complain(problem);
  try {
    const module = await loadPackage(name, folder);
    if (typeof module[chatModel] !== "function") throw new Error(`it has no ${chatModel}`);
  } catch (error) {
    return complain(`${name} was installed but cannot be used: ${errorMessage(error)}`);
  }
  say(`Added ${name} ${addedVersion(folder, name)}. Choose one of its models as ${provider}:NAME.`);
  if (key !== undefined)
    say(`It needs a key in ${key}. To store it in the keychain: ${commandLine(host, ["keys", "set", key])}`);
  return 0;
}

/** Installs a package into the folder with npm, without running its programs. Returns the reason of a failure. */
async function install(spec: string, folder: string, host: HostFacts): Promise<string | undefined> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, LOADER.file), LOADER.text);
    await writeFile(
      join(folder, "package.json"),
      `${JSON.stringify({ private: true, description: "Packages that deepagent-mcp was told to add" }, null, 2)}\n`,
      { flag: "wx" },
    ).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  } catch (error) {
    return `${folder} cannot be written: ${errorMessage(error)}`;
  }
  // On Windows npm is a batch file, which only a shell can start; the script behind it is beside Node.
  const { command, args } =
    host.platform === "win32"
      ? {
          command: process.execPath,
          args: [join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js")],
        }
      : { command: "npm", args: [] };
  const options = "--global=false --ignore-scripts --no-audit --no-fund --no-color".split(" ");
  const child = startChild(command, [...args, "install", "--prefix", folder, ...options, spec], {
    cwd: folder,
    env: host.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const code = await printOutput(child).catch(() => undefined);
  if (code === undefined) return "npm cannot be started. It comes with Node: install Node with npm.";
  return code === 0 ? undefined : `npm could not install ${spec}.`;
}
