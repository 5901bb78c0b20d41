/** The MCP clients that the server can be installed in: where each keeps its servers, and in which form. */
import { existsSync, readdirSync } from "node:fs";
import { join, posix, win32 } from "node:path";
import type { HostFacts } from "../../config/paths.ts";
import type { Launch } from "../../config/program.ts";
import { orElse } from "../../core/errors.ts";
import { memberOf } from "../../core/unknown.ts";

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

/** Settings path of an application on this platform; `undefined` if unknown. */
function inApplicationFolder(host: HostFacts, ...path: string[]): string | undefined {
  const { home, platform, env } = host;
  if (platform === "darwin") return below(host, home, "Library", "Application Support", ...path);
  if (platform === "win32") return env["APPDATA"] && below(host, env["APPDATA"], ...path);
  return inConfigFolder(host, ...path);
}

/** The folder of programs that follow the XDG specification. */
const inConfigFolder = (host: HostFacts, ...path: string[]): string =>
  below(host, host.env["XDG_CONFIG_HOME"] ?? below(host, host.home, ".config"), ...path);

const plain = ({ command, args, env }: Start): object => ({ command, args, ...(env ? { env } : {}) });
const typed = (start: Start): object => ({ type: "stdio", ...plain(start) });
const referred = (name: string): string => `\${${name}}`;
const envFlags = (variables: readonly string[]): string[] => variables.flatMap((one) => ["--env", one]);

const WORKSPACE_FOLDER = "${workspaceFolder}";

const FILE = {
  kind: "file",
  format: "json",
  servers: () => ["mcpServers"],
  entry: plain,
  isShared: false,
  asksForKeys: false,
  passesShell: false,
} as const;

/**
 * Settings folder of Claude Desktop if it is installed as a Windows package, which cannot see the documented folder.
 * Since version 4 it has its own folder; older versions use the one that Windows substitutes for the documented one.
 */
function packagedClaude({ env }: HostFacts): string | undefined {
  const local = env["LOCALAPPDATA"];
  if (local === undefined) return undefined;
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

/** Finds the configuration of a client; `undefined` if it has none in this place or on this platform. */
const CLIENTS: Readonly<Record<string, (place: Place) => Client | undefined>> = {
  "claude-desktop": ({ host }) => {
    const packaged = host.platform === "win32" ? packagedClaude(host) : undefined;
    const name = "claude_desktop_config.json";
    const file = packaged ? below(host, packaged, name) : inApplicationFolder(host, "Claude", name);
    const docs = "https://modelcontextprotocol.io/docs/develop/connect-local-servers";
    return file === undefined ? undefined : { ...FILE, title: "Claude Desktop", docs, file };
  },
  "claude-code": ({ host, project }) => {
    const own = { title: "Claude Code", docs: "https://code.claude.com/docs/en/mcp", passesShell: true };
    if (project === undefined) {
      // Its --env takes several values, so that another option has to follow it.
      const scope = ["--scope", "user"];
      const start = ["claude", "mcp", "add"];
      const end = [...scope, "--transport", "stdio", NAME];
      const add = (variables: readonly string[]) => [...start, ...envFlags(variables), ...end];
      const file = below(host, host.env["CLAUDE_CONFIG_DIR"] || host.home, ".claude.json");
      return { kind: "command", ...own, add, file, remove: ["claude", "mcp", "remove", ...scope, NAME] };
    }
    // The client starts servers in the project's folder.
    const shared = { isShared: true, projectFolder: ".", reference: referred };
    return { ...FILE, ...own, ...shared, file: below(host, project, ".mcp.json"), entry: typed };
  },
  cursor: ({ host, project }) => {
    const file = below(host, project ?? host.home, ".cursor", "mcp.json");
    const reference = (name: string): string => `\${env:${name}}`;
    const own = { projectFolder: WORKSPACE_FOLDER, reference, isShared: true };
    const docs = "https://cursor.com/docs/context/mcp";
    return { ...FILE, title: "Cursor", docs, file, ...(project === undefined ? {} : own) };
  },
  vscode: ({ host, project }) => {
    const file =
      project === undefined
        ? inApplicationFolder(host, "Code", "User", "mcp.json")
        : below(host, project, ".vscode", "mcp.json");
    if (file === undefined) return undefined;
    const own = {
      servers: () => ["servers"],
      entry: typed,
      isShared: project !== undefined,
      asksForKeys: true,
    };
    const docs = "https://code.visualstudio.com/docs/agents/reference/mcp-configuration";
    return { ...FILE, ...own, title: "VS Code", docs, file, projectFolder: WORKSPACE_FOLDER };
  },
  windsurf: ({ host }) => ({
    ...FILE,
    title: "Windsurf",
    docs: "https://docs.windsurf.com/windsurf/cascade/mcp",
    file: below(host, host.home, ".codeium", "windsurf", "mcp_config.json"),
  }),
  // It takes comments, and keeps its file below `.config` on macOS, too.
  zed: ({ host }) => {
    const file =
      host.platform === "linux"
        ? inConfigFolder(host, "zed", "settings.json")
        : host.platform === "win32"
          ? inApplicationFolder(host, "Zed", "settings.json")
          : below(host, host.home, ".config", "zed", "settings.json");
    if (file === undefined) return undefined;
    const docs = "https://zed.dev/docs/ai/mcp";
    return { ...FILE, title: "Zed", docs, file, servers: () => ["context_servers"] };
  },
  // Version 2 nests its servers, and reads the entries of version 1; version 1 refuses those of version 2.
  opencode: ({ host, project }) => {
    const folder = project ?? inConfigFolder(host, "opencode");
    const withComments = below(host, folder, "opencode.jsonc");
    return {
      ...FILE,
      title: "opencode",
      docs: "https://opencode.ai/docs/mcp-servers",
      file: existsSync(withComments) ? withComments : below(host, folder, "opencode.json"),
      servers: (value) => {
        const servers = memberOf(memberOf(value, "mcp"), "servers");
        // It may also be a version 1 server of this name.
        const isServer = ["type", "command", "enabled"].some((name) => memberOf(servers, name));
        return servers === undefined || isServer ? ["mcp"] : ["mcp", "servers"];
      },
      entry: ({ command, args, env }, { length }) => ({
        type: "local",
        command: [command, ...args],
        ...(length === 1 ? { enabled: true } : {}),
        ...(env ? { environment: env } : {}),
      }),
      // It starts servers in the folder it works in.
      ...(project === undefined ? {} : { projectFolder: ".", isShared: true }),
      reference: (name) => `{env:${name}}`,
      passesShell: true,
    };
  },
  // Gemini CLI removes variables that look like keys from the environment of servers, unless the entry names them.
  gemini: ({ host, project }) => ({
    ...FILE,
    title: "Gemini CLI",
    docs: "https://geminicli.com/docs/tools/mcp-server",
    file: below(host, project ?? host.home, ".gemini", "settings.json"),
    // It starts servers in the folder it works in.
    ...(project === undefined ? {} : { projectFolder: ".", isShared: true }),
    reference: referred,
  }),
  codex: ({ host }) => ({
    ...FILE,
    title: "Codex",
    docs: "https://developers.openai.com/codex/mcp",
    file: below(host, host.env["CODEX_HOME"] || below(host, host.home, ".codex"), "config.toml"),
    format: "toml",
    servers: () => ["mcp_servers"],
    // A server that is not required is left out of the first turn if it does not answer within about a second.
    entry: ({ env, ...start }) => ({ ...start, required: true, ...(env && { env }) }),
  }),
  goose: ({ host }) => {
    const file =
      host.platform === "win32"
        ? inApplicationFolder(host, "Block", "goose", "config", "config.yaml")
        : below(host, host.home, ".config", "goose", "config.yaml");
    if (file === undefined) return undefined;
    return {
      ...FILE,
      title: "Goose",
      docs: "https://block.github.io/goose/docs/guides/config-files",
      file,
      format: "yaml",
      servers: () => ["extensions"],
      entry: ({ command, args, env = {} }) => ({
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
  },
  "lm-studio": ({ host }) => ({
    ...FILE,
    title: "LM Studio",
    docs: "https://lmstudio.ai/docs/app/mcp",
    file: below(host, host.home, ".lmstudio", "mcp.json"),
  }),
};

export const CLIENT_NAMES: readonly string[] = Object.keys(CLIENTS);

export function findClient(name: string, place: Place): Client | undefined {
  const ofProjects = ["claude-code", "cursor", "vscode", "opencode", "gemini"];
  if (place.project !== undefined && !ofProjects.includes(name)) return undefined;
  return Object.hasOwn(CLIENTS, name) ? CLIENTS[name]?.(place) : undefined;
}
