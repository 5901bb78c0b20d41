import { dirname, join, resolve } from "node:path";
import { loadConfig } from "../config/load.ts";
import { ANY_FOLDER, type HostFacts, defaultDataDir, expandHome, folderProblem } from "../config/paths.ts";
import { commandLine, programLaunch, shellWord } from "../config/program.ts";
import { didYouMean } from "../core/options.ts";
import { startChild } from "../core/child-process.ts";
import { errorMessage } from "../core/errors.ts";
import { type CommandArguments, type ExitCode, textOf, textsOf } from "./command.ts";
import type { Client, CommandClient, FileClient, Place } from "./clients/catalogue.ts";
import { CLIENT_NAMES, findClient } from "./clients/catalogue.ts";
import { ConfigFile } from "./clients/config-file.ts";
import type { Entry, Settings } from "./clients/entries.ts";
import {
  differOnlyInForm,
  entryFor,
  environmentOf,
  hasEntry,
  isSecret,
  secretsIn,
  snippetOf,
  withEntry,
  withoutEntry,
} from "./clients/entries.ts";
import { complain, say } from "./output.ts";
import { printOutput } from "./terminal/printer.ts";
import {
  type Key,
  Refusal,
  addressOf,
  atTerminal,
  exposedKey,
  findKey,
  hasTerminal,
  keepKey,
  modelOf,
  orRefusal,
  variableOf,
  workspaceOf,
} from "./setup.ts";

/** Adds the server to a client's configuration, and checks that the client can start it. */
export async function runInstall(args: CommandArguments): Promise<ExitCode> {
  const { flags, host } = args;
  return orRefusal(async () => {
    const client = namedClient(args);
    const wanted = readWishes(args);
    if (flags[ALL_PROJECTS] === true && flags["project"] === true)
      throw new Refusal(`--${ALL_PROJECTS} is for your own configuration: omit --project.`);
    const isTold = flags["print"] === true || flags["yes"] === true;
    const wishes =
      isTold || !hasTerminal() ? wanted : await completed(wanted, client, host, flags[ALL_PROJECTS] === true);
    return installFor(client, wishes, args);
  });
}

/** One entry for every project of the person. */
const ALL_PROJECTS = "all-projects";

/** The folders of all projects: those of the flag or of the configuration, or all beside the current one. */
function projectFolders({ flags, host }: CommandArguments): readonly string[] {
  const given = textsOf(flags["folders"]);
  if (given !== undefined) return given.map((pattern) => resolve(host.cwd, expandHome(pattern, host.home)));
  const loaded = loadConfig({ flags: {}, ...host });
  const configured = loaded.ok ? loaded.config.folders : [];
  return configured.length > 0 ? configured : [join(dirname(host.cwd), ANY_FOLDER)];
}

interface Wishes {
  workspace: string | undefined;
  model: string | undefined;
  env: Map<string, string | undefined>;
  /** A key that goes into the keychain. */
  key?: Key | undefined;
}

/** Asks at the terminal for everything that the command line left open. */
const completed = (wishes: Wishes, client: Client, host: HostFacts, isWide: boolean): Promise<Wishes> =>
  atTerminal(async (asker) => {
    const hasFolder = client.kind === "file" && client.projectFolder !== undefined;
    const workspace = wishes.workspace ?? (hasFolder || isWide ? undefined : await workspaceOf(host, asker));
    const model = wishes.model ?? (await modelOf(host, asker));
    const isGiven = wishes.env.size > 0;
    const key = isGiven ? undefined : await findKey(model, { host, asker, client, workspace });
    const env = isGiven
      ? wishes.env
      : new Map([...variableOf(key, client), ...addressOf(model, client, host)]);
    return { workspace, model, key, env };
  });

async function installFor(client: Client, wishes: Wishes, args: CommandArguments): Promise<ExitCode> {
  const { flags, host } = args;
  const isWide = flags[ALL_PROJECTS] === true;
  const own = client.kind === "file" && !isWide ? client.projectFolder : undefined;
  const { workspace, model, env, key } = wishes;
  const problem = workspace === undefined ? undefined : folderProblem(workspace);
  if (problem !== undefined) throw new Refusal(`The workspace ${problem}.`);
  const folder = workspace ?? own;
  const flag = (name: string, value: string | undefined): string[] =>
    value === undefined ? [] : [`--${name}`, value];
  const given = [
    ...flag("workspace", folder),
    ...(isWide ? projectFolders(args) : []).flatMap((pattern) => flag("folders", pattern)),
    ...flag("model", model),
    ...["approvals-write", "approvals-execute", "execute"].flatMap((name) => flag(name, textOf(flags[name]))),
  ];
  const settings = { launch: programLaunch(host.platform), flags: given, env };
  if (client.kind === "command") {
    await keepKey(key, host);
    return showCommand(client, settings, args);
  }
  const made = entryFor(client, settings, host.env);
  if (!made.ok) throw new Refusal(made.problem);
  const file = openFile(client, args);
  const [secret] = secretsIn(made.entry);
  const exposed = secret && exposedKey(secret, client, { workspace, host });
  if (exposed !== undefined) throw new Refusal(exposed);
  await keepKey(key, host);
  return installInFile({ client, file }, settings, made.entry, args);
}

/** Takes the server out of a client's configuration again. */
export const runUninstall = async (args: CommandArguments): Promise<ExitCode> =>
  orRefusal(async () => {
    const client = namedClient(args);
    const { title } = client;
    if (client.kind === "command")
      return say(
        `${title} removes servers by itself. Run:\n\n  ${client.remove.join(" ")}\n\n${leftBy(args)}`,
      );
    const file = openFile(client, args);
    return changing(client, "Remove the server from it yourself.", async () => {
      const text = await file.read();
      if (text === undefined || !hasEntry(withoutMark(text), client))
        return say(`${title} does not have this server: ${file.path}`);
      const before = await file.readBackup();
      const result = withoutEntry(withoutMark(text), client, before && withoutMark(before));
      if (!result.ok) return complain(`${file.path} was left alone: ${result.problem}.`);
      const after = byteOrderMark(text) + result.text;
      // If nothing else was changed since, the earlier file is restored, to the last byte.
      if (before !== undefined && differOnlyInForm(before, after)) await file.restore();
      else await file.write(after, false);
      await file.forget();
      return say(`Removed from ${title}: ${file.path}`, leftBy(args));
    });
  });

/** Names the files that remain on this machine, and the commands that delete them. */
function leftBy({ host }: CommandArguments): string {
  const loaded = loadConfig({ flags: {}, ...host });
  const folder = shellWord(loaded.ok ? loaded.config.dataDir : defaultDataDir(host), host.platform);
  const remove = host.platform === "win32" ? `rmdir /s ${folder}` : `rm -r ${folder}`;
  const keys = commandLine(host, ["keys", "list"]);
  return `Runs and memories are kept in ${folder}, which other clients may use too. To delete them: ${remove}\nKeys in the keychain are kept as well. To list them: ${keys}`;
}

const choosePlace = ({ flags, host }: CommandArguments): Place =>
  flags["project"] === true ? { host, project: host.cwd } : { host };

/** The client that was named. Throws `Refusal` for another name. */
function namedClient(args: CommandArguments): Client {
  const all = CLIENT_NAMES.join(", ");
  const [name] = args.positionals;
  if (name === undefined) throw new Refusal(`Choose a client: ${all}.`);
  if (!CLIENT_NAMES.includes(name))
    throw new Refusal(`Unknown client "${name}".${didYouMean(name, CLIENT_NAMES)} Known: ${all}.`);
  const place = choosePlace(args);
  const client = findClient(name, place);
  if (client !== undefined) return client;
  throw new Refusal(
    place.project === undefined
      ? `The location of ${name}'s settings on this platform is unknown.`
      : `${name} has no project configuration: omit --project.`,
  );
}

function readWishes({ flags, host }: CommandArguments): Wishes {
  const given = textOf(flags["workspace"]);
  const variables = new Map<string, string | undefined>();
  for (const text of textsOf(flags["env"]) ?? []) {
    const [, name, value] = /^([A-Za-z_]\w*)(?:=([^]*))?$/.exec(text) ?? [];
    if (name === undefined)
      throw new Refusal("--env needs KEY or KEY=VALUE, where KEY has letters, digits and underscores only.");
    variables.set(name, value);
  }
  return {
    workspace: given === undefined ? undefined : resolve(host.cwd, expandHome(given, host.home)),
    model: textOf(flags["model"]),
    env: variables,
  };
}

/** The client's file. Throws `Refusal` for one of a project whose links lead out of the project. */
function openFile({ file: path }: FileClient, args: CommandArguments): ConfigFile {
  const file = new ConfigFile(path);
  const { project } = choosePlace(args);
  const outside = project === undefined ? undefined : file.outside(project);
  if (outside === undefined) return file;
  const message = `${path} was left alone: a link leads from ${outside.path} to ${outside.place}, outside the project. Replace the link with a file or folder of the project, then run this again.`;
  throw new Refusal(message, 1);
}

async function installInFile(
  { client, file }: { client: FileClient; file: ConfigFile },
  settings: Settings,
  entry: Entry,
  args: CommandArguments,
): Promise<ExitCode> {
  const { flags, host } = args;
  const { title } = client;
  const { path } = file;
  const snippet = snippetOf(client, entry);
  if (flags["print"] === true) return say(`${title} reads ${path}. This would be added:\n\n${snippet}`);
  return changing(client, `Add this to it yourself:\n\n${snippet}`, async () => {
    const text = (await file.read()) ?? "";
    const result = withEntry(withoutMark(text), client, entry);
    if (!result.ok) throw new Error(result.problem);
    const isNew = byteOrderMark(text) + result.text !== text;
    const isFirst = !hasEntry(withoutMark(text), client);
    if (isNew) await file.write(byteOrderMark(text) + result.text, isFirst);
    const done = isFirst ? "Added to" : "Changed in";
    say(isNew ? `${done} ${title}: ${path}` : `${title} already has this server: ${path}`);
    if (isNew && isFirst && text !== "") say(`A backup of the original file is in ${file.backup}`);
    if (client.isShared)
      say(
        "The file belongs to the project and contains paths of this machine: review it before you share it.",
      );
    for (const { id } of entry.inputs) say(`${title} asks for ${id} when it first starts the server.`);
    return check(client, settings, {
      env: environmentOf(entry, await baseEnvironment(client, host.env), host.env),
      cwd: choosePlace(args).project ?? host.home,
      isKeyKnown: entry.inputs.length === 0,
    });
  });
}

async function showCommand(client: CommandClient, settings: Settings, { flags, host }: CommandArguments) {
  const { launch, env } = settings;
  const word = (text: string): string => shellWord(text, host.platform);
  // The value of a key is not shown: the shell puts it in.
  const referred = new Set(
    [...env].flatMap(([name, value]) => (value === undefined || isSecret(name, value) ? [name] : [])),
  );
  const reference = (name: string): string => (host.platform === "win32" ? `"%${name}%"` : `"$${name}"`);
  const variables = [...env].map(
    ([name, value = ""]) => `${name}=${referred.has(name) ? reference(name) : word(value)}`,
  );
  const started = [launch.command, ...launch.args, ...settings.flags].map(word);
  const line = [...client.add(variables), "--", ...started].join(" ");
  say(`${client.title} adds servers by itself. Run:\n\n  ${line}\n`);
  const unset = [...referred].filter((name) => !host.env[name]);
  if (unset.length > 0) say(`Before that, set ${unset.join(" and ")} in that shell.\n`);
  if (flags["print"] === true) return 0;
  const given = [...env].map(([name, value]) => [name, value ?? host.env[name]]);
  return check(client, settings, {
    env: { ...(await baseEnvironment(client, host.env)), ...Object.fromEntries(given) },
    cwd: host.home,
    isKeyKnown: true,
  });
}

/** The environment that a client passes on: that of its shell, or only the variables that every program needs. */
async function baseEnvironment(client: Client, shell: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  if (client.passesShell) return shell;
  const { getDefaultEnvironment } = await import("@modelcontextprotocol/client/stdio");
  return getDefaultEnvironment();
}

/** Runs `doctor` as the client will start the server: with its command, its arguments and its environment. */
async function check(
  client: Client,
  settings: Settings,
  { env, cwd, isKeyKnown }: { env: NodeJS.ProcessEnv; cwd: string; isKeyKnown: boolean },
): Promise<ExitCode> {
  const { launch } = settings;
  const folder = client.kind === "file" ? client.projectFolder : undefined;
  const flags = settings.flags.map((flag) => (flag === folder ? cwd : flag));
  say(`\nAs ${client.title} will start it:\n`);
  const words = ["doctor", ...(isKeyKnown ? [] : ["--offline"]), ...flags];
  const child = startChild(launch.command, [...launch.args, ...words], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const code = await printOutput(child).catch((error: unknown) =>
    complain(`${launch.command} cannot be started: ${errorMessage(error)}`),
  );
  if (code === 0) return say(`\nRestart ${client.title} to use it.`);
  const message = `${client.title} is configured, but the server can't start a run yet. Fix the items above, then run install again with --workspace DIR, --model VALUE or --env KEY.`;
  return complain(message);
}

/** Runs `work` on a client's file. A failure leaves the file unchanged and explains the next step. */
const changing = ({ file }: FileClient, instead: string, work: () => Promise<ExitCode>) =>
  work().catch((error: unknown) => complain(`${file} was left alone: ${errorMessage(error)}. ${instead}`));

/** The mark at the beginning of some files that were written on Windows. */
const byteOrderMark = (text: string): string => (text.startsWith("\uFEFF") ? "\uFEFF" : "");
const withoutMark = (text: string): string => text.slice(byteOrderMark(text).length);
