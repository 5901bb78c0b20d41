import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { PROVIDERS } from "../agent/models/choose.ts";
import { type HostFacts, defaultWorkspace, expandHome, folderProblem } from "../config/paths.ts";
import { programLaunch, quoted } from "../config/program.ts";
import { startChild } from "../core/child-process.ts";
import { errorMessage } from "../core/errors.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import {
  CLIENT_NAMES,
  type Client,
  type CommandClient,
  ConfigFile,
  type FileClient,
  NAME,
  type Place,
  type Settings,
  entryFor,
  entryIn,
  environmentOf,
  findClient,
  withEntry,
  withoutEntry,
  withoutSecrets,
} from "./install-files.ts";
import { complain } from "./local-runs.ts";

/** Adds the server to the configuration of MCP clients, or takes it out. */

/** Adds the server to a client's configuration, and checks that the client can start it. */
export async function runInstall(args: CommandArguments): Promise<ExitCode> {
  const { flags, host } = args;
  const place = placeOf(args);
  const client = clientOf(args, place);
  if (typeof client === "string") return complain(client, 2);
  const wanted = wishesOf(args);
  if (typeof wanted === "string") return complain(wanted, 2);
  const isFile = client.kind === "file";
  const folder = isFile ? client.projectFolder : undefined;
  const canAsk = process.stdin.isTTY && process.stdout.isTTY && flags["print"] !== true;
  const needsNoValue = isFile && (client.asksForKeys || client.reference !== undefined);
  const {
    workspace = folder,
    model,
    env,
  } = canAsk ? await askFor(wanted, { host, hasFolder: folder !== undefined, needsNoValue }) : wanted;
  const problem = workspace === undefined || workspace === folder ? undefined : folderProblem(workspace);
  if (problem !== undefined) return complain(`The workspace ${problem}.`, 2);
  const given = [
    ...(workspace === undefined ? [] : ["--workspace", workspace]),
    ...(model === undefined ? [] : ["--model", model]),
  ];
  const settings = { launch: programLaunch(), flags: given, env };
  return isFile ? installInFile(client, settings, args, place) : showCommand(client, settings, args);
}

/** Takes the server out of a client's configuration again. */
export async function runUninstall(args: CommandArguments): Promise<ExitCode> {
  const client = clientOf(args, placeOf(args));
  if (typeof client === "string") return complain(client, 2);
  if (client.kind === "command") {
    say(`${client.title} removes servers by itself. Run:\n\n  ${client.program} mcp remove ${NAME}`);
    return 0;
  }
  const file = new ConfigFile(client.file);
  return changing(client, "Take the server out of it yourself.", async () => {
    const text = await file.read();
    const entry = text === undefined ? undefined : entryIn(withoutMark(text), client);
    if (text === undefined || entry === undefined) {
      say(`${client.title} does not have this server: ${client.file}`);
      return 0;
    }
    const before = await file.readBackup();
    const installed = withEntry(withoutMark(before ?? ""), client, entry);
    // Nothing else was changed since, so the earlier file is restored, to the last byte.
    if (installed.ok && markOf(before ?? "") + installed.text === text) {
      await file.restore(before);
    } else {
      const result = withoutEntry(withoutMark(text), client);
      if (!result.ok) return complain(`${client.file} was left alone: ${result.problem}.`);
      await file.write(markOf(text) + result.text);
    }
    say(`Taken out of ${client.title}: ${client.file}`);
    return 0;
  });
}

/** With `--project`, the folder of the project. */
function placeOf({ flags, host }: CommandArguments): Place {
  return flags["project"] === true ? { host, project: host.cwd } : { host };
}

/** The client that was named, or what is wrong with the name. */
function clientOf({ positionals: [name] }: CommandArguments, place: Place): Client | string {
  const all = CLIENT_NAMES.join(", ");
  if (name === undefined) return `Say which client: ${all}.`;
  if (!CLIENT_NAMES.includes(name)) return `Unknown client "${name}". Known: ${all}.`;
  const missing =
    place.project === undefined
      ? "Its settings have no known place on this platform"
      : "It has no configuration for projects";
  return findClient(name, place) ?? `${missing}: ${name}.`;
}

function wishesOf({ flags, host }: CommandArguments): Wishes | string {
  const { workspace, model, env = [] } = flags;
  const variables = new Map<string, string | undefined>();
  for (const text of Array.isArray(env) ? env : []) {
    const [, name, value] = /^([A-Za-z_]\w*)(?:=([^]*))?$/.exec(text) ?? [];
    if (name === undefined) return "--env needs KEY or KEY=VALUE; a key has letters, digits and underscores.";
    variables.set(name, value);
  }
  return {
    ...(typeof workspace === "string"
      ? { workspace: resolve(host.cwd, expandHome(workspace, host.home)) }
      : {}),
    ...(typeof model === "string" ? { model } : {}),
    env: variables,
  };
}

async function installInFile(
  client: FileClient,
  settings: Settings,
  { flags, host }: CommandArguments,
  { project }: Place,
): Promise<ExitCode> {
  const { title, file: path, key } = client;
  const made = entryFor(client, settings, host.env);
  if (!made.ok) return complain(made.problem, 2);
  const { entry, inputs } = made;
  const snippet = JSON.stringify(
    { ...(inputs.length === 0 ? {} : { inputs }), [key]: { [NAME]: entry } },
    withoutSecrets,
    2,
  );
  if (flags["print"] === true) {
    say(`${title} reads ${path}. It would get:\n\n${snippet}`);
    return 0;
  }
  const file = new ConfigFile(path);
  return changing(client, `Add this to it yourself:\n\n${snippet}`, async () => {
    const text = (await file.read()) ?? "";
    const result = withEntry(withoutMark(text), client, made);
    if (!result.ok) throw new Error(result.problem);
    const isNew = markOf(text) + result.text !== text;
    if (isNew) await file.write(markOf(text) + result.text);
    say(isNew ? `Added to ${title}: ${path}` : `${title} has this server already: ${path}`);
    if (isNew && text !== "") say(`The file as it first was is in ${file.backup}`);
    if (client.isShared)
      say("The file belongs to the project and names this machine's paths: look at it before you share it.");
    for (const { id } of inputs) say(`${title} asks for ${id} when it first starts the server.`);
    return check(
      client,
      settings,
      environmentOf(made, await baseOf(client, host.env), host.env),
      project ?? host.home,
    );
  });
}

async function showCommand(
  client: CommandClient,
  settings: Settings,
  { flags, host }: CommandArguments,
): Promise<ExitCode> {
  const { launch, env } = settings;
  const word = (text: string): string => quoted(text, host.platform);
  const variables = [...env].map(
    ([name, value]) => `--env ${name}=${value === undefined ? `"$${name}"` : word(value)}`,
  );
  const started = [launch.command, ...launch.args, ...settings.flags].map(word);
  const line = [client.program, "mcp", "add", NAME, ...variables, "--", ...started].join(" ");
  say(`${client.title} adds servers by itself. Run:\n\n  ${line}\n`);
  if (flags["print"] === true) return 0;
  const given = [...env].map(([name, value]) => [name, value ?? host.env[name]]);
  return check(
    client,
    settings,
    { ...(await baseOf(client, host.env)), ...Object.fromEntries(given) },
    host.home,
  );
}

/** The environment a client hands on: that of the shell, or only the variables every program needs. */
async function baseOf({ handsOnShell }: Client, shell: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  if (handsOnShell) return shell;
  const { getDefaultEnvironment } = await import("@modelcontextprotocol/client/stdio");
  return getDefaultEnvironment();
}

/** Runs `doctor` as the client will start the server: with its command, its arguments and its environment. */
async function check(
  client: Client,
  settings: Settings,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Promise<ExitCode> {
  const { launch } = settings;
  const folder = client.kind === "file" ? client.projectFolder : undefined;
  const flags = settings.flags.map((flag) => (flag === folder ? cwd : flag));
  say(`\nAs ${client.title} will start it:\n`);
  const code = await new Promise<number | null>((done) => {
    const child = startChild(launch.command, [...launch.args, "doctor", ...flags], {
      cwd,
      env,
      stdio: ["ignore", "inherit", "inherit"],
    });
    child.once("error", ({ message }) => {
      complain(`${launch.command} cannot be started: ${message}`);
      done(null);
    });
    child.once("exit", done);
  });
  if (code === 0) {
    say(`\nRestart ${client.title} to use it.`);
    return 0;
  }
  return complain(
    `${client.title} cannot work with it yet. Give what is missing above and run install again: --workspace DIR, --model VALUE, --env KEY.`,
  );
}

/** Does `work` on a client's file. A failure leaves the file as it is and says what to do. */
async function changing(
  { file }: FileClient,
  instead: string,
  work: () => Promise<ExitCode>,
): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    return complain(`${file} was left alone: ${errorMessage(error)}. ${instead}`);
  }
}

/** The mark at the beginning of some files that were written on Windows. */
const markOf = (text: string): string => (text.startsWith("\uFEFF") ? "\uFEFF" : "");
const withoutMark = (text: string): string => text.slice(markOf(text).length);

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** What the person asked for, on the command line or at the terminal. */
export interface Wishes {
  workspace?: string;
  model?: string;
  env: Map<string, string | undefined>;
}

export interface Questions {
  host: HostFacts;
  /** Whether the client knows its folder by itself. */
  hasFolder: boolean;
  /** Whether the client asks for values itself, or refers to its environment. */
  needsNoValue: boolean;
}

const DEFAULT_KEY = "ANTHROPIC_API_KEY";
const KEYLESS = new Set(["offline", "client"]);

/** Asks at the terminal for what the command line did not say. An empty answer takes what is in brackets. */
export async function askFor(wishes: Wishes, { host, hasFolder, needsNoValue }: Questions): Promise<Wishes> {
  const { env } = wishes;
  const folder = defaultWorkspace(host);
  const workspace =
    wishes.workspace ??
    (hasFolder ? undefined : await ask(`Folder the agent works in [${folder ?? "none"}] › `, folder));
  const model =
    wishes.model ??
    (await ask("Model, as provider:model, offline or client [chosen by the key] › ", undefined));
  if (env.size === 0 && !KEYLESS.has(model ?? "")) {
    const usual = PROVIDERS[model?.split(":")[0] ?? ""]?.key ?? DEFAULT_KEY;
    const name = await ask(`Variable with the key of the model, or - for none [${usual}] › `, usual);
    if (name !== "-") {
      const hasValue = needsNoValue || Boolean(host.env[name ?? ""]);
      const value = hasValue
        ? undefined
        : await ask(`${name}, which is not shown [none] › `, undefined, true);
      if (hasValue || value !== undefined) env.set(name ?? usual, value);
    }
  }
  return {
    ...(workspace === undefined ? {} : { workspace }),
    ...(model === undefined ? {} : { model }),
    env,
  };
}

async function ask<Initial extends string | undefined>(
  question: string,
  initial: Initial,
  isHidden = false,
): Promise<string | Initial> {
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({
    input: process.stdin,
    output: isHidden ? nothing : process.stdout,
    terminal: true,
  });
  // After the interface has turned the terminal's own echo off.
  if (isHidden) process.stdout.write(question);
  const stop = new AbortController();
  lines.once("close", () => stop.abort());
  try {
    const answer = (await lines.question(isHidden ? "" : question, { signal: stop.signal })).trim();
    return answer === "" ? initial : answer;
  } finally {
    lines.close();
    if (isHidden) process.stdout.write("\n");
  }
}
