import { copyFile, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { packageRoot } from "../../config/package-info.ts";
import { folderProblem } from "../../config/paths.ts";
import { errorMessage } from "../../core/errors.ts";
import type { CommandArguments, ExitCode } from "../command.ts";
import { CLIENT_NAMES, type ClientInstall, clientInstall, type Launch } from "./clients.ts";
import { mergeConfig } from "./merge-config.ts";

const NAME = "deepagent";

/** Adds the server to a client's configuration, keeping a copy of what was there. */
export async function runInstall({ flags, positionals, host }: CommandArguments): Promise<ExitCode> {
  const [client] = positionals;
  if (client === undefined) return complain(`Say which client: ${CLIENT_NAMES.join(", ")}.`);
  const workspace =
    typeof flags["workspace"] === "string" ? resolve(host.cwd, flags["workspace"]) : undefined;
  const problem = workspace === undefined ? undefined : folderProblem(workspace);
  if (problem !== undefined) return complain(`--workspace: ${problem}`);
  const model = typeof flags["model"] === "string" ? flags["model"] : undefined;
  const found = clientInstall(client, host, launchOf(workspace, model));
  if (!found) return complain(`Unknown client "${client}". Known: ${CLIENT_NAMES.join(", ")}.`);
  if (found.kind === "command") {
    say(`${found.title} adds servers by itself. Run:\n\n  ${found.command}\n`);
    return 0;
  }
  return installInFile(found, flags["print"] === true);
}

/** From an installed package by npx; from a clone by its own build. */
function launchOf(workspace: string | undefined, model: string | undefined): Launch {
  const settings = [
    ...(workspace === undefined ? [] : ["--workspace", workspace]),
    ...(model === undefined ? [] : ["--model", model]),
  ];
  const root = packageRoot();
  if (root.split(sep).includes("node_modules"))
    return { command: "npx", args: ["-y", "deepagent-mcp", ...settings] };
  return { command: process.execPath, args: [join(root, "dist/bin/deepagent-mcp.js"), ...settings] };
}

async function installInFile(install: ClientInstall & { kind: "file" }, print: boolean): Promise<ExitCode> {
  const { title, file, key, entry } = install;
  const snippet = JSON.stringify({ [key]: { [NAME]: entry } }, null, 2);
  if (print) {
    say(`${title} reads ${file}. It would get:\n\n${snippet}\n`);
    return 0;
  }
  try {
    const before = await readIfThere(file);
    const merged = mergeConfig(before ?? "", key, NAME, entry);
    if (!merged.ok)
      return complain(`${file} was left alone: ${merged.problem}. Add this to it yourself:\n\n${snippet}`, 1);
    if (!merged.changed) {
      say(`${title} has this server already: ${file}`);
      return 0;
    }
    await mkdir(dirname(file), { recursive: true });
    if (before !== undefined) await copyFile(file, `${file}.before-deepagent`);
    await writeFile(`${file}.new`, merged.text, { mode: 0o600 });
    await rename(`${file}.new`, file);
    const kept = before === undefined ? "" : `\nThe file as it was is in ${file}.before-deepagent`;
    say(`Added to ${title}: ${file}${kept}\nRestart ${title} to use it.`);
    return 0;
  } catch (error) {
    return complain(
      `${file} could not be changed: ${errorMessage(error)}. Add this to it yourself:\n\n${snippet}`,
      1,
    );
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function complain(text: string, code: ExitCode = 2): ExitCode {
  process.stderr.write(`deepagent-mcp: ${text}\n`);
  return code;
}
