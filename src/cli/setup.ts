/** Finds the facts that `init` and `install` share: the folder, the model, its key and the place for the key. */
import { dirname, resolve } from "node:path";
import { KEY_NAMES, OFFLINE, resolveConnection, modelChoice, variable } from "../agent/models/choose.ts";
import { type HostFacts, expandHome, folderProblem, wideFolder } from "../config/paths.ts";
import { commandLine } from "../config/program.ts";
import { keepSecret, readSecret, secretProblem } from "../core/keychain.ts";
import { isInside, realPath } from "../core/real-path.ts";
import type { Client, FileClient } from "./clients/catalogue.ts";
import type { ExitCode } from "./command.ts";
import { keyPlace, modelsHere, repositoryAround, workspaceHere } from "./first-look.ts";
import { type Choice, askModel, choose, keyOf } from "./init-questions.ts";
import { complain } from "./output.ts";
import { type Asker, terminalAsker } from "./terminal/asker.ts";
import { Keyboard } from "./terminal/keyboard.ts";
import { colorsFor, wrapText } from "./terminal/text.ts";

/** The reason why nothing can be set up as requested. */
export class Refusal extends Error {
  readonly code: 1 | 2;

  constructor(message: string, code: 1 | 2 = 2) {
    super(message);
    this.code = code;
  }
}

/** Does `work`, and writes why it was refused. */
export async function orRefusal(work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal) return complain(error.message, error.code);
    throw error;
  }
}

export const hasTerminal = (): boolean => process.stdin.isTTY && process.stdout.isTTY;

/** Asks at the terminal. Rejects with `Refusal` when the person ends a question. */
export async function atTerminal<Answer>(ask: (asker: Asker) => Promise<Answer>): Promise<Answer> {
  const keyboard = new Keyboard();
  let isInterrupted = false;
  const interrupted = (): void => void (isInterrupted = true);
  const asker = terminalAsker(colorsFor(process.stdout, process.env), keyboard, interrupted);
  // Keys that are pressed while nothing is asked are not shown.
  const letGo = keyboard.take({});
  try {
    return await ask(asker);
  } catch (error) {
    throw isInterrupted ? new Refusal("Nothing was written.", 1) : error;
  } finally {
    letGo();
  }
}

/** Asks for the folder to work in. `step`: prefix of the question. */
export async function workspaceOf(host: HostFacts, asker: Asker | undefined, step = ""): Promise<string> {
  const folder = workspaceHere(host);
  if (asker === undefined) {
    if (folder !== undefined) return folder;
    throw new Refusal(`${wideFolder(host)}. Choose a folder with --workspace DIR.`);
  }
  const { bold, yellow } = asker.colors;
  if (folder === undefined) asker.print(`\n${yellow(`${wideFolder(host)}.`)}`);
  for (;;) {
    const title = wrapText(`${step}Which folder should the agent work in?`, asker.size().columns - 1);
    asker.print(["", ...title.map(bold), ...(folder === undefined ? [] : [`  ${folder}`])].join("\n"));
    const how = folder === undefined ? "Path › " : "Enter to use it, or another path › ";
    let path = "";
    while (path === "") path = (await asker.line(how)).trim() || (folder ?? "");
    const answer = resolve(host.cwd, expandHome(path, host.home));
    const problem = folderProblem(answer);
    if (problem === undefined) return answer;
    asker.print(yellow(`${problem}.`));
  }
}

/** Asks for the model to work with. `step`: prefix of the question. */
export async function modelOf(host: HostFacts, asker: Asker | undefined, step = ""): Promise<string> {
  const models = await modelsHere(host);
  if (asker !== undefined) return askModel(models, { asker, env: host.env, step });
  const found = models.find(({ from }) => from !== undefined);
  if (found !== undefined) return found.spec;
  const keys = models.map(({ key }) => key).join(" nor ");
  throw new Refusal(`Neither ${keys} is set. Set one, or choose a model: --model ${OFFLINE} needs no key.`);
}

export const KEY_PLACES = ["client", "keychain", "environment"] as const;
type Place = (typeof KEY_PLACES)[number];

/** The key of the model, and where it goes. */
export interface Key {
  name: string;
  place: Place;
  /** Absent: it is where it shall be. */
  value?: string;
}

interface KeyFacts {
  host: HostFacts;
  /** Absent: nobody is asked. */
  asker: Asker | undefined;
  client: Client;
  /** Absent: the client knows it by itself. */
  workspace: string | undefined;
  place?: Place | undefined;
}

/** Finds the key of the model and its place; `undefined` if it needs none, or the person does not have it. */
export async function findKey(model: string, facts: KeyFacts): Promise<Key | undefined> {
  const { host, asker, client, place } = facts;
  const name = keyOf(model, host.env);
  if (name === undefined) return undefined;
  if ((await keyPlace(name, host)) === "keychain") return { name, place: "keychain" };
  const set = variable(host.env, name);
  const { choices, refused } = await placesFor(name, facts);
  if (place === "client" && refused !== undefined) throw new Refusal(refused);
  if (place === undefined && choices.length === 0) {
    const message = `${client.title} has no safe place for ${name}, and this system has no keychain for it: set it in the environment of ${client.title}.`;
    if (asker === undefined && set !== undefined) throw new Refusal(message);
    asker?.print(`\n${asker.colors.yellow(message)}`);
    return { name, place: "environment" };
  }
  if (refused !== undefined) asker?.print(`\n${asker.colors.yellow(refused)}`);
  const isAsked = client.kind === "file" && client.asksForKeys;
  const without = isAsked ? `to let ${client.title} ask for it` : "for none";
  const value = set ?? (asker && (await askKey(name, without, asker)));
  if (value === undefined) return isAsked ? { name, place: "client" } : undefined;
  const title = `Where should ${name} be stored?`;
  const chosen =
    place ?? (asker && choices.length > 1 ? await choose({ title, choices }, asker) : choices[0]?.value);
  return { name, value, place: chosen ?? "environment" };
}

/** Asks until the input can be a key. `without`: effect of Enter, which leaves the key unset. */
export async function askKey(name: string, without: string, asker: Asker): Promise<string | undefined> {
  for (;;) {
    const typed = (await asker.secret(`${name} (not shown), or Enter ${without} › `)).trim();
    const problem = typed === "" ? undefined : secretProblem(typed);
    if (problem === undefined) return typed || undefined;
    asker.print(asker.colors.yellow(problem));
  }
}

/** Lists the places for the key, the best first, and the reason why the client's configuration is not one. */
async function placesFor(
  name: string,
  { host, client, workspace }: KeyFacts,
): Promise<{ choices: Choice<Place>[]; refused: string | undefined }> {
  const { title } = client;
  const isFile = client.kind === "file";
  const where = isFile && !client.asksForKeys ? exposure(client, workspace) : undefined;
  const isSet = variable(host.env, name) !== undefined;
  const choices: Choice<Place>[] = [];
  if ((await readSecret(name, host)).ok)
    choices.push({
      value: "keychain",
      label: "keychain",
      note: "of this system; the server reads it from there",
    });
  if (isFile && where === undefined) {
    const note = client.asksForKeys ? `${title} asks for it and stores it` : client.file;
    choices.push({ value: "client", label: title, note });
  }
  if (isSet && (client.passesShell || (isFile && client.reference !== undefined)))
    choices.push({ value: "environment", label: "environment", note: `${title} passes it to the server` });
  if (isSet && !isFile)
    choices.push({ value: "client", label: title, note: "its command copies it from the environment" });
  const refused =
    where && `${where}, where a key does not belong: store it in the keychain or the environment.`;
  return { choices, refused };
}

/** Names the reason why a client's file must not contain a key; `undefined` if it may. */
function exposure({ file, isShared }: FileClient, workspace: string | undefined): string | undefined {
  const path = realPath(file);
  const repository = repositoryAround(dirname(path));
  const where = isShared
    ? "shared with the project"
    : workspace !== undefined && isInside(realPath(workspace), path)
      ? "in the folder the agent works in"
      : repository && `in the git repository ${repository}`;
  return where && `${file} is ${where}`;
}

/** Why the value of a key may not be written into a client's file, and what to do instead. */
export function exposedKey(
  name: string,
  client: FileClient,
  { workspace, host }: { workspace: string | undefined; host: HostFacts },
): string | undefined {
  const where = exposure(client, workspace);
  const instead = client.asksForKeys
    ? `Use --env ${name}: ${client.title} then asks for it and stores it.`
    : client.reference !== undefined
      ? `Use --env ${name}: the file then only refers to it.`
      : KEY_NAMES.includes(name)
        ? `Leave it out, and store it in the keychain: ${commandLine(host, ["keys", "set", name])}`
        : `Leave it out, and set it in the environment of ${client.title}.`;
  return where && `${where}, where the value of ${name} does not belong. ${instead}`;
}

/** The key as a variable of the client's entry; without a value the client has it, or refers to it. */
export function variableOf(key: Key | undefined, client: Client): [string, string | undefined][] {
  if (key === undefined || key.place === "keychain") return [];
  const { name, place, value } = key;
  if (client.kind === "command") return place === "client" ? [[name, undefined]] : [];
  if (place === "environment") return client.reference === undefined ? [] : [[name, undefined]];
  return [[name, client.asksForKeys ? undefined : value]];
}

/** The variables with the provider's address that are set here, if the client would not pass them to the server. */
export function addressOf(model: string, { passesShell }: Client, { env }: HostFacts): [string, string][] {
  const key = keyOf(model, env);
  // The key may be one that is stored or asked for later.
  const known = key === undefined ? env : { ...env, [key]: "set" };
  const choice = modelChoice({ model, env: known, lendable: true });
  const isPassed = !choice.ok || passesShell || choice.provider === choice.spec;
  if (isPassed) return [];
  const { from, parts } = resolveConnection(choice.provider, env);
  return (from === undefined ? parts : [from]).map((name) => [name, variable(env, name) ?? ""]);
}

/** Puts a key that goes into the keychain there. Throws `Refusal` if that fails. */
export async function keepKey(key: Key | undefined, host: HostFacts): Promise<void> {
  if (key?.place !== "keychain" || key.value === undefined) return;
  const problem = await keepSecret(key.name, key.value, host);
  if (problem === undefined) return;
  throw new Refusal(`${problem} Nothing was written; choose another place for the key.`, 1);
}
