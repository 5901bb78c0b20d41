import type { BackendSource } from "../../backends/backend.ts";
import { checkBackend, obtainBackend } from "../../backends/resolve.ts";
import { type Logger, createLogger } from "../../core/logger.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { toAgentTool } from "../calls/agent-tool.ts";
import type { ToolInput } from "../contracts.ts";
import { AGENT_FOLDERS, chooseTools, loadAgentFiles } from "./agent-files.ts";
import type { SubAgent } from "./params.ts";

export interface LoadSubagentsOptions {
  /** Where the files are: a backend itself, not what makes one. */
  backend: BackendSource;
  /**
   * Folders of Markdown files, the later ones of higher priority. One that does not exist has none. Default
   * `/.claude/agents` and `/.deepagent/agents`.
   */
  folders?: readonly string[];
  /** The tools that files may name besides the built-in ones: the `tools` of the agent. */
  tools?: readonly ToolInput[];
  /** Logs files that are left out, and names of tools that do not exist. Default: standard error. */
  log?: Logger;
}

const OPTIONS: OptionTable<LoadSubagentsOptions> = {
  backend: "anything",
  folders: "a list of non-empty texts",
  tools: "a list",
  log: "anything",
};

/**
 * The subagents that Markdown files describe, for `subagents` of `createDeepAgent`: name, description, model and
 * tools in the front matter, the prompt below. A file that says nothing of tools has those of the agent; names of
 * Claude Code's tools stand for the built-in ones.
 *
 * @throws ConfigurationError `BACKEND_RUNTIME` for what only makes a backend.
 */
export async function loadSubagents(options: LoadSubagentsOptions): Promise<SubAgent[]> {
  const {
    backend,
    folders = AGENT_FOLDERS,
    tools = [],
    log = createLogger("warn"),
  } = readOptions("loadSubagents", options, OPTIONS);
  checkBackend("`backend` of loadSubagents", backend);
  const offer = { tools: tools.map((tool) => toAgentTool(tool)), servers: [], missing: [] };
  const files = await loadAgentFiles(await obtainBackend(backend, undefined), folders, log);
  return files.map(({ tools: wanted, disallowedTools, ...subagent }) => {
    const { name } = subagent;
    const chosen = chooseTools({ name, tools: wanted, disallowedTools, isFile: true }, offer);
    for (const { text } of chosen.notes) log.warn("subagent_tool_not_as_named", { problem: text });
    return {
      ...subagent,
      ...(chosen.tools ? { tools: chosen.tools } : {}),
      ...(chosen.fileTools ? { filesystem: { tools: chosen.fileTools } } : {}),
    };
  });
}
