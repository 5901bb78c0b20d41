import { isApproval } from "../../src/runs/run.ts";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import type { PendingWrite } from "@langchain/langgraph-checkpoint";
import { afterEach } from "vitest";
import { z } from "zod";
import { buildAgent, type Agent, type DeepAgentParams, type ModelLender } from "../../src/agent/agent.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { silentLogger } from "../../src/core/logger.ts";
import { snapshotFiles } from "../../src/backends/runtime.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import type { Run, RunStatus, RunView } from "../../src/runs/run.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import type { PrincipalRuns, RunService, RunServiceOptions, RunsByHolder } from "../../src/runs/service.ts";
import { createRunService } from "../../src/runs/supervisor.ts";
import {
  createCheckpointer,
  type SqliteCheckpointer,
} from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { DurableSaver } from "../../src/storage/sqlite/checkpoints/saver.ts";
import { openDatabase, type Database } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import {
  scriptedModel,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedToolCall,
} from "../support/scripted-model.ts";
import { filesIn } from "../support/files-in.ts";

const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Runs after the test, last one first. */
export function cleanUpWith(cleanUp: () => unknown): void {
  cleanUps.push(cleanUp);
}

/** A database file that is gone after the test. */
export const databaseFile = (): string => join(filesIn(), "data.sqlite");

/** A file with all tables: copying it takes a tenth of the time that making them does. */
let empty: Buffer | undefined;

function emptyFile(): Buffer {
  const file = databaseFile();
  const database = openDatabase(file);
  migrate(database, "runs", RUN_MIGRATIONS);
  database.close();
  return readFileSync(file);
}

/** One more connection to `file`, as another process would have. */
export function connect(file: string): Database {
  if (!existsSync(file)) writeFileSync(file, (empty ??= emptyFile()), { mode: 0o600 });
  const database = openDatabase(file, { synchronous: "NORMAL" });
  migrate(database, "runs", RUN_MIGRATIONS);
  cleanUpWith(() => database.close());
  return database;
}

/** The checkpoints that belong to the runs in `file`, as another process would open them. */
export function checkpointsOf(file: string) {
  const checkpoints = openDatabase(file.replace("data.", "checkpoints."), { synchronous: "NORMAL" });
  cleanUpWith(() => checkpoints.close());
  return { checkpoints, checkpointer: createCheckpointer(checkpoints) };
}

export const ME = "local";

/** The runs of ME. */
export const mine = (service: RunsByHolder): PrincipalRuns => service.as({ principal: ME });
export const FAST = { pollMs: 5, heartbeatMs: 25, leaseMs: 2000 };

export interface Server {
  service: RunService;
  database: Database;
  /** Ends like a process that was killed a while ago: nothing is written any more, and all leases are over. */
  kill: () => void;
}

/** After its process was killed nothing answers any more, not even with an error. */
class MortalCheckpointer extends DurableSaver {
  readonly #file: Database;

  constructor(database: Database) {
    super(database);
    this.#file = database;
  }

  override async put(...args: Parameters<DurableSaver["put"]>) {
    return super.put(...args).catch((error: unknown) => this.#orNever(error));
  }

  override async putWrites(...args: Parameters<DurableSaver["putWrites"]>) {
    return super.putWrites(...args).catch((error: unknown) => this.#orNever(error));
  }

  async #orNever(error: unknown): Promise<never> {
    if (this.#file.open) throw error;
    return new Promise(() => {});
  }
}

/** Loses what tools answered, as when the process ends just before it is stored. */
class LosingCheckpointer extends DurableSaver {
  #lost = false;

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], task: string): Promise<void> {
    const answered = JSON.stringify(writes).includes('"tool_call_id"');
    this.#lost ||= answered;
    return answered ? new Promise<never>(() => {}) : super.putWrites(config, writes, task);
  }

  override async put(...args: Parameters<DurableSaver["put"]>): Promise<RunnableConfig> {
    return this.#lost ? new Promise<never>(() => {}) : super.put(...args);
  }
}

/** Checkpoints that lose what tools answered, and all after it. */
export function losing(database: Database): SqliteCheckpointer {
  createCheckpointer(database);
  return new LosingCheckpointer(database);
}

type AgentParams =
  | DeepAgentParams
  | ((run: Run, lender: ModelLender) => DeepAgentParams | Promise<DeepAgentParams>);

/** Replaces methods of one group in each handle that the service gives from now on. */
export function replaceIn<Group extends keyof PrincipalRuns>(
  service: RunsByHolder,
  group: Group,
  replace: (own: PrincipalRuns[Group]) => Partial<PrincipalRuns[Group]>,
): void {
  const bind = service.as.bind(service);
  service.as = (holder) => {
    const runs = bind(holder);
    return { ...runs, [group]: { ...runs[group], ...replace(runs[group]) } };
  };
}

/** A run service with a connection of its own, working with real agents. */
export function openServer(
  file: string,
  agent: AgentParams,
  { database: ofRuns, ...options }: Partial<RunServiceOptions> & { database?: Database } = {},
): Server {
  const database = connect(file);
  const service = createRunService({
    runs: sqliteRuns(ofRuns ?? database),
    agentFor: async (run, lender): Promise<Agent> => {
      const params = typeof agent === "function" ? await agent(run, lender) : agent;
      createCheckpointer(database);
      return buildAgent({ checkpointer: new MortalCheckpointer(database), ...params });
    },
    tree: () => Promise.resolve(new StateBackend({ files: snapshotFiles() })),
    treeWithThread: () => Promise.resolve(StateBackend),
    searchMemories: () => Promise.resolve({ hits: [] }),
    drawing: () => Promise.resolve("graph TD;"),
    preflight: () => Promise.resolve(undefined),
    environment: "test",
    concurrentRuns: 4,
    log: silentLogger,
    timing: FAST,
    ...options,
  });
  cleanUpWith(() => service.close());
  const kill = (): void => {
    database.exec("UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL");
    database.close();
  };
  return { service, database, kill };
}

/** All events of the run until `until` says so, or its end. */
export async function follow(
  service: RunsByHolder,
  runId: string,
  until: (event: RunEvent) => boolean = () => false,
  after = 0,
): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  const controller = new AbortController();
  for await (const event of mine(service).watch.events(runId, { after, signal: controller.signal })) {
    events.push(event);
    if (until(event)) break;
  }
  return events;
}

/** The run's view once it has `status`. */
export async function reach(service: RunsByHolder, runId: string, status: RunStatus): Promise<RunView> {
  const current = await mine(service).read.view(runId);
  if (current?.run.status === status) return current;
  for await (const _event of mine(service).watch.events(runId, { signal: new AbortController().signal })) {
    const view = await mine(service).read.view(runId);
    if (view?.run.status === status) return view;
  }
  throw new Error(
    `run ${runId} ended as ${(await mine(service).read.view(runId))?.run.status}, not ${status}`,
  );
}

/** Waits until the run has asked for so many approvals and waits for a person; its view then. */
export async function reachAsked(service: RunsByHolder, runId: string, count: number): Promise<RunView> {
  let asked = 0;
  await follow(service, runId, ({ kind }) => kind === "approval_requested" && (asked += 1) === count);
  return reach(service, runId, "input_required");
}

export async function startRun(service: RunService, task: string, extra: object = {}): Promise<Run> {
  const outcome = await mine(service).control.start({ task, ...extra });
  if (!outcome.ok) throw new Error(outcome.message);
  return outcome.run;
}

/** The tool calls all at once; when they are answered, the answers as the final text. */
export const calling = (...toolCalls: ScriptedToolCall[]): ScriptedModel => callingInTurn(toolCalls);

/** The tool calls of one reply after those of the other, then the answers as the final text. */
export const callingInTurn = (...replies: ScriptedToolCall[][]): ScriptedModel =>
  scriptedModel(({ messages }): ScriptedReply => {
    const last = messages.findLastIndex((message) => HumanMessage.isInstance(message));
    const answers = messages.slice(last).filter((message) => ToolMessage.isInstance(message));
    const reply = messages.slice(last).filter((message) => AIMessage.isInstance(message)).length;
    const toolCalls = replies[reply];
    return toolCalls ? { toolCalls } : { text: answers.map((message) => message.text).join("; ") };
  });

export const note = (text: string): ScriptedToolCall => ({ name: "note", args: { text } });

/** A tool with an outside effect: pushes its text to `notes`, after `before` if there is one. */
export function noteTool(notes: string[], before?: (text: string, signal?: AbortSignal) => Promise<void>) {
  return tool(
    async ({ text }, config: { signal?: AbortSignal }) => {
      await before?.(text, config.signal);
      notes.push(text);
      return `noted ${text}`;
    },
    { name: "note", description: "Notes a text.", schema: z.object({ text: z.string().max(20) }) },
  );
}

/** Asks a person about the notes whose text ends so. */
export const askedAbout = (end: string) => ({
  note: {
    when: ({ args }: { args: Record<string, unknown> }) => String(args["text"]).endsWith(end),
  },
});

export const APPROVE = { type: "approve" } as const;

/** Decides the run's approvals with these texts, in this order. */
export async function approve(service: RunService, runId: string, ...texts: string[]): Promise<void> {
  for (const text of texts) {
    const view = await mine(service).read.view(runId);
    const approval = view?.requests.filter(isApproval).find(({ args }) => args["text"] === text);
    if (approval === undefined) throw new Error(`no approval asks for ${text}`);
    const outcome = await mine(service).requests.answer(
      runId,
      { requestId: approval.id, answer: APPROVE },
      "test",
    );
    if (!outcome.ok || outcome.how === "repeated") throw new Error(`${text} could not be approved`);
  }
}

export const kinds = (events: RunEvent[]): string[] => events.map(({ kind }) => kind);
