import { join } from "node:path";
import type { HostFacts } from "../../config/paths.ts";

/** How a server is started. */
export interface Launch {
  command: string;
  args: string[];
}

/** A client that keeps its servers in a JSON file, or one that has a command to add them. */
export type ClientInstall =
  | { kind: "file"; title: string; file: string; key: "mcpServers" | "servers"; entry: object }
  | { kind: "command"; title: string; command: string };

/** Where an application keeps its settings on this platform; `undefined`: not known. */
function applicationFolder({ home, platform, env }: HostFacts): string | undefined {
  if (platform === "darwin") return join(home, "Library", "Application Support");
  if (platform === "win32") return env["APPDATA"];
  return env["XDG_CONFIG_HOME"] ?? join(home, ".config");
}

type Describe = (host: HostFacts, launch: Launch) => ClientInstall | undefined;

const jsonFile =
  (title: string, pathOf: (host: HostFacts) => string | undefined, key: "mcpServers" | "servers"): Describe =>
  (host, launch) => {
    const file = pathOf(host);
    if (file === undefined) return undefined;
    return {
      kind: "file",
      title,
      file,
      key,
      entry: key === "servers" ? { type: "stdio", ...launch } : launch,
    };
  };

const ownCommand =
  (title: string, program: string): Describe =>
  (_host, { command, args }) => ({
    kind: "command",
    title,
    command: [program, "mcp", "add", "deepagent", "--", command, ...args].map(quoted).join(" "),
  });

const inApplicationFolder =
  (...path: string[]) =>
  (host: HostFacts): string | undefined => {
    const folder = applicationFolder(host);
    return folder === undefined ? undefined : join(folder, ...path);
  };

const CLIENTS: Readonly<Record<string, Describe>> = {
  "claude-desktop": jsonFile(
    "Claude Desktop",
    inApplicationFolder("Claude", "claude_desktop_config.json"),
    "mcpServers",
  ),
  "claude-code": ownCommand("Claude Code", "claude"),
  cursor: jsonFile("Cursor", ({ home }) => join(home, ".cursor", "mcp.json"), "mcpServers"),
  vscode: jsonFile("VS Code", inApplicationFolder("Code", "User", "mcp.json"), "servers"),
  windsurf: jsonFile(
    "Windsurf",
    ({ home }) => join(home, ".codeium", "windsurf", "mcp_config.json"),
    "mcpServers",
  ),
  codex: ownCommand("Codex", "codex"),
};

export const CLIENT_NAMES: readonly string[] = Object.keys(CLIENTS);

/** How a server is added to a client; `undefined`: no such client, or not on this platform. */
export function clientInstall(name: string, host: HostFacts, launch: Launch): ClientInstall | undefined {
  return Object.hasOwn(CLIENTS, name) ? CLIENTS[name]?.(host, launch) : undefined;
}

/** One word of a shell command. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
