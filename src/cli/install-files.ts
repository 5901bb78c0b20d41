/** Where clients keep their configuration, and how an entry is made in it without changing anything else. */
import { constants } from "node:fs";
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Edit, type Node, applyEdits, createScanner, findNodeAtLocation } from "jsonc-parser";
import { parseJson } from "../config/load.ts";
import type { HostFacts } from "../config/paths.ts";
import type { Launch } from "../config/program.ts";
import { decodeUtf8 } from "../core/text.ts";

/** A client that keeps its servers in a JSON file. */
export interface FileClient {
  kind: "file";
  title: string;
  file: string;
  /** The member of the file that holds the servers. */
  key: "mcpServers" | "servers";
  /** Whether an entry has to name its transport. */
  isTyped: boolean;
  /** Whether the file belongs to a project, and so is likely to be shared. */
  isShared: boolean;
  /** The variable by which the file names the project's folder. */
  projectFolder?: string;
  /** How the file refers to a variable of the client's environment; absent: it cannot. */
  reference?: (name: string) => string;
  /** The client asks for values that the file names under `inputs`, and keeps them. */
  asksForKeys: boolean;
  /** Whether the client hands on the environment of the shell it was started from. */
  handsOnShell: boolean;
}

/** A client with a command of its own that adds and removes servers. */
export interface CommandClient {
  kind: "command";
  title: string;
  program: string;
  handsOnShell: boolean;
}

export type Client = FileClient | CommandClient;

/** Where a client is configured: for the user, or in the file of a project. */
export interface Place {
  host: HostFacts;
  /** Folder of the project. */
  project?: string;
}

/** Where an application keeps its settings on this platform; `undefined`: not known. */
function applicationFolder({ home, platform, env }: HostFacts): string | undefined {
  if (platform === "darwin") return join(home, "Library", "Application Support");
  if (platform === "win32") return env["APPDATA"];
  return env["XDG_CONFIG_HOME"] ?? join(home, ".config");
}

function inApplicationFolder(host: HostFacts, ...path: string[]): string | undefined {
  const folder = applicationFolder(host);
  return folder === undefined ? undefined : join(folder, ...path);
}

const FILE = {
  kind: "file",
  key: "mcpServers",
  isTyped: false,
  isShared: false,
  asksForKeys: false,
  handsOnShell: false,
} as const;

const WORKSPACE_FOLDER = "${workspaceFolder}";

/** Finds the configuration of a client; `undefined` if it has none in this place or on this platform. */
const CLIENTS: Readonly<Record<string, (place: Place) => Client | undefined>> = {
  "claude-desktop": ({ host, project }) => {
    const file = inApplicationFolder(host, "Claude", "claude_desktop_config.json");
    return file === undefined || project !== undefined
      ? undefined
      : { ...FILE, title: "Claude Desktop", file };
  },
  "claude-code": ({ project }) => {
    const title = "Claude Code";
    if (project === undefined) return { kind: "command", title, program: "claude", handsOnShell: true };
    const file = join(project, ".mcp.json");
    // The client starts servers in the project's folder.
    const own = { isShared: true, projectFolder: ".", reference: (name: string) => `\${${name}}` };
    return { ...FILE, ...own, title, file, isTyped: true, handsOnShell: true };
  },
  cursor: ({ host, project }) => {
    const file = join(project ?? host.home, ".cursor", "mcp.json");
    const own = { projectFolder: WORKSPACE_FOLDER, reference: (name: string) => `\${env:${name}}` };
    return { ...FILE, title: "Cursor", file, ...(project === undefined ? {} : { ...own, isShared: true }) };
  },
  vscode: ({ host, project }) => {
    const file =
      project === undefined
        ? inApplicationFolder(host, "Code", "User", "mcp.json")
        : join(project, ".vscode", "mcp.json");
    if (file === undefined) return undefined;
    const isShared = project !== undefined;
    const own = { key: "servers", isTyped: true, isShared, asksForKeys: true } as const;
    return { ...FILE, ...own, title: "VS Code", file, projectFolder: WORKSPACE_FOLDER };
  },
  windsurf: ({ host, project }) =>
    project === undefined
      ? { ...FILE, title: "Windsurf", file: join(host.home, ".codeium", "windsurf", "mcp_config.json") }
      : undefined,
  codex: ({ project }) =>
    project === undefined
      ? { kind: "command", title: "Codex", program: "codex", handsOnShell: false }
      : undefined,
};

export const CLIENT_NAMES: readonly string[] = Object.keys(CLIENTS);

export function findClient(name: string, place: Place): Client | undefined {
  return Object.hasOwn(CLIENTS, name) ? CLIENTS[name]?.(place) : undefined;
}

/** The name under which clients list this server. */
export const NAME = "deepagent";

/** The entry of this server, as a client needs it. */
export interface Settings {
  launch: Launch;
  /** Flags of the configuration. */
  flags: readonly string[];
  /** Variables for the server's environment; `undefined`: the value is in the environment or asked for. */
  env: ReadonlyMap<string, string | undefined>;
}

/** A question that the client asks its user once. */
interface Input {
  type: "promptString";
  id: string;
  description: string;
  password: true;
}

/** The member of a client's file, and the questions it refers to. */
export interface Entry {
  entry: { type?: "stdio"; command: string; args: string[]; env?: Record<string, string> };
  inputs: Input[];
}

/** The entry, or the reason why a variable cannot be in it. */
export type EntryOutcome = ({ ok: true } & Entry) | { ok: false; problem: string };

export function entryFor(
  client: FileClient,
  { launch, flags, env }: Settings,
  shell: Readonly<Record<string, string | undefined>>,
): EntryOutcome {
  const values: Record<string, string> = {};
  const inputs: Input[] = [];
  for (const [name, given] of env) {
    const id = `${NAME}-${name.toLowerCase().replaceAll("_", "-")}`;
    if (given !== undefined) {
      if (client.isShared && isSecret(name)) return { ok: false, problem: keyInProject(name, client) };
      values[name] = given;
    } else if (client.asksForKeys) {
      inputs.push({ type: "promptString", id, description: `${name} of deepagent-mcp`, password: true });
      values[name] = `\${input:${id}}`;
    } else if (client.reference) {
      values[name] = client.reference(name);
    } else {
      const value = shell[name];
      if (!value)
        return { ok: false, problem: `${name} is not set here. Set it, or use --env ${name}=VALUE.` };
      values[name] = value;
    }
  }
  const entry = {
    ...(client.isTyped ? { type: "stdio" as const } : {}),
    command: launch.command,
    args: [...launch.args, ...flags],
    ...(env.size === 0 ? {} : { env: values }),
  };
  return { ok: true, entry, inputs };
}

const isSecret = (name: string): boolean => /KEY|TOKEN|SECRET|PASS|CREDENTIAL/i.test(name);

/** For `JSON.stringify`: leaves out the values of keys, and keeps references to them. */
export const withoutSecrets = (name: string, value: unknown): unknown =>
  typeof value === "string" && isSecret(name) && !value.startsWith("${") ? "…" : value;

const keyInProject = (name: string, { file }: FileClient): string =>
  `The value of ${name} does not belong into ${file}, which is shared with the project. Use --env ${name}: the file then only refers to it.`;

/** A file's text with the server in it. */
export function withEntry(text: string, { key }: FileClient, { entry, inputs }: Entry): EditedJson {
  const same = JSON.stringify(valueAt(text, [key, NAME])) === JSON.stringify(entry);
  let result: EditedJson = same
    ? { ok: true, text }
    : setMember(text.trim() === "" ? "{}\n" : text, [key, NAME], entry);
  for (const input of inputs) {
    if (result.ok && indexOfInput(result.text, input.id) === -1)
      result = addElement(result.text, "inputs", input);
  }
  return result;
}

/** A file's text without the server, and without the questions that only it refers to. */
export function withoutEntry(text: string, { key }: FileClient): EditedJson {
  let result = removeAt(text, [key, NAME]);
  for (const { id } of ownInputs(text)) {
    if (result.ok) result = removeAt(result.text, ["inputs", indexOfInput(result.text, id)]);
  }
  return result;
}

/** The server as a file has it; `undefined`: it is not there. */
export function entryIn(text: string, { key }: FileClient): Entry | undefined {
  const entry = valueAt(text, [key, NAME]);
  // The entry is compared and written back as it was read, whatever its shape.
  return entry === undefined ? undefined : { entry: entry as Entry["entry"], inputs: ownInputs(text) };
}

const ownInputs = (text: string): Input[] =>
  // Only its id is looked at; the rest is compared and written back as it was read.
  (elements(text, "inputs") ?? []).filter((input): input is Input => idOf(input).startsWith(`${NAME}-`));

const indexOfInput = (text: string, id: string): number =>
  (elements(text, "inputs") ?? []).findIndex((input) => idOf(input) === id);

const idOf = (input: unknown): string =>
  typeof input === "object" && input !== null && "id" in input ? String(input.id) : "";

/** The environment that the client will give the server, as far as it can be known here. */
export function environmentOf(
  { entry }: Pick<Entry, "entry">,
  base: Readonly<Record<string, string | undefined>>,
  shell: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const known: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(base), ...Object.entries(entry.env ?? {})]) {
    const [, referred] = /^\$\{(?:env:)?(\w+)\}$/.exec(value ?? "") ?? [];
    const found = value?.startsWith("${input:")
      ? "asked for by the client"
      : referred
        ? shell[referred]
        : value;
    if (found !== undefined) known[name] = found;
  }
  return known;
}

/** An edited text, or why it cannot be edited. */
export type EditedJson = { ok: true; text: string } | { ok: false; problem: string };

type Path = readonly [string, ...string[]];

/** Sets the member at `path`. Everything else stays as it is, byte for byte, comments included. */
function setMember(text: string, path: Path, value: unknown): EditedJson {
  return edited(text, path, value, (root) => {
    let node = root;
    for (const [index, key] of path.entries()) {
      if (node.type !== "object") return undefined;
      const next = findNodeAtLocation(node, [key]);
      if (next === undefined) {
        const inner = path.slice(index + 1).reduceRight((below: unknown, name) => ({ [name]: below }), value);
        return addition(text, node, (indent) => `${JSON.stringify(key)}: ${layout(text, inner, indent)}`);
      }
      node = next;
    }
    const content = layout(text, value, indentOf(text, node.parent ?? node));
    return [{ offset: node.offset, length: node.length, content }];
  });
}

/** Adds an element to the list at `key`. Creates the list if it is missing. */
function addElement(text: string, key: string, value: unknown): EditedJson {
  const list = elements(text, key);
  if (list === undefined) return setMember(text, [key], [value]);
  return edited(text, [key], [...list, value], (root) => {
    const node = findNodeAtLocation(root, [key]);
    return node && addition(text, node, (indent) => layout(text, value, indent));
  });
}

/** The elements of the list at `key`. */
function elements(text: string, key: string): unknown[] | undefined {
  const value = valueAt(text, [key]);
  return Array.isArray(value) ? value : undefined;
}

/** Takes out the member or element at `path`, and the comma it needed. */
function removeAt(text: string, path: readonly [string, ...(string | number)[]]): EditedJson {
  const list = path.slice(0, -1);
  const index = path.at(-1);
  const before = valueAt(text, list);
  const after = Array.isArray(before) ? before.filter((_, place) => place !== index) : undefined;
  const checked = after === undefined ? path : list;
  return edited(text, checked, after, (root) => {
    const node = findNodeAtLocation(root, [...path]);
    return node && removal(text, node.parent?.type === "property" ? node.parent : node);
  });
}

/** The value at a path; `undefined`: there is none, or the text is no JSON. */
function valueAt(text: string, path: readonly (string | number)[]): unknown {
  const parsed = parseJson(text);
  let value = parsed.ok ? parsed.value : undefined;
  for (const key of path)
    value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return value;
}

/** Applies the edits, and takes the result only when a reader finds `value` at `path` and nothing else changed. */
function edited(
  text: string,
  path: readonly (string | number)[],
  value: unknown,
  edit: (root: Node) => Edit[] | undefined,
): EditedJson {
  const parsed = parseJson(text);
  if (!parsed.ok) return { ok: false, problem: `it is not valid JSON, ${parsed.place}` };
  if (parsed.root.type !== "object") return { ok: false, problem: "it does not hold a JSON object" };
  const edits = edit(parsed.root);
  if (edits === undefined) return { ok: false, problem: `its "${path[0]}" is not what clients write there` };
  const result = applyEdits(text, edits);
  return parseJson(result).ok && isDeepStrictEqual(plain(valueAt(result, path)), plain(value))
    ? { ok: true, text: result }
    : { ok: false, problem: `its "${path[0]}" is there twice` };
}

const plain = (value: unknown): unknown => (value === undefined ? value : JSON.parse(JSON.stringify(value)));

/** Adds an item after the last one of an object or list. A comment on the last item's line stays beside it. */
function addition(text: string, container: Node, body: (indent: string) => string): Edit[] | undefined {
  if (container.type !== "object" && container.type !== "array") return undefined;
  const last = container.children?.at(-1);
  const indent = indentOf(text, container);
  const item = `${eolOf(text)}${indent}${body(indent)}`;
  if (last === undefined) {
    const close = container.offset + container.length - 1;
    const isBlank = text.slice(container.offset + 1, close).trim() === "";
    const outer = `${eolOf(text)}${lineIndent(text, container.offset)}`;
    return isBlank
      ? [{ offset: container.offset + 1, length: close - container.offset - 1, content: item + outer }]
      : [{ offset: container.offset + 1, length: 0, content: item }];
  }
  const end = last.offset + last.length;
  const comma = commaAfter(text, end);
  const behind = comma === undefined ? end : comma + 1;
  const [comment = ""] = /^[ \t]*(?:\/\/.*|\/\*.*\*\/[ \t]*)?(?=\r?\n)/.exec(text.slice(behind)) ?? [];
  const place = behind + comment.trimEnd().length;
  if (comma !== undefined) return [{ offset: place, length: 0, content: `${item},` }];
  if (place === end) return [{ offset: end, length: 0, content: `,${item}` }];
  return [
    { offset: end, length: 0, content: "," },
    { offset: place, length: 0, content: item },
  ];
}

function removal(text: string, item: Node): Edit[] {
  const siblings = item.parent?.children ?? [];
  const previous = siblings[siblings.indexOf(item) - 1];
  const end = item.offset + item.length;
  const after = commaAfter(text, end);
  const comma = after ?? (previous && commaAfter(text, previous.offset + previous.length));
  const rest = text.slice(after === undefined ? end : after + 1);
  const before = text.slice(0, item.offset);
  // Keeps the line break after a line comment, which would swallow the following text.
  const filled = before.trimEnd();
  const isComment = filled.slice(filled.lastIndexOf("\n") + 1).includes("//");
  const keepsLine = isComment && before.includes("\n", filled.length) && !/^[ \t]*\r?\n/.test(rest);
  const start = keepsLine ? before.lastIndexOf("\n") + 1 : filled.length;
  const remove = { offset: start, length: end - start, content: "" };
  return comma === undefined ? [remove] : [remove, { offset: comma, length: 1, content: "" }];
}

function commaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const next = scanner.getTokenOffset();
  return text[next] === "," ? next : undefined;
}

const eolOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n");
const unitOf = (text: string): string => /^([ \t]+)["\]}]/m.exec(text)?.[1] ?? "  ";

/** The white space before the items of a container. */
function indentOf(text: string, container: Node): string {
  const last = container.children?.at(-1);
  const own = last && /(?:^|\n)([ \t]*)$/.exec(text.slice(0, last.offset))?.[1];
  return own ?? lineIndent(text, container.offset) + unitOf(text);
}

const lineIndent = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", offset - 1) + 1))?.[0] ?? "";

const layout = (text: string, value: unknown, indent: string): string =>
  JSON.stringify(value, null, unitOf(text)).replaceAll("\n", eolOf(text) + indent);

const NEW_FILE_MODE = 0o600;

/** A client's configuration file, behind the links that lead to it. */
export class ConfigFile {
  readonly path: string;
  /** Where the file is kept as it was before this program first changed it. */
  readonly backup: string;

  constructor(path: string) {
    this.path = path;
    this.backup = `${path}.before-deepagent`;
  }

  /** Reads the text; `undefined` when there is no file. Fails if it is not a text file. */
  read(): Promise<string | undefined> {
    return readText(this.path);
  }

  /** The text before the first change; `undefined`: there was no file, or it was never changed. */
  readBackup(): Promise<string | undefined> {
    return readText(this.backup);
  }

  /** Replaces the text at once. Links to it, its mode and the first copy of it stay as they are. */
  async write(text: string): Promise<void> {
    const target = await targetOf(this.path);
    await mkdir(dirname(target), { recursive: true });
    const mode = await stat(target).then((found) => found.mode & 0o7777, absent);
    if (mode !== undefined) await copyFile(target, this.backup, constants.COPYFILE_EXCL).catch(unlessThere);
    const draft = `${target}.${process.pid}.new`;
    try {
      await writeFile(draft, text, { mode: NEW_FILE_MODE, flag: "wx" });
      if (mode !== undefined) await chmod(draft, mode);
      await rename(draft, target);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** Puts back what was there before the first change: the text, or no file. */
  async restore(text: string | undefined): Promise<void> {
    if (text === undefined) return rm(await targetOf(this.path));
    await this.write(text);
    await rm(this.backup);
  }
}

async function readText(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(absent);
  if (found === undefined) return undefined;
  if (!found.isFile()) throw new Error("it is not a file");
  const text = decodeUtf8(await readFile(path));
  if (text === undefined) throw new Error("it is not a text in UTF-8");
  return text;
}

/** The file that links lead to, whether or not it is there yet. */
async function targetOf(path: string): Promise<string> {
  const found = await realpath(path).catch(absent);
  if (found !== undefined) return found;
  const link = await lstat(path).catch(absent);
  return link?.isSymbolicLink() ? resolve(dirname(path), await readlink(path)) : path;
}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;

function absent(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error;
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}
