/** Reads the configuration: defaults, file, environment and flags, and all problems at once. */
import { readFileSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { type Node, type ParseError, getNodeValue, parseTree } from "jsonc-parser";
import type { z } from "zod";
import { orElse } from "../core/errors.ts";
import { closestName } from "../core/options.ts";
import { plainProblem } from "../core/plain-problem.ts";
import { findServers } from "./mcp-servers.ts";
import { allowedFolders } from "./folders.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { shownName, variableText } from "../core/text.ts";
import { isRecord } from "../core/unknown.ts";
import {
  type HostFacts,
  compileCacheDir,
  defaultDataDir,
  defaultWorkspace,
  expandHome,
  folderProblem,
  wideFolder,
} from "./paths.ts";
import { type Config, ConfigSchema, knownKeys, profileDefaults } from "./schema.ts";
import { namedVariables } from "./sections.ts";
import { CONFIG_FILE_ENV, ENV_PREFIX, SETTINGS, type Setting, envName, flagName } from "./settings.ts";

/** Values of the command line by flag name, without dashes. */
export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface ConfigSources extends HostFacts {
  flags: FlagValues;
}

/** `problems`: one line each, with the setting as the person wrote it. */
export type LoadedConfig =
  | { ok: true; config: Config; warnings: string[] }
  | { ok: false; problems: string[] };

/**
 * Reads the configuration: defaults < profile < file (`--config`) < environment (`DEEPAGENT_*`) < flags.
 *
 * Relative paths are resolved against the current directory when they come from a flag; elsewhere they
 * are problems, because clients start servers in any directory. Values are never echoed, paths aside:
 * a key may stand where it does not belong.
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const draft = new Draft();
  readFile(draft, sources);
  const known = new Map(SETTINGS.map((setting) => [envName(setting), setting]));
  for (const [name, given = ""] of Object.entries(sources.env)) {
    if (!name.startsWith(ENV_PREFIX) || name === CONFIG_FILE_ENV) continue;
    const text = variableText(given);
    const setting = known.get(name);
    if (setting === undefined) {
      const meant = closestName(name, known.keys());
      const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
      draft.problems.push(`${name}: unknown setting in the environment${hint}`);
    } else if (text !== "")
      setConverted(draft, setting, setting.kind === "paths" ? text.split(delimiter) : text, name);
  }
  for (const setting of SETTINGS) {
    const value = sources.flags[flagName(setting)];
    if (value === undefined) continue;
    const absolute = (path: string) => resolve(sources.cwd, expandHome(path, sources.home));
    const isPath = setting.kind === "path" || setting.kind === "paths";
    setConverted(draft, setting, isPath ? ofTexts(value, absolute) : value, `--${flagName(setting)}`);
  }
  for (const { path, kind } of SETTINGS) {
    const value = draft.get(path);
    if (value === undefined || (kind !== "path" && kind !== "paths")) continue;
    const expanded = ofTexts(value, (text) => expandHome(text, sources.home));
    draft.set(path, expanded, draft.origin(path));
  }
  const profile = draft.get("profile");
  for (const [path, value] of profileDefaults(profile))
    draft.setDefault(path, value, `profile ${String(profile)}`);
  draft.setDefault("dataDir", defaultDataDir(sources));
  setDefaultWorkspace(draft, sources);
  const globalSkills = join(sources.home, ".deepagent/skills");
  if (folderProblem(globalSkills) === undefined) draft.setDefault("globalSkills", globalSkills);
  for (const [path, folder] of listFolders(draft, ["workspace", "skills", "globalSkills"])) {
    const problem = folderProblem(folder);
    if (problem !== undefined) draft.problems.push(draft.describe(path, problem));
  }
  const own = ownFolders(draft, sources);

  const parsed = ConfigSchema.safeParse(draft.values, { error: plainProblem });
  if (!parsed.success)
    draft.problems.push(...describeIssues(parsed.error.issues, (path, text) => draft.describe(path, text)));
  for (const [setting, variable] of parsed.success ? namedVariables(parsed.data) : []) {
    if (!sources.env[variable])
      draft.problems.push(`${setting}: the environment variable ${variable} is not set`);
  }
  if (draft.get("storageS3") !== undefined && draft.get("storage") === undefined)
    draft.problems.push("storageS3: needs the setting storage, the address of a Postgres");
  if (!parsed.success || draft.problems.length > 0) return { ok: false, problems: draft.problems };
  const privatePaths = [...own, ...(draft.configFile === undefined ? [] : [draft.configFile])];
  const noWorkspace = `No workspace: ${wideFolder(sources)}. Choose a folder with --workspace DIR or DEEPAGENT_WORKSPACE; until then no run is started.`;
  const isMissing = parsed.data.workspace === undefined && parsed.data.folders.length === 0;
  const warnings = isMissing ? [noWorkspace] : [];
  placeServerPaths(parsed.data, draft.configFile, sources);
  const home = parsed.data.homeFiles ? { homeFolder: realPath(sources.home) } : {};
  return { ok: true, config: { ...parsed.data, privatePaths, ...home }, warnings };
}

/** The current directory, unless it is too wide or the setting `folders` lists others. */
function setDefaultWorkspace(draft: Draft, sources: ConfigSources): void {
  if (draft.get("workspace") !== undefined) return;
  const workspace = defaultWorkspace(sources);
  const patterns = listFolders(draft, ["folders"]).map(([, pattern]) => pattern);
  const isListed = patterns.length === 0 || allowedFolders(patterns).some(({ path }) => path === workspace);
  if (workspace !== undefined && isListed) draft.setDefault("workspace", workspace);
}

/** Paths of servers are relative to the file, unless they begin with a variable. */
function placeServerPaths({ mcpServers }: Config, file: string | undefined, { home }: ConfigSources): void {
  const place = (path: string | undefined): string | undefined =>
    path === undefined || file === undefined || /^[$%{]/.test(path)
      ? path
      : resolve(dirname(file), expandHome(path, home));
  for (const server of Object.values(mcpServers))
    if ("command" in server)
      Object.assign(server, { cwd: place(server.cwd), envFile: place(server.envFile) });
}

/** Values as collected so far, each with where it came from. */
class Draft {
  values: Record<string, unknown> = {};
  readonly problems: string[] = [];
  /** Path of the file, unresolved; the file may not exist. */
  configFile: string | undefined;
  readonly #origins = new Map<string, string>();

  set(path: string, value: unknown, origin: string): void {
    const keys = path.split(".");
    const last = keys.pop() ?? path;
    let target = this.values;
    for (const key of keys) {
      const next = (target[key] ??= {});
      // A scalar from the file where a group belongs: the schema reports it.
      if (!isRecord(next)) return;
      target = next;
    }
    target[last] = value;
    this.#origins.set(path, origin);
  }

  get(path: string): unknown {
    let value: unknown = this.values;
    for (const key of path.split(".")) value = isRecord(value) ? value[key] : undefined;
    return value;
  }

  setDefault(path: string, value: unknown, origin = "default"): void {
    if (this.get(path) === undefined) this.set(path, value, origin);
  }

  /** Returns the origin of the setting at `path`, or of the group around it. */
  origin(path: string): string {
    for (let known = path; known !== ""; known = known.slice(0, Math.max(known.lastIndexOf("."), 0))) {
      const origin = this.#origins.get(known);
      if (origin !== undefined) return origin;
    }
    return this.configFile === undefined ? "" : `config file ${this.configFile}`;
  }

  /** Describes a problem of a setting, which it names by its flag, its variable or its path. */
  describe(path: string, text: string): string {
    const origin = this.origin(path.split("[", 1).join());
    if (origin.startsWith("--") || origin.startsWith(ENV_PREFIX)) return `${origin}: ${text}`;
    return origin === "" ? `${path}: ${text}` : `${path}: ${text} (from ${origin})`;
  }
}

function readFile(draft: Draft, sources: ConfigSources): void {
  const flag = sources.flags["config"];
  const fromFlag = typeof flag === "string";
  const given = fromFlag ? flag : variableText(sources.env[CONFIG_FILE_ENV] ?? "");
  if (given === "") return;
  const origin = fromFlag ? "--config" : CONFIG_FILE_ENV;
  const path = resolve(sources.cwd, expandHome(given, sources.home));
  draft.configFile = path;
  const refuse = (problem: string) => draft.problems.push(`${origin}: the file ${path} ${problem}`);
  // Without its byte order mark. Windows PowerShell writes UTF-16.
  const text = orElse(() => {
    const bytes = readFileSync(path);
    return new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8").decode(bytes);
  }, undefined);
  if (text === undefined) return void refuse("cannot be read");
  if (text.length > MAX_FILE) return void refuse(`has more than ${MAX_FILE} characters`);
  if (text.trim() === "") return void refuse("is empty; {} means no settings");
  const parsed = parseJson(text);
  if (!parsed.ok) return void refuse(`is not valid JSON, ${parsed.place}`);
  const file = parsed.value;
  if (!isRecord(file)) return void refuse("must hold one JSON object");
  // A file of another program that has servers, and no setting of ours.
  const isOurs = knownKeys([]).some((key) => key !== "$schema" && Object.hasOwn(file, key));
  const servers = isOurs ? undefined : findServers(file);
  draft.values = servers === undefined ? file : { mcpServers: servers };
}

/** Longest configuration file, in characters. A larger one is another file, and takes long to parse. */
const MAX_FILE = 1_000_000;

/** A text, or each text of a list, as `change` makes it; other values as they are. */
function ofTexts(value: unknown, change: (text: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => ofTexts(each, change));
  return typeof value === "string" ? change(value) : value;
}

/** Sets a value in the form of its setting, or notes that it has another form. */
function setConverted(draft: Draft, { kind, path }: Setting, value: unknown, origin: string): void {
  let converted = value;
  if (kind === "list")
    converted = [value].flat().flatMap((text) =>
      String(text)
        .split(",")
        .map((part) => part.trim()),
    );
  else if (typeof value === "string" && kind === "number") {
    const number = value.trim() === "" ? Number.NaN : Number(value);
    converted = Number.isFinite(number) ? number : undefined;
  } else if (typeof value === "string" && kind === "boolean") {
    const isOff = /^(false|0|no|off)$/i.test(value);
    converted = /^(true|1|yes|on)$/i.test(value) || (isOff ? false : undefined);
  }
  if (converted !== undefined) draft.set(path, converted, origin);
  else draft.problems.push(`${origin}: must be ${kind === "number" ? "a number" : "true or false"}`);
}

/** Returns the folders in which this program keeps its own files. Agents see nothing in them. */
function ownFolders(draft: Draft, sources: ConfigSources): string[] {
  const dataDir = draft.get("dataDir");
  const own = [compileCacheDir(sources), ...(typeof dataDir === "string" ? [dataDir] : [])];
  for (const [path, folder] of listFolders(draft, [
    "workspace",
    "skills",
    "globalSkills",
    "execute.readOnly",
  ])) {
    const around = own.find((one) => isInside(realPath(one), realPath(folder)));
    if (around === undefined) continue;
    const problem = `${folder} is the folder in which this program keeps its data, or lies inside it; choose another one, or another --data-dir than ${around}`;
    draft.problems.push(draft.describe(path, problem));
  }
  return own;
}

/** Absolute folders of some settings, with where each stands. */
function listFolders(draft: Draft, settings: readonly string[]): [path: string, folder: string][] {
  const found = settings.flatMap((setting): [string, unknown][] => {
    const value = draft.get(setting);
    if (!Array.isArray(value)) return [[setting, value]];
    return value.map((folder: unknown, index) => [`${setting}[${index}]`, folder]);
  });
  return found.filter(
    (entry): entry is [string, string] => typeof entry[1] === "string" && isAbsolute(entry[1]),
  );
}

/** A JSON text with comments and trailing commas: its value and its tree, or where it is broken. */
export type ParsedJson = { ok: true; value: unknown; root: Node } | { ok: false; place: string };

/** Never quotes the text: a secret may stand where it is broken. */
export function parseJson(text: string): ParsedJson {
  const errors: ParseError[] = [];
  try {
    const root = parseTree(text, errors, { allowTrailingComma: true });
    const [first] = errors;
    if (root !== undefined && first === undefined) return { ok: true, value: getNodeValue(root), root };
    const before = text.slice(0, first?.offset ?? 0).split("\n");
    return { ok: false, place: `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}` };
  } catch {
    // The parser is recursive: a text that is nested too deeply exhausts the stack.
    return { ok: false, place: "nested too deeply" };
  }
}

/** Only the first problem of a setting is described: a value of the wrong kind also fails later checks. */
function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  describe: (path: string, problem: string) => string,
): string[] {
  const seen = new Set<string>();
  return issues.flatMap((issue) => {
    const path = issue.path.reduce<string>((text, key) => {
      if (typeof key === "number") return `${text}[${key}]`;
      return text === "" ? String(key) : `${text}.${String(key)}`;
    }, "");
    if (issue.code === "unrecognized_keys") {
      const known = knownKeys(issue.path);
      const shown = issue.keys.slice(0, 20).map((key) => {
        const full = path === "" ? key : `${path}.${key}`;
        const meant = closestName(shownName(key), known);
        return describe(
          shownName(full),
          `unknown setting${meant === undefined ? "" : `; did you mean ${meant}?`}`,
        );
      });
      const more = issue.keys.length - shown.length;
      return more > 0 ? [...shown, `${path || "configuration"}: ${more} more unknown settings`] : shown;
    }
    if (seen.has(path)) return [];
    seen.add(path);
    return [describe(path === "" ? "configuration" : path, issue.message)];
  });
}
