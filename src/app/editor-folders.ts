/** Opens the runs of the folders that an editor works in: one service each, over the same storage. */
import { isAbsolute } from "node:path";
import type { McpServer } from "@agentclientprotocol/sdk";
import { modelChoice } from "../agent/models/choose.ts";
import { folderProblem } from "../config/paths.ts";
import { type Config, ConfigSchema } from "../config/schema.ts";
import { canonicalJson } from "../core/json.ts";
import { realPath } from "../core/real-path.ts";
import { shownName } from "../core/text.ts";
import { principalOf } from "../server/auth/auth.ts";
import { lazyRuns } from "../server/contracts/deps.ts";
import type { EditorDeps, OpenedFolder } from "../server/acp/editor.ts";
import type { RunService } from "../runs/service.ts";
import { type RunSettings, environmentOf, workspaceOf } from "./settings.ts";

/** The setting `workspace` does not count: an editor names a folder for each session. */
export function editorFolders(
  settings: Pick<RunSettings, "config" | "env" | "logger">,
): Pick<EditorDeps, "open" | "runs" | "folderOf"> & { close(): Promise<void> } {
  const { config: given, env, logger } = settings;
  const { workspace: _workspace, workspaceFolder: _folder, ...config } = given;
  const holder = { principal: principalOf(undefined) };
  const openService = async (own: Config, worksOn: boolean): Promise<RunService> => {
    const { openRuns } = await import("./open-runs.ts");
    return openRuns({ config: own, env, logger, keepsHouse: worksOn, works: worksOn });
  };
  const looking = lazyRuns(() => openService(config, false));
  const openFolder = (folder: string, own: Config["mcpServers"]) => {
    const ofFolder = { ...config, workspace: folder, mcpServers: { ...config.mcpServers, ...own } };
    const lazy = lazyRuns(() => openService(ofFolder, true));
    return { ...lazy, servers: canonicalJson(own), config: ofFolder };
  };
  const folders = new Map<string, ReturnType<typeof openFolder>>();
  const open = async (cwd: string, servers: readonly McpServer[]): Promise<OpenedFolder> => {
    const problem = isAbsolute(cwd) ? folderProblem(cwd) : `cwd must be an absolute path, not ${cwd}`;
    if (problem !== undefined) return { ok: false, problem: `The session was not opened: ${problem}.` };
    const folder = realPath(cwd);
    const read = readServers(servers, config.mcpServers);
    const opened = folders.get(folder) ?? openFolder(folder, read.servers);
    folders.set(folder, opened);
    const notes = [...read.leftOut, ...(opened.servers === canonicalJson(read.servers) ? [] : [CHANGED])];
    const choice = modelChoice({ model: config.model, models: config.models, env, lendable: false });
    const environment = environmentOf(opened.config, choice);
    return {
      ok: true,
      folder,
      runs: (await opened.runs()).as(holder),
      commands: async () => {
        const { readPersonCommands } = await import("./person-commands.ts");
        return readPersonCommands(opened.config, holder, logger);
      },
      ...(notes.length === 0 ? {} : { note: notes.map((note) => `_${note}_`).join("\n\n") }),
      worksOn: (run) => run.environment === environment,
    };
  };
  return {
    open,
    runs: async () => (await looking.runs()).as(holder),
    folderOf: ({ environment }) => workspaceOf(environment),
    close: async () => {
      await Promise.all([looking, ...folders.values()].map((one) => one.close()));
    },
  };
}

const CHANGED =
  "The MCP servers of the editor have changed since this folder was opened. Restart the agent to use them; until then it has those of before.";

/** The servers of an editor in the form of the configuration, and sentences about those that cannot be used. */
function readServers(servers: readonly McpServer[], configured: Config["mcpServers"]) {
  const read: Config["mcpServers"] = {};
  const leftOut: string[] = [];
  for (const server of servers) {
    const entry =
      "command" in server
        ? { command: server.command, args: server.args, env: server.env }
        : { type: server.type, url: server.url, headers: server.headers };
    const parsed = ConfigSchema.shape.mcpServers.parse({ [server.name]: entry });
    for (const [name, own] of Object.entries(parsed ?? {})) {
      const isTaken = Object.hasOwn({ ...configured, ...read }, name);
      const problem = own.problem ?? (isTaken ? "another one has its name" : undefined);
      if (problem === undefined) read[name] = own;
      else leftOut.push(`The MCP server '${shownName(server.name)}' of the editor is left out: ${problem}.`);
    }
  }
  return { servers: read, leftOut };
}
