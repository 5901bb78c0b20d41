import { InMemoryTransport, type AuthInfo } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { ConfigSchema, type ConfigInput } from "../../src/config/schema.ts";
import { monotonicClock, systemClock, type Clock } from "../../src/core/clock.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { CallRules } from "../../src/rules/call.ts";
import type { AgentWork, Approval, OpenQuestion, Run, RunView } from "../../src/runs/run.ts";
import type { RunsByHolder, RunService, RunServiceOptions } from "../../src/runs/service.ts";
import { createServerFactory } from "../../src/server/protocol/create-server.ts";
import { type ServerDeps, createPageLinks } from "../../src/server/contracts/deps.ts";
import { openPageServer } from "../../src/server/page/page-server.ts";
import { createResourceChanges } from "../../src/server/resources/changes.ts";
import { defineTool } from "../../src/tools/tool.ts";
import type { Question } from "../../src/tools/request.ts";
import {
  calling,
  callingInTurn,
  cleanUpWith,
  databaseFile,
  ME,
  note,
  noteTool,
  openServer,
} from "../runs/support.ts";
import {
  connectClient,
  type ClientKind,
  type ClientOptions,
  type Connector,
  type TestClient,
} from "../support/clients.ts";
import { scriptedModel, type ScriptedToolCall } from "../support/scripted-model.ts";

export const STATE_KEY = new Uint8Array(32).fill(7);

export const openCommand: ServerDeps["openCommand"] = ({ id }) => `deepagent-mcp runs open ${id}`;

export interface DepsOptions {
  config?: Partial<ConfigInput>;
  clock?: Clock;
  principalOf?: (auth: AuthInfo | undefined) => string;
  /** Whether there is a local page. Default: there is none. */
  page?: boolean;
}

/** Dependencies of a server with these runs, or with what opens them, which may fail. */
export function depsFor(
  given: RunsByHolder | (() => Promise<RunsByHolder>),
  options: DepsOptions = {},
): ServerDeps {
  const runs = typeof given === "function" ? given : () => Promise.resolve(given);
  const changes = createResourceChanges({ runs, logger: silentLogger });
  cleanUpWith(() => changes.close());
  const clock = options.clock ?? systemClock;
  const ofPage = { runs, clock, key: STATE_KEY, openCommand, settings: {}, logger: silentLogger };
  const page = createPageLinks(() => openPageServer(ofPage), silentLogger);
  cleanUpWith(() => page.close());
  return {
    version: "0.0.0-test",
    config: ConfigSchema.parse({ dataDir: "/nowhere", ...options.config }),
    logger: silentLogger,
    clock,
    monotonic: options.clock ?? monotonicClock,
    runs,
    stateKey: () => Promise.resolve(STATE_KEY),
    principalOf: options.principalOf ?? (() => ME),
    openCommand,
    changes,
    ...(options.page === true ? { page } : {}),
  };
}

/** Reaches the server over a pair of transports in memory; the opening message decides the era. */
export function inMemory(deps: ServerDeps): Connector {
  const open = (): InMemoryTransport => {
    const [client, server] = InMemoryTransport.createLinkedPair();
    const handle = serveStdio(createServerFactory(deps), { transport: server });
    cleanUpWith(() => handle.close());
    return client;
  };
  return {
    first: open,
    modern: open,
  };
}

export async function connect(deps: ServerDeps, options: ClientOptions): Promise<TestClient> {
  const client = await connectClient(inMemory(deps), options);
  cleanUpWith(() => client.close());
  return client;
}

/** Runs whose agent answers at once. */
export function plainRuns(answer = "hello"): RunService {
  return openServer(databaseFile(), { model: scriptedModel(() => ({ text: answer })) }).service;
}

export const connectTo = (service: RunService, kind: ClientKind): Promise<TestClient> =>
  connect(depsFor(service), { kind });

/** Runs whose agent makes these calls at once, each of which a person has to approve, and then answers. */
export function approvalRuns(...calls: ScriptedToolCall[]): {
  service: RunService;
  notes: string[];
  file: string;
} {
  const notes: string[] = [];
  const file = databaseFile();
  const { service } = openServer(file, {
    model: calling(...calls),
    tools: [noteTool(notes)],
    interruptOn: { note: true },
  });
  return { service, notes, file };
}

/** Notes as files of a project: a person may always allow one, or all below its folder. */
const NOTE_RULES: CallRules = {
  judge: () => ({}),
  describe: (_name, { text }) => ({ call: { kind: "edit", paths: [String(text)] }, folder: "/project" }),
  untrustedSource: () => undefined,
};

/** Runs whose agent notes these texts one after the other, each of which rules may allow. */
export function ruledRuns(...texts: string[]) {
  const notes: string[] = [];
  const agent = {
    model: callingInTurn(...texts.map((text) => [note(text)])),
    tools: [noteTool(notes)],
    interruptOn: { note: true },
    callRules: NOTE_RULES,
  };
  return { service: openServer(databaseFile(), agent).service, notes };
}

/** Runs whose agent asks this at once, of any kind, and answers with what it was answered, as JSON. */
export function questionRuns(question: Question, options: Partial<RunServiceOptions> = {}) {
  const file = databaseFile();
  const inquire = defineTool({
    name: "inquire",
    kind: "read",
    description: "Asks a person.",
    schema: z.object({}),
    handle: async (_args, { ask }) => ({ content: JSON.stringify(await ask?.(question)) }),
  });
  const agent = { model: calling({ name: "inquire", args: {} }), tools: [inquire] };
  return { ...openServer(file, agent, options), file, agent };
}

export function anApproval(changes: Partial<Approval> = {}): Approval {
  return {
    kind: "approval",
    id: "int1:0",
    runId: "run_1",
    interruptId: "int1",
    index: 0,
    agent: [],
    tool: "execute",
    args: { command: "npm audit" },
    preview: { kind: "command", summary: "execute npm audit", detail: "npm audit" },
    allowedDecisions: ["approve", "edit", "reject"],
    status: "pending",
    requestedAt: 0,
    ...changes,
  };
}

const WHICH: Question = {
  kind: "ask",
  text: "Which colour?",
  fields: [{ name: "answer", type: "text", required: true }],
};

export function aQuestion({
  question = WHICH,
  ...changes
}: Partial<Omit<OpenQuestion, keyof Question>> & { question?: Question } = {}): OpenQuestion {
  const stored = { id: "int9", runId: "run_1", interruptId: "int9", index: 0, agent: [], requestedAt: 0 };
  return { ...question, ...stored, status: "pending", ...changes };
}

/** What an agent has that did nothing so far. */
export const NO_WORK: AgentWork = {
  toolCalls: 0,
  busy: [],
  model: "",
  usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
};

export function aView({
  run,
  ...changes
}: Partial<Omit<RunView, "run">> & { run?: Partial<Run> } = {}): RunView {
  return {
    run: {
      id: "run_1",
      threadId: "thr_1",
      principal: ME,
      environment: "",
      task: "look around",
      status: "working",
      createdAt: 0,
      updatedAt: 0,
      todos: [],
      usage: { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1 },
      lastSeq: 1,
      ...run,
    },
    requests: [],
    grants: [],
    mainAgent: { ...NO_WORK, startedAt: 0 },
    subagents: [],
    filesChanged: [],
    modelCalls: [],
    models: [],
    activity: "started",
    ...changes,
  };
}
