// A server process that is killed at random: runs over the databases of a folder, spoken to in lines.
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Agent } from "../../src/agent/agent.ts";
import { openMcpTools } from "../../src/agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../src/agent/mcp-tools/server-config.ts";
import { createLogger } from "../../src/core/logger.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import { createRunService } from "../../src/runs/supervisor.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import type { PersonDecision } from "../../src/tools/request.ts";
import type { StartRequest } from "../../src/runs/ports.ts";
import type { RunService } from "../../src/runs/service.ts";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { openAgent, openFiles } from "./agent.ts";

interface Opening {
  folder: string;
  /** How long a server may be stopped before others take its runs. Default 5000. */
  leaseMs?: number;
  /** The program of another MCP server. Default: none is configured. */
  linesServer?: string;
}

export type Request =
  | ({ method: "open" } & Opening)
  | { method: "start"; request: StartRequest }
  | { method: "decide"; runId: string; approvalId: string; decision: PersonDecision }
  | { method: "tell"; runId: string; text: string; key: string }
  | { method: "cancel"; runId: string }
  | { method: "view"; runId: string }
  | { method: "points"; runId: string }
  | { method: "events"; runId: string; after: number }
  | { method: "follow"; runId: string };

const OWNER = "local";
/** A server that is only slow keeps its runs; those of one that was killed are taken at the next heartbeat. */
const TIMING = { pollMs: 20, heartbeatMs: 50 };

interface Opened {
  runs: RunService;
  close(): Promise<void>;
}

async function openService({ folder, leaseMs = 5000, linesServer }: Opening): Promise<Opened> {
  const database = openDatabase(join(folder, "deepagent.db"));
  migrate(database, "runs", RUN_MIGRATIONS);
  const checkpoints = openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" });
  const checkpointer = createCheckpointer(checkpoints);
  const backend = await openFiles(folder);
  const log = createLogger("warn");
  const mcp = openMcpTools(otherServers(folder, linesServer), { env: {}, version: "1", log });
  let agent: Promise<Agent> | undefined;
  const runs = createRunService({
    runs: sqliteRuns(database),
    agentFor: () => (agent ??= openAgent(folder, backend, checkpointer, mcp)),
    checkpoints: async () => checkpointer,
    tree: () => Promise.resolve(backend),
    treeWithThread: () => Promise.resolve(backend),
    searchMemories: () => Promise.resolve({ hits: [] }),
    drawing: () => Promise.resolve("graph TD;"),
    preflight: () => Promise.resolve(undefined),
    environment: "crash",
    concurrentRuns: 8,
    crashLimit: Number.POSITIVE_INFINITY,
    log,
    timing: { ...TIMING, leaseMs },
  });
  const close = async (): Promise<void> => {
    await runs.close();
    await mcp.close();
    for (const open of [database, checkpoints]) open.close();
  };
  return { runs, close };
}

const otherServers = (folder: string, program: string | undefined): Record<string, McpServerConfig> =>
  program === undefined
    ? {}
    : {
        lines: {
          command: process.execPath,
          args: [program, join(folder, "lines.txt")],
          env: {},
          timeout: 60,
          approve: "none",
        },
      };

/** The whole journal of a run, read while it grows. */
async function follow(runs: RunService, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  const { signal } = new AbortController();
  for await (const event of runs.as({ principal: OWNER }).watch.events(runId, { signal })) events.push(event);
  return events;
}

let service: Promise<Opened> | undefined;

async function answer(request: Request): Promise<unknown> {
  if (request.method === "open") {
    service = openService(request);
    await service;
    return {};
  }
  if (service === undefined) throw new Error("not open");
  const { runs } = await service;
  switch (request.method) {
    case "start":
      return runs.as({ principal: OWNER }).control.start(request.request);
    case "decide":
      return runs
        .as({ principal: OWNER })
        .requests.answer(request.runId, { requestId: request.approvalId, answer: request.decision }, "test");
    case "tell":
      return runs
        .as({ principal: OWNER })
        .control.tell(request.runId, { text: request.text, idempotencyKey: request.key });
    case "cancel":
      return runs.as({ principal: OWNER }).control.cancel(request.runId, "enough");
    case "view":
      return runs.as({ principal: OWNER }).read.view(request.runId);
    case "points":
      return runs.as({ principal: OWNER }).read.points(request.runId);
    case "events":
      return runs.as({ principal: OWNER }).read.events(request.runId, { after: request.after });
    case "follow":
      return follow(runs, request.runId);
  }
}

/** As the program does: parks what runs, then ends. */
process.once("SIGTERM", () => {
  const opened = service?.catch(() => undefined);
  void Promise.resolve(opened)
    .then((one) => one?.close())
    .then(() => process.exit(0));
});

const send = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`);

send({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...request } = JSON.parse(line) as Request & { id: number };
  answer(request).then(
    (result) => send({ id, result }),
    (error: unknown) => send({ id, error: String(error) }),
  );
}
process.exit(0);
