import { join } from "node:path";
import type { HostFacts } from "../config/paths.ts";

/** A client that keeps its servers in a JSON file. */
export interface FileClient {
  kind: "file";
  title: string;
  file: string;
  /** The member of the file that holds the servers. */
  key: "mcpServers" | "servers";
  /** Whether an entry names its transport. */
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

/** `undefined`: not in this place, or not on this platform. */
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
    // It starts servers in the project's folder.
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
