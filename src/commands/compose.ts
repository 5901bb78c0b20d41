import { join } from "node:path";
import { buildAgent } from "../agent/agent-core.ts";
import { AGENT_FOLDERS, loadAgentFiles } from "../agent/agent-files.ts";
import { type McpTools, openMcpTools } from "../agent/mcp-tools/open-mcp-tools.ts";
import { OFFLINE, modelChoice } from "../agent/models/choose.ts";
import type { ModelChoice } from "../agent/models/choose.ts";
import { packageVersion } from "../config/package-info.ts";
import { folderProblem } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import { closeInherited } from "../core/child-process.ts";
import type { Logger } from "../core/logger.ts";
import { isFinal, type Principal, type Run } from "../runs/run.ts";
import type { Backend } from "../backends/backend.ts";
import { RUN_MIGRATIONS } from "../runs/stores/schema.ts";
import type { RunService, StartRefusal } from "../runs/service.ts";
import { createRunService } from "../runs/supervisor.ts";
import { CHECKPOINT_MIGRATIONS } from "../storage/checkpoint-sql.ts";
import { createCheckpointer } from "../storage/checkpointer.ts";
import type { SqliteCheckpointer } from "../storage/checkpointer.ts";
import { openDatabaseInTurns } from "../storage/database.ts";
import type { Database, DatabaseOptions } from "../storage/database.ts";
import { migrateInTurns, schemaVersion, type MigrationNotice } from "../storage/migrations.ts";
import { STORE_MIGRATIONS } from "../storage/store-schema.ts";
import { writeLogInThread } from "../storage/log-writer.ts";
import { createStore } from "../storage/store.ts";
import type { SqliteStore } from "../storage/store.ts";
import { chooseExecutor, isIsolated, RunExecutors } from "./compose/executors.ts";
import { FileTree } from "./compose/file-tree.ts";
import { withForeignTools } from "./compose/foreign-tools.ts";
import { limitsOf } from "./compose/limits.ts";
import { type Memories, openMemories } from "./compose/memories.ts";
import { Models, subagentModelProblem, usableFallbacks, withModels } from "./compose/models.ts";
import { environmentOf } from "./compose/environment.ts";
import { MEMORIES_MOUNT, WORKSPACE_MOUNT } from "./compose/mounts.ts";
import { retentionOf } from "./compose/retention.ts";
import type { ToolWishes } from "../agent/subagent-tools.ts";
import { approvalGates } from "./compose/write-gates.ts";

export interface RunSettings {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger;
  /** Whether MCP clients can lend their models. Default false. */
  lendable?: boolean;
  /** Whether this process forgets runs as configured, now and every hour, and embeds memories. Default true. */
  keepsHouse?: boolean;
}

/**
 * Opens storage and puts model, agent and runs together. Closing the service parks what runs and then
 * closes all of it.
 */
export async function openRuns(settings: RunSettings): Promise<RunService> {
  const { config, env, lendable = false } = settings;
  // Other MCP servers are started by the SDK, which passes on whatever is open.
  closeInherited();
  const storage = await openStorage(config.dataDir, settings.logger);
  try {
    const executors = new RunExecutors(() => chooseExecutor(config));
    const executes = await executors.choice();
    if (executes.kind === "host") settings.logger.warn("commands.not_isolated", { reason: executes.reason });
    const version = packageVersion();
    const mcp = openMcpTools(config.mcpServers, { env, version, log: settings.logger });
    const memories = openMemories(settings, storage);
    const parts = { storage, executors, memories, mcp };
    const service = assemble(settings, parts, modelChoice({ model: config.model, env, lendable }));
    const park = service.close.bind(service);
    const close = async (): Promise<void> => {
      try {
        await park();
        await Promise.all([executors.close(), mcp.close(), memories.close()]);
      } finally {
        await storage.close();
      }
    };
    return Object.assign(service, { close });
  } catch (error) {
    await storage.close();
    throw error;
  }
}

interface Parts {
  storage: Storage;
  executors: RunExecutors;
  memories: Memories;
  mcp: McpTools;
}

function assemble(settings: RunSettings, parts: Parts, choice: ModelChoice): RunService {
  const { config, env, logger } = settings;
  const { store, checkpointer, database } = parts.storage;
  const tree = new FileTree(config, store);
  const models = new Models(config, env, logger);
  const fallbacks = usableFallbacks(config, settings, logger);
  const canWork = config.workspace !== undefined && choice.ok;
  const executorFor = ({ id, principal }: Run) => parts.executors.of(id, () => endOf(service, principal, id));
  const service: RunService = createRunService({
    database,
    agentFor: async (run, lender) => {
      const own = models.lentTo(lender);
      const chat = choice.ok ? await own.get(config.model) : UNUSED_MODEL;
      // A run that has ended is only read: no server is started for it, and no command.
      const mcp = isFinal(run.status) ? undefined : parts.mcp;
      const executor = isFinal(run.status) ? undefined : await executorFor(run);
      const interruptOn = approvalGates(config.approvals, isIsolated(executor));
      const configured = await withAgentFiles(config, tree.mounts(run.principal), logger);
      const subagents = withModels(configured, own);
      const servers = Object.keys(config.mcpServers);
      const foreign = await withForeignTools(mcp, chat, { interruptOn, subagents, servers, log: logger });
      return buildAgent({
        ...foreign,
        tools: [...(foreign.tools ?? []), ...parts.memories.toolsOf(run.principal)],
        model: chat,
        fallbackModels: fallbacks.map((model) => () => own.get(model)),
        backend: tree.withThread(run.principal, executor),
        store,
        checkpointer,
        filesystem: { delete: true, jobs: true },
        memory: MEMORY_FILES,
        skills: tree.skillSources(),
        limits: limitsOf(config),
        log: logger,
      });
    },
    checkpoints: checkpointer,
    ...(settings.keepsHouse === false ? {} : { retention: retentionOf(config) }),
    sweepMemories: (signal) => parts.memories.sweep(signal),
    tree: async (principal) => tree.mounts(principal),
    treeWithThread: async (principal) => tree.withThread(principal),
    searchMemories: (...args) => parts.memories.search(...args),
    preflight: async () => (parts.storage.isOutdated() ? OUTDATED : obstacle(settings, choice)),
    mayClaim: () => !parts.storage.isOutdated(),
    environment: environmentOf(config, choice),
    // A server that cannot work still answers questions about runs, and leaves them to others.
    concurrentRuns: canWork ? config.limits.concurrentRuns : 0,
    openRuns: config.limits.openRuns,
    crashLimit: config.limits.serverCrashes,
    ...deadlineOf(config),
    log: logger,
  });
  return service;
}

const deadlineOf = ({ approvals: { deadline } }: Config) =>
  deadline === undefined ? {} : { approvalDeadlineMs: deadline * 1000 };

/** Resolved when a run has ended, or this process is done with all of them. */
async function endOf(runs: RunService, principal: Principal, runId: string): Promise<void> {
  const { signal } = new AbortController();
  // No event comes after the last possible one: only the end of the events does.
  const events = runs.watch(principal, runId, { after: Number.MAX_SAFE_INTEGER, signal });
  await events[Symbol.asyncIterator]().next();
}

/** The configured subagents, and those that files of the workspace describe under other names. */
async function withAgentFiles(
  { subagents, workspace }: Config,
  files: Backend,
  log: Logger,
): Promise<Array<ToolWishes & Config["subagents"][number]>> {
  if (workspace === undefined) return subagents;
  const names = new Set(subagents.map(({ name }) => name));
  const folders = AGENT_FOLDERS.map((folder) => WORKSPACE_MOUNT + folder);
  const described = await loadAgentFiles(files, folders, log);
  const others = described.filter(({ name }) => !names.has(name));
  return [...subagents, ...others.map((file) => ({ ...file, isFile: true }))];
}

/** What the agent reads at the start of every run: notes of the project, then its own. */
const MEMORY_FILES = [`${WORKSPACE_MOUNT}/AGENTS.md`, `${MEMORIES_MOUNT}/AGENTS.md`];

/** Of an agent that only reads threads and checks arguments, because no model can be used. */
const UNUSED_MODEL = OFFLINE;

interface Storage {
  /** Runs and memories. */
  database: Database;
  checkpointer: SqliteCheckpointer;
  store: SqliteStore;
  /** Whether a newer version has changed the files since: then this one reads and writes nothing new in them. */
  isOutdated(): boolean;
  close(): Promise<void>;
}

async function openStorage(dataDir: string, logger: Logger): Promise<Storage> {
  const opened: Database[] = [];
  const open = async (file: string, options?: DatabaseOptions): Promise<Database> => {
    const database = await openDatabaseInTurns(join(dataDir, file), options);
    opened.push(database);
    return database;
  };
  const logs: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(logs.map((end) => end()));
    for (const database of opened.toReversed()) database.close();
  };
  try {
    const database = await open("deepagent.db");
    const checkpoints = await open("checkpoints.db", { synchronous: "NORMAL" });
    const notify = (notice: MigrationNotice): void => logger.info("storage.migrating", { ...notice });
    const components = [
      [database, "runs", RUN_MIGRATIONS],
      [database, "store", STORE_MIGRATIONS],
      [checkpoints, "checkpoints", CHECKPOINT_MIGRATIONS],
    ] as const;
    for (const [file, name, known] of components) await migrateInTurns(file, name, known, notify);
    const isOutdated = (): boolean =>
      components.some(([file, name, known]) => schemaVersion(file, name) > known.length);
    const warn = (error: unknown): void => logger.warn("storage.log_not_written", { error });
    logs.push(...opened.map((one) => writeLogInThread(one, warn)));
    const [store, checkpointer] = [createStore(database), createCheckpointer(checkpoints)];
    return { database, store, checkpointer, isOutdated, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Why no run can be started now. */
function obstacle(
  settings: RunSettings,
  choice: ModelChoice,
): { code: StartRefusal; message: string } | undefined {
  const { workspace } = settings.config;
  if (workspace === undefined) return { code: "workspace_missing", message: NO_WORKSPACE };
  if (folderProblem(workspace) !== undefined) return { code: "workspace_missing", message: WORKSPACE_GONE };
  const message = choice.ok ? subagentModelProblem(settings.config, settings) : choice.message;
  return message === undefined ? undefined : { code: "model_not_configured", message };
}

const OUTDATED = {
  code: "restart_needed",
  message:
    "No run was started: a newer version of this program has updated the data directory since this server was started. Restart the server; all runs are kept, and go on in the newer version.",
} as const;
const SET_WORKSPACE =
  'Set it in the server\'s configuration: --workspace DIR among its arguments, DEEPAGENT_WORKSPACE in its environment or "workspace" in its config file.';
const NO_WORKSPACE = `No run was started: the server has no workspace, the folder the agent works in. ${SET_WORKSPACE}`;
const WORKSPACE_GONE = `No run was started: the workspace folder no longer exists or cannot be opened. Restore it, or choose another. ${SET_WORKSPACE}`;
