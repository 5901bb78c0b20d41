/** The MCP clients of `clients.json`: where each keeps its servers, and in which form. */
import { existsSync, readdirSync } from "node:fs";
import { join, posix, win32 } from "node:path";
import type { HostFacts } from "../../config/paths.ts";
import type { Launch } from "../../config/program.ts";
import { orElse } from "../../core/errors.ts";
import { memberOf, defined } from "../../core/unknown.ts";
import table from "./clients.json" with { type: "json" };

/** The name under which clients list this server. */
export const NAME = "deepagent";

export interface FileClient {
  kind: "file";
  title: string;
  /** Page of its documentation that describes the file and an entry in it. */
  docs: string;
  file: string;
  format: "json" | "yaml" | "toml";
  /** Returns the path of members that leads to its servers. Some clients have two forms, and the text shows which. */
  servers: (value: unknown) => readonly string[];
  entry: (start: Start, servers: readonly string[]) => object;
  /** True if the file belongs to a project, and so is likely to be shared. */
  isShared: boolean;
  /** The variable by which the file names the project's folder. */
  projectFolder?: string;
  /** Writes a reference to a variable of the client's environment; absent if the file cannot have one. */
  reference?: (name: string) => string;
  /** The client asks for values that the file names under `inputs`, and keeps them. */
  asksForKeys: boolean;
  passesShell: boolean;
}

/** A client with a command of its own that adds and removes servers. */
export interface CommandClient {
  kind: "command";
  title: string;
  docs: string;
  /** The words before the server's own command. `variables`: `NAME=VALUE` as a shell reads them. */
  add: (variables: readonly string[]) => string[];
  file: string;
  remove: readonly string[];
  passesShell: boolean;
}

export type Client = FileClient | CommandClient;

/** Command and environment with which a client starts the server. */
interface Start extends Launch {
  env?: Readonly<Record<string, string>>;
}

/** Scope of a client's configuration: the user, or a project. */
export interface Place {
  host: HostFacts;
  project?: string;
}

/** Joins as the platform does that is meant, which is not always this one. */
const below = (host: HostFacts, ...path: [string, ...string[]]): string =>
  (host.platform === "win32" ? win32 : posix).join(...path);

interface Row extends Partial<Pick<FileClient, "format" | "projectFolder" | "asksForKeys" | "passesShell">> {
  title: string;
  docs: string;
  /** The members that lead to its servers. Default: `mcpServers`. */
  servers?: readonly string[];
  /** Form of its entries. Default: `plain`. */
  entry?: keyof typeof ENTRIES;
  /** A reference to the variable `NAME`. */
  reference?: string;
  /** Its file in a project, by platform, in an installed package, or anywhere else. A path begins with a root. */
  files: Readonly<Record<string, string | undefined>>;
  /** Facts that differ in a project. */
  inProject?: Partial<Pick<Row, "projectFolder" | "reference">>;
  /** Its own command, used outside of projects. */
  command?: { file: string; add: string; end: string; remove: string };
}

const CLIENTS = table as Readonly<Record<string, Row>>; // the words of the table are those of `Row`

const plain = ({ command, args, env }: Start): object => ({ command, args, ...(env ? { env } : {}) });

const ENTRIES = {
  plain,
  typed: (start: Start) => ({ type: "stdio", ...plain(start) }),
  opencode: ({ command, args, env }: Start, { length }: readonly string[]) => ({
    type: "local",
    command: [command, ...args],
    ...(length === 1 ? { enabled: true } : {}),
    ...(env ? { environment: env } : {}),
  }),
  // A server that is not required is left out of the first turn if it does not answer within about a second.
  codex: ({ env, ...start }: Start) => ({ ...start, required: true, ...(env && { env }) }),
  goose: ({ command, args, env = {} }: Start) => ({
    type: "stdio",
    name: NAME,
    description: "Durable deep agent",
    enabled: true,
    cmd: command,
    args,
    envs: env,
    env_keys: [],
    // Its own default, which its forms write, too.
    timeout: 300,
  }),
};

/** The folders at which paths of the table begin. `app`: settings of applications, `config`: the XDG specification. */
const ROOTS: Readonly<Record<string, (place: Place) => string | undefined>> = {
  project: ({ project }) => project,
  home: ({ host }) => host.home,
  config: ({ host }) => host.env["XDG_CONFIG_HOME"] ?? below(host, host.home, ".config"),
  app: ({ host }) => {
    if (host.platform === "darwin") return below(host, host.home, "Library", "Application Support");
    return host.platform === "win32" ? host.env["APPDATA"] : ROOTS["config"]?.({ host });
  },
  claude: ({ host }) => host.env["CLAUDE_CONFIG_DIR"] || host.home,
  codex: ({ host }) => host.env["CODEX_HOME"] || below(host, host.home, ".codex"),
  package: ({ host }) => packagedClaude(host),
};

/** Finds a file of the table; `undefined` if its root is not known here. */
function located(place: Place, path = ""): string | undefined {
  const [root = "", ...names] = path.split("/");
  const folder = ROOTS[root]?.(place);
  return folder && below(place.host, folder, ...names);
}

/**
 * Settings folder of Claude Desktop if it is installed as a Windows package, which cannot see the documented folder.
 * Since version 4 it has its own folder; older versions use the one that Windows substitutes for the documented one.
 */
function packagedClaude({ env, platform }: HostFacts): string | undefined {
  const local = env["LOCALAPPDATA"];
  if (local === undefined || platform !== "win32") return undefined;
  const foldersLike = (parent: string, name: RegExp): string[] =>
    orElse(() => readdirSync(join(local, parent)), [])
      .filter((entry) => name.test(entry))
      .map((entry) => join(local, parent, entry));
  const packages = foldersLike("Packages", /^claude_/i);
  return [
    ...foldersLike("Claude-Data", /^claude(?:_|$)/i),
    ...packages.map((folder) => join(folder, "LocalCache", "Roaming", "Claude")),
  ].find((folder) => existsSync(folder));
}

export const CLIENT_NAMES: readonly string[] = Object.keys(CLIENTS);

/** Finds the configuration of a client; `undefined` if it has none in this place or on this platform. */
export function findClient(name: string, place: Place): Client | undefined {
  const row = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (row === undefined) return undefined;
  const { host, project } = place;
  const { title, docs, passesShell = false, command, files } = row;
  if (command !== undefined && project === undefined)
    return {
      kind: "command",
      title,
      docs,
      passesShell,
      file: located(place, command.file) ?? "",
      // Its --env takes several values, so that another option has to follow it.
      add: (variables) => [
        ...command.add.split(" "),
        ...variables.flatMap((one) => ["--env", one]),
        ...command.end.split(" "),
      ],
      remove: command.remove.split(" "),
    };
  const file =
    project === undefined
      ? (located(place, files["packaged"]) ?? located(place, files[host.platform] ?? files["all"]))
      : located(place, files["project"]);
  if (file === undefined) return undefined;
  const {
    reference,
    projectFolder,
    entry,
    servers = ["mcpServers"],
    format = "json",
    asksForKeys = false,
  } = { ...row, ...(project === undefined ? {} : row.inProject) };
  const isOpencode = name === "opencode";
  return {
    kind: "file",
    title,
    docs,
    // It also reads a file with comments.
    file: isOpencode && existsSync(`${file}c`) ? `${file}c` : file,
    format,
    // Version 2 nests its servers, and reads the entries of version 1; version 1 refuses those of version 2.
    servers: (value) => {
      const nested = memberOf(memberOf(value, "mcp"), "servers");
      // It may also be a version 1 server of this name.
      const isServer = ["type", "command", "enabled"].some((member) => memberOf(nested, member));
      return isOpencode && (nested === undefined || isServer) ? ["mcp"] : servers;
    },
    entry: ENTRIES[entry ?? "plain"],
    isShared: project !== undefined,
    ...defined({ projectFolder }),
    ...(reference && { reference: (variable) => reference.replace("NAME", variable) }),
    asksForKeys,
    passesShell,
  };
}
