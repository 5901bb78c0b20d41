import {
  AGENT_FOLDERS,
  type ToolOffer,
  type ToolWishes,
  chooseTools,
  loadAgentFiles,
} from "../../agent/definition/agent-files.ts";
import { type McpToolSet, openMcpTools } from "../../agent/mcp-tools/open-mcp-tools.ts";
import { modelChoice } from "../../agent/models/choose.ts";
import { embedderProblem } from "../../agent/models/embeddings.ts";
import { FilesystemBackend } from "../../backends/filesystem/filesystem.ts";
import { packageVersion } from "../../config/package-info.ts";
import { folderProblem } from "../../config/paths.ts";
import type { Config } from "../../config/schema.ts";
import { type LogFields, silentLogger } from "../../core/logger.ts";
import type { Check } from "./checks.ts";

/** The models besides the main one; looks at names and variables only. */
export function checkOtherModels(
  { fallbackModels, subagents }: Pick<Config, "fallbackModels" | "subagents">,
  env: NodeJS.ProcessEnv,
): Check[] {
  const used = [
    ...fallbackModels.map((model) => ({ model, by: "fallback" })),
    ...subagents.flatMap(({ name, model }) => (model === undefined ? [] : [{ model, by: `of ${name}` }])),
  ];
  return used.map(({ model, by }) => {
    const choice = modelChoice({ model, env, lendable: true });
    return {
      name: "Model",
      ok: choice.ok,
      text: choice.ok ? `${choice.spec} (${by})` : `${by}: ${choice.message}`,
    };
  });
}

/** Whether memories can be found by their meaning, when that is wanted; makes no request. */
export function checkEmbeddings({ memories }: Pick<Config, "memories">, env: NodeJS.ProcessEnv): Check[] {
  const { embeddings: model } = memories;
  if (model === undefined) return [];
  const problem = embedderProblem({ model, env });
  return [
    { name: "Embeddings", ok: problem === undefined, text: problem?.message ?? `${model} (of memories)` },
  ];
}

/** Starts every other MCP server, asks for its tools and ends it; looks whether subagents name tools that exist. */
export async function checkTools(
  config: Pick<Config, "mcpServers" | "subagents" | "workspace">,
  env: NodeJS.ProcessEnv,
): Promise<Check[]> {
  const mcp = openMcpTools(config.mcpServers, { env, version: packageVersion(), log: silentLogger });
  try {
    const offers = await mcp.forAgent(() => true);
    const servers = Object.keys(config.mcpServers);
    const missing = offers.problems.map(({ server }) => server);
    return [
      ...servers.map((server) => checkServer(server, offers)),
      ...(await checkSubagentTools(config, { tools: offers.tools, servers, missing })),
    ];
  } finally {
    await mcp.close();
  }
}

function checkServer(server: string, { tools, gated, problems }: McpToolSet): Check {
  const problem = problems.find((found) => found.server === server);
  if (problem)
    return { name: "MCP server", ok: false, text: `${server} is not available: ${problem.reason}` };
  const own = (name: string): boolean => name.startsWith(`${server}__`);
  const asked = gated.filter(own).length;
  const all = tools.filter(({ name }) => own(name)).length;
  return { name: "MCP server", ok: true, text: `${server}: ${all} tools, ${asked} of them with approval` };
}

/** The subagents of the configuration and of the workspace's files whose descriptions need a look. */
async function checkSubagentTools(
  { subagents, workspace }: Pick<Config, "subagents" | "workspace">,
  offer: ToolOffer,
): Promise<Check[]> {
  const name = "Subagent";
  const broken: Check[] = [];
  const described: ToolWishes[] = [];
  if (workspace !== undefined && folderProblem(workspace) === undefined) {
    const files = new FilesystemBackend({ rootDir: workspace, virtualMode: true });
    const skipped = (_event: string, { path, folder, problem, error }: LogFields = {}): void => {
      const text = `${String(path ?? folder)} is left out: ${String(problem ?? error)}`;
      broken.push({ name, ok: false, text });
    };
    for (const file of await loadAgentFiles(files, AGENT_FOLDERS, { ...silentLogger, warn: skipped })) {
      described.push({ ...file, isFile: true });
    }
  }
  const own = new Set(subagents.map((subagent) => subagent.name));
  const used = [...subagents, ...described.filter((file) => !own.has(file.name))];
  const notes = used.flatMap((subagent) => chooseTools(subagent, offer).notes);
  return [...broken, ...notes.map(({ text, isMistake }) => ({ name, ok: !isMistake, text }))];
}
