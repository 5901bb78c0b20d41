/** Puts agents together. This file loads LangChain, so it is imported when an agent is first needed. */
import type { Agent, InterruptOn, ModelLender } from "../agent/agent.ts";
import { backgroundTasksMiddleware, buildAgent } from "../agent/agent.ts";
import type { AgentTool } from "../agent/contracts/middleware.ts";
import { type AgentFile, chooseTools, withTools } from "../agent/build/agent-files.ts";
import { notingFiles } from "../agent/layers/skill-files.ts";
import type { McpTools } from "../agent/mcp-tools/open-mcp-tools.ts";
import { changedTools, reportMissingTools, serverInstructions } from "../agent/mcp-tools/server-layers.ts";
import { CLIENT, type ModelChoice, OFFLINE } from "../agent/models/choose.ts";
import { createEmbedder } from "../agent/models/embeddings.ts";
import { PROFILES } from "../agent/build/profiles.ts";
import type { IgnoreFiles } from "../backends/ignore-files.ts";
import type { Config } from "../config/schema.ts";
import { systemClock } from "../core/clock.ts";
import { defined } from "../core/unknown.ts";
import type { Logger } from "../core/logger.ts";
import { NO_LENDER } from "../runs/client-model.ts";
import type { Checkpoints } from "../runs/thread-ports.ts";
import { type Principal, type Run, isFinal } from "../runs/run.ts";
import type { MemorySearch } from "../runs/service.ts";
import type { AgentStorage, Storage } from "../storage/storage.ts";
import { searchMemoriesTool } from "../tools/search-memories.ts";
import { type MountedExecutor, RunExecutors } from "./executors.ts";
import { FileTree, ServerMounts, memoryNamespace, readAgentFiles, workspaceFolders } from "./file-tree.ts";
import { instructionsFor } from "./instructions.ts";
import { type ModelSources, Models, namedModels, usableFallbacks, withModels } from "./models.ts";
import { ServersForPeople, openOtherServers } from "./other-servers.ts";
import { type Owner, projectNotes, readIgnoreFiles, workspaceOf } from "./owned-places.ts";
import { chosenModel, startChoices, withLimits } from "./start-choices.ts";
import { MEMORIES_MOUNT, type RunSettings, WORKSPACE_MOUNT, limitsOf } from "./settings.ts";
import { callRules } from "./call-rules.ts";
import { runGates } from "./run-gates.ts";
import { type Web, webOf } from "./web.ts";

/** Memories are searched by words and, as configured, by meaning. `keepsHouse`: whether this process embeds them. */
function openMemories(
  { config, env, logger, keepsHouse = true }: RunSettings,
  { store, embeddings, of }: Pick<AgentStorage, "store" | "embeddings" | "of">,
) {
  const { embeddings: model } = config.memories;
  const finder = model && embeddings.open(createEmbedder({ model, env }), { worksOn: keepsHouse, logger });
  const closed = new AbortController();
  const search = async (principal: Principal, query: string, limit: number): Promise<MemorySearch> => {
    const namespace = memoryNamespace(principal);
    const found = finder
      ? await finder.search(namespace, query, limit, closed.signal)
      : { hits: await of(principal, namespace).store.searchText(namespace, query, limit) };
    const hits = found.hits.map(({ key, ...hit }) => ({ path: MEMORIES_MOUNT + key, ...hit }));
    return { ...found, hits };
  };
  return {
    search,
    /** Tools with which the principal's agents find memories. Without vectors, grep finds as much. */
    toolsOf: (principal: Principal) =>
      finder ? [searchMemoriesTool((query, limit) => search(principal, query, limit))] : [],
    /** Deletes expired items and the vectors of models not used for 30 days; returns the number of items. */
    async sweep(signal: AbortSignal): Promise<number> {
      await embeddings.forgetUnused({ usedBefore: systemClock() - 30 * 86_400_000, signal });
      return store.sweepExpiredItems(signal);
    },
    async close(): Promise<void> {
      closed.abort();
      if (finder) await finder.close();
    },
  };
}

export type Agents = Awaited<ReturnType<typeof openAgents>>;

/** Opens the agents of a process, with their shared parts. */
export async function openAgents(settings: RunSettings, storage: Storage, choice: ModelChoice) {
  const { config, env, logger } = settings;
  const executors = RunExecutors.for(config);
  await executors.warnOfHost(logger);
  const mcp = openOtherServers(config, env, logger);
  const stored = await storage.forAgents();
  const storedBy = (principal: Principal) => stored.of(principal, memoryNamespace(principal));
  const memories = openMemories(settings, stored);
  const served = new ServerMounts(config.mounts, env);
  const tree = new FileTree(config, (principal) => storedBy(principal).store, served);
  const models = new Models(config, env, logger);
  const fallbacks = usableFallbacks(config, settings, logger);
  const web = webOf(config, env, logger);
  /** Without `tools` and `executor` the agent can only be inspected: no server or command is started for it. */
  const agentOf = async (
    owner: Owner & Pick<Run, "model" | "limits" | "goal">,
    lender: ModelLender,
    { tools, executor }: { tools?: McpTools; executor?: MountedExecutor | undefined } = {},
  ): Promise<Agent> => {
    const [lent, own] = [models.lentTo(lender), chosenModel(owner, startChoices(settings, choice))];
    // Without a usable model, the agent only reads threads and checks arguments.
    const chat = choice.ok ? await lent.get(own.spec ?? config.model) : OFFLINE;
    const ignored = readIgnoreFiles(config, owner);
    const interruptOn = runGates(config, owner, { mounted: executor, served: served.paths }, ignored);
    const { described, skipped } = await withAgentFiles(config, owner, { tree, ignored, log: logger });
    const named = withModels(described, lent, namedModels(settings, choice, own.spec));
    const parts = { ...named, interruptOn, skipped: [...skipped, ...(own.notice ? [own.notice] : [])] };
    const { instructing, ...foreign } = await withForeignTools(config, tools, web?.tools, logger, parts);
    return buildAgent({
      ...foreign,
      middleware: [...foreign.middleware, ...backgroundLayers(config, [own.spec, ...fallbacks], choice)],
      tools: [...foreign.tools, ...memories.toolsOf(owner.principal)],
      model: chat,
      fallbackModels: fallbacks.map((model) => () => lent.get(model)),
      backend: tree.withThread(owner, executor, ignored),
      ...(await instructionsFor(config, owner, env["HOME"], ignored)),
      ...configured(withLimits(config, owner.limits), projectNotes(config, owner)),
      callRules: callRules(config, owner, { mounted: executor, served: served.paths, ignored, instructing }),
      ...defined({ web: web?.options, goal: goalParams(owner, config, lent) }),
      ...storedBy(owner.principal),
      skills: tree.skillSources(owner),
      log: logger,
    });
  };
  return {
    /** `ended` resolves at the end of the run, which also ends the programs that its commands started. */
    agentFor: async (run: Run & Owner, lender: ModelLender, ended: () => Promise<void>): Promise<Agent> => {
      const parts = isFinal(run.status) ? {} : { tools: mcp, executor: await executors.of(run, ended) };
      return agentOf(run, lender, parts);
    },
    /** The graph of an agent as text of Mermaid. */
    drawing: async (principal: Principal) => (await agentOf({ principal }, NO_LENDER)).drawing(),
    /** Those of a principal's threads, or of all. */
    checkpoints: (principal?: Principal): Checkpoints =>
      (principal === undefined ? stored : storedBy(principal)).checkpointer,
    tree,
    memories,
    otherServers: new ServersForPeople(mcp, config, env),
    close: async () =>
      void (await Promise.all([executors.close(), mcp.close(), memories.close(), served.close()])),
  };
}

/** The tools for subagents in the background. Only a run that a client waits for can use the client's model. */
function backgroundLayers(
  { backgroundTasks, subagents }: Config,
  [own, ...fallbacks]: readonly (string | undefined)[],
  choice: ModelChoice,
) {
  const main = own ?? (choice.ok ? choice.provider : undefined);
  const models = [main, ...fallbacks, ...subagents.map(({ model }) => model)];
  return backgroundTasks && !models.includes(CLIENT) ? [backgroundTasksMiddleware()] : [];
}

const goalParams = ({ goal }: Pick<Run, "goal">, { limits, judgeModel }: Config, models: ModelSources) =>
  goal && {
    criteria: goal,
    rounds: limits.goalRounds,
    ...(judgeModel === undefined ? {} : { model: () => models.get(judgeModel) }),
  };

/** The parameters of an agent that the configuration states. */
const configured = (config: Config, notes: string | undefined) => ({
  permissions: config.permissions,
  filesystem: { jobs: true, ...(config.profile && PROFILES[config.profile].filesystem) },
  askUser: config.questions.ask,
  programs: config.programs,
  hints: { ...config.hints, ...(config.workspace === undefined ? {} : { workspace: WORKSPACE_MOUNT }) },
  // The agent reads its notes at the start of every run.
  memory: [`${MEMORIES_MOUNT}/AGENTS.md`, ...(notes === undefined ? [] : [`${notes}/AGENTS.md`])],
  // Subagents that the prompt does not list.
  delegation: { folders: config.workspace === undefined ? [] : workspaceFolders("agents", config.workspace) },
  limits: limitsOf(config),
});

/** The configured subagents, and those that files of the workspace describe under other names. */
async function withAgentFiles(
  config: Config,
  owner: Owner,
  { tree, ignored, log }: { tree: FileTree; ignored: IgnoreFiles | null; log: Logger },
) {
  type Described = Config["subagents"][number] &
    Parameters<typeof chooseTools>[0] &
    Pick<AgentFile, "modelAlias">;
  const subagents: Described[] = config.subagents;
  const skipped: string[] = [];
  if (config.workspace === undefined) return { described: subagents, skipped };
  const noting = notingFiles(log, (text) => skipped.push(`Subagent file: ${text}`));
  const folders = workspaceFolders("agents", workspaceOf(config, owner));
  const own = folders.length === 0 ? [] : [[tree.mounts(owner, ignored), folders] as const];
  const found = await readAgentFiles(config, owner, own, noting);
  const others = found.filter(({ name }) => subagents.every((own) => own.name !== name));
  const described = [...subagents, ...others.map((file) => ({ ...file, isFile: true, buildOnUse: true }))];
  return { described, skipped };
}

/** Returns the tools that the other MCP servers add to an agent with these gates and subagents. */
async function withForeignTools(
  { mcpServers, limits }: Config,
  mcp: McpTools | undefined,
  web: Web["tools"] = [],
  log: Logger,
  own: ReturnType<typeof withModels<Awaited<ReturnType<typeof withAgentFiles>>["described"][number]>> & {
    interruptOn: InterruptOn;
    /** Notices about files of subagents, which are in the log already, and about the model of the run. */
    skipped: readonly string[];
  },
) {
  const offers = await mcp?.forAgent();
  const { tools = [], gated = [], problems = [], leftOut = [], notes = [], instructions = [] } = offers ?? {};
  const isGated = new Set(gated);
  const gatesOf = (offered: readonly AgentTool[]): InterruptOn => {
    const asked = offered.filter(({ name }) => isGated.has(name));
    return { ...own.interruptOn, ...Object.fromEntries(asked.map(({ name }) => [name, true])) };
  };
  const servers = Object.keys(mcpServers).filter((name) => mcpServers[name]?.disabled !== true);
  const offer = { tools, servers, missing: problems.map(({ server }) => server), web };
  const warnings = [...own.notices];
  const changed = mcp && changedTools(mcp);
  const layersFor = (own: typeof tools, choose?: (now: typeof tools) => typeof tools) => [
    ...serverInstructions(instructions, own),
    ...(changed ? [changed(choose)] : []),
  ];
  const subagents = own.subagents.flatMap((described) => {
    const {
      tools: _only,
      disallowedTools: _denied,
      askedTools: _asked,
      isFile: _file,
      ...subagent
    } = described;
    const chosen = chooseTools(described, offer);
    warnings.push(...chosen.notes.map(({ text }) => text), ...[chosen.refusal ?? []].flat());
    if (chosen.refusal !== undefined) return [];
    const choose = (now: typeof tools) => chooseTools(described, { ...offer, tools: now }).tools ?? now;
    const middleware = layersFor(chosen.tools ?? tools, choose);
    return [{ ...withTools(subagent, chosen, gatesOf(chosen.tools ?? tools)), middleware }];
  });
  // Without servers the agent does not work; it is only inspected.
  const [mistakes, skipped] = offers === undefined ? [[], []] : [warnings, own.skipped];
  for (const problem of mistakes) {
    const isModel = own.notices.includes(problem);
    log.warn(isModel ? "subagent_model_not_allowed" : "subagent_tool_not_as_named", { problem });
  }
  const reported = [...notes.map(({ text }) => text), ...skipped, ...mistakes];
  return {
    instructing: instructions.map(({ server }) => server),
    tools,
    toolsOnDemand: { names: tools.map(({ name }) => name), tokens: limits.foreignToolTokens },
    middleware: [...layersFor(tools), ...reportMissingTools({ problems, leftOut }, reported)],
    interruptOn: gatesOf(tools),
    generalPurpose: { middleware: layersFor(tools) },
    subagents,
  };
}
