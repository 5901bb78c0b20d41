/** The composition root: opens storage and puts model, agent and runs together. */
import { memoized } from "../core/concurrency.ts";
import { type ModelChoice, modelChoice } from "../agent/models/choose.ts";
import { closeInherited } from "../core/child-process.ts";
import { defined } from "../core/unknown.ts";
import { ConfigurationError } from "../core/errors.ts";
import type { NewsOperator } from "../runs/news.ts";
import { NO_LENDER } from "../runs/client-model.ts";
import type { RunRepository } from "../runs/sql/repository.ts";
import { Logins } from "../runs/logins.ts";
import { type Run, isFinal } from "../runs/run.ts";
import { WorkspaceProposals } from "../proposals/proposals.ts";
import { copiesFolder, originalOf, rulesOf } from "./owned-places.ts";
import type { RunService, Readiness } from "../runs/service.ts";
import { loadPreviousStateKey, loadStateKey } from "../server/calls/state.ts";
import { createRunService } from "../runs/supervisor.ts";
import type { Storage } from "../storage/storage.ts";
import type { Agents } from "./agents.ts";
import { retentionOf } from "./lifecycle.ts";
import { openStorage } from "./open-storage.ts";
import { startChoices } from "./start-choices.ts";
import { withStoredKeys } from "./stored-keys.ts";
import { type RunSettings, environmentOf, hasOtherFolder } from "./settings.ts";
import { folderProblem } from "../config/paths.ts";
import { PROGRAM } from "../config/program.ts";
import { promptFileProblem } from "./instructions.ts";
import { ruleProblem } from "../rules/rule.ts";
import { otherModelProblem } from "./models.ts";
import texts from "./texts.json" with { type: "json" };

/**
 * Opens storage and connects model, agent and runs. Closing the service parks the runs at work, then closes all
 * parts.
 */
export async function openRuns(given: RunSettings): Promise<OpenedRuns> {
  const settings = await withKeys(given);
  const { config, env, lendable = false, keepsHouse = true } = settings;
  // Other MCP servers are started by the SDK, which passes on whatever is open.
  closeInherited();
  const storage = await (settings.storage?.() ?? openStorage(settings));
  try {
    const choice = modelChoice({ model: config.model, models: config.models, env, lendable });
    const environment = environmentOf(config, choice);
    if (keepsHouse) {
      const others = await storage.enter(environment);
      if (!config.workspacePerMachine && hasOtherFolder(environment, others))
        throw new ConfigurationError("WORKSPACE_NOT_SHARED", texts.otherWorkspace);
    }
    let opened: Agents | undefined;
    const agents = memoized(async () => {
      const { openAgents } = await import("./agents.ts");
      return (opened = await openAgents(settings, storage, choice));
    });
    // A process that only shows runs and stores decisions rarely needs the agents, and starts faster without them.
    if (keepsHouse) await agents();
    const hasReceivers = Object.keys(config.news).length > 0 || settings.startsSchedules === true;
    const news = keepsHouse && hasReceivers ? await import("./news.ts") : undefined;
    const courier = news?.openCourier(settings, storage, environment);
    const service = assemble(settings, storage, agents, choice);
    const park = service.close.bind(service);
    const close = async (): Promise<void> => {
      try {
        await park();
        await courier?.close();
        await opened?.close();
      } finally {
        await storage.close();
      }
    };
    const { news: messages } = storage.runs;
    const outbox: NewsOperator = {
      list: (limit) => messages.list(limit),
      retry: (numbers) => messages.retry(numbers, storage.clock()),
      drop: (numbers) => messages.drop(numbers),
    };
    const logins = new Logins(storage.runs.logins, storage.clock, async () => {
      const shared = await storage.secret?.("state");
      if (shared !== undefined) return [shared];
      const previous = await loadPreviousStateKey(config.dataDir);
      return [await loadStateKey(config.dataDir), ...(previous ? [previous] : [])];
    });
    return Object.assign(service, { close, outbox, logins, rows: storage.runs });
  } catch (error) {
    await storage.close();
    throw error;
  }
}

/** The runs, and the messages that are still to be sent to people elsewhere. */
export interface OpenedRuns extends RunService {
  outbox: NewsOperator;
  /** People who log in to this server. */
  logins: Logins;
  rows: RunRepository;
}

/** With the keys that the keychain has, for a process that works on runs and so needs them. */
async function withKeys(settings: RunSettings): Promise<RunSettings> {
  const { config, logger, keepsHouse = true } = settings;
  if (!keepsHouse) return settings;
  const { env, found, problem } = await withStoredKeys(config, settings.env);
  if (found.length > 0) logger.info("keychain.keys_found", { names: found });
  if (problem !== undefined) logger.info("keychain.unavailable", { reason: problem });
  return { ...settings, env };
}

function assemble(
  settings: RunSettings,
  storage: Storage,
  agents: () => Promise<Agents>,
  choice: ModelChoice,
): RunService {
  const { config, logger } = settings;
  const { approvals, questions } = config;
  const canWork = settings.works !== false && config.workspace !== undefined && choice.ok;
  const proposals = openProposals(config, storage.clock);
  const service: RunService = createRunService({
    runs: storage.runs,
    clock: storage.clock,
    agentFor: async (run, lender, fence) => {
      const main = await findMainRun(run, storage);
      const isAtWork = lender !== NO_LENDER && main.changes === "propose" && !isFinal(main.status);
      const workspace = isAtWork ? originalOf(config, main) : undefined;
      // The copy that the run works in, with the files that a person did not apply before.
      const notApplied = workspace === undefined ? undefined : await proposals.open(main, workspace, fence);
      return (await agents()).agentFor({ ...main, ...defined({ notApplied }) }, lender, async () => {
        // Resolved when the run has ended, or this process is done with all of them.
        const { signal } = new AbortController();
        // After the final event only the stream's end can follow.
        const events = service
          .as({ principal: main.principal })
          .watch.events(main.id, { after: Number.MAX_SAFE_INTEGER, signal });
        await events[Symbol.asyncIterator]().next();
      });
    },
    checkpoints: async (principal) => (await agents()).checkpoints(principal),
    ...(settings.keepsHouse === false ? {} : { retention: retentionOf(config) }),
    sweepMemories: async (signal) => (await agents()).memories.sweep(signal),
    tree: async (principal) => (await agents()).tree.mounts({ principal }),
    treeWithThread: async (run) => {
      const { changes, ...direct } = await findMainRun(run, storage);
      const hasCopy = changes === "propose" && proposals.has(direct);
      return (await agents()).tree.withThread(hasCopy ? { ...direct, changes } : direct);
    },
    proposals,
    searchMemories: async (...args) => (await agents()).memories.search(...args),
    drawing: async (principal) => (await agents()).drawing(principal),
    otherServers: async () => (await agents()).otherServers,
    preflight: async () => (storage.isOutdated() ? OUTDATED : startRefusal(settings, choice)),
    ...(choice.ok ? { model: choice.spec } : {}),
    choices: () => startChoices(settings, choice),
    mayClaim: () => !storage.isOutdated(),
    environment: environmentOf(config, choice),
    // A server without a workspace still answers questions about runs, and leaves the work to others.
    concurrentRuns: canWork ? config.limits.concurrentRuns : 0,
    openRuns: config.limits.openRuns,
    crashLimit: config.limits.serverCrashes,
    ...defined({
      approvalDeadlineMs: approvals.deadline && approvals.deadline * 1000,
      questionDeadlineMs: questions.deadline && questions.deadline * 1000,
      startsSchedules: settings.startsSchedules,
    }),
    questionHoldMs: questions.hold * 1000,
    log: logger,
  });
  return service;
}

const openProposals = (config: RunSettings["config"], clock: Storage["clock"]) =>
  new WorkspaceProposals({
    dir: copiesFolder(config),
    without: [...(config.privatePaths ?? []), copiesFolder(config)],
    policy: rulesOf(config),
    maxBytes: config.proposals.maxMegabytes * 1_048_576,
    clock,
  });

/** The run whose agent, folders and commands a run has: a background task has those of the run that started it. */
const findMainRun = async (run: Run, { runs }: Storage): Promise<Run> =>
  (run.parent && (await runs.read.run(run.principal, run.parent.runId))) ?? run;

const OUTDATED = { code: "restart_needed", message: texts.newerVersion } as const;

/** Finds the first reason why no run can be started now. */
async function startRefusal(settings: RunSettings, choice: ModelChoice): Promise<Readiness["refusal"]> {
  const { workspace } = settings.config;
  if (workspace === undefined) return { code: "workspace_missing", message: NO_WORKSPACE };
  if (folderProblem(workspace) !== undefined) return { code: "workspace_missing", message: WORKSPACE_GONE };
  const message = choice.ok ? otherModelProblem(settings.config, settings) : choice.message;
  if (message !== undefined) {
    const [key] = choice.ok ? [] : (choice.keys ?? []);
    const remedy = key === undefined ? {} : { remedy: `${PROGRAM} keys set ${key}` };
    return { code: "model_not_configured", message, ...remedy };
  }
  const problem = (await promptFileProblem(settings.config)) ?? ruleProblem(settings.config.rules);
  return problem === undefined
    ? undefined
    : { code: "configuration_invalid", message: `No run was started. ${problem}` };
}

const SET_WORKSPACE = texts.setWorkspace;
const NO_WORKSPACE = `No run was started: the server has no workspace, the folder the agent works in. ${SET_WORKSPACE}`;
const WORKSPACE_GONE = `No run was started: the workspace folder no longer exists or cannot be opened. Restore it, or choose another. ${SET_WORKSPACE}`;
