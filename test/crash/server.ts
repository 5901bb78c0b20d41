// A server process that is killed at random: runs over the databases of a folder, spoken to in lines.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { buildAgent, type Decision } from "../../src/agent/agent-core.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import type { SandboxBackend } from "../../src/backends/backend.ts";
import { openBubblewrap } from "../../src/backends/sandbox/bubblewrap.ts";
import { LocalShellBackend } from "../../src/backends/sandbox/local-shell.ts";
import { StateBackend } from "../../src/backends/state.ts";
import { createLogger } from "../../src/core/logger.ts";
import { RUN_MIGRATIONS } from "../../src/runs/stores/schema.ts";
import { createRunService } from "../../src/runs/supervisor.ts";
import type { RunEvent } from "../../src/runs/run.ts";
import type { RunService } from "../../src/runs/service.ts";
import { createCheckpointer } from "../../src/storage/checkpointer.ts";
import { openDatabase } from "../../src/storage/database.ts";
import { migrate } from "../../src/storage/migrations.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { nextReply } from "./script.ts";

export type Request =
  | { method: "open"; folder: string }
  | { method: "start"; key: string }
  | { method: "decide"; runId: string; approvalId: string; decision: Decision }
  | { method: "view"; runId: string }
  | { method: "follow"; runId: string };

const OWNER = "local";
/** A server that is only slow keeps its runs; those of one that was killed are taken at the next heartbeat. */
const TIMING = { pollMs: 20, heartbeatMs: 50, leaseMs: 5000 };

/** Commands in the sandbox where there is one. */
async function openWorkspace(rootDir: string): Promise<SandboxBackend> {
  const opened = await openBubblewrap({ rootDir, mountPath: "/workspace" });
  return opened.ok ? opened.backend : new LocalShellBackend({ rootDir, virtualMode: true });
}

async function openService(folder: string): Promise<RunService> {
  const workspace = join(folder, "workspace");
  const log = join(folder, "lines.txt");
  const database = openDatabase(join(folder, "deepagent.db"));
  migrate(database, "runs", RUN_MIGRATIONS);
  const checkpointer = createCheckpointer(
    openDatabase(join(folder, "checkpoints.db"), { synchronous: "NORMAL" }),
  );
  const backend = new CompositeBackend(
    new StateBackend(),
    { "/workspace": await openWorkspace(workspace) },
    { executor: "/workspace" },
  );
  const append = tool(
    async ({ line }) => {
      await delay(Math.random() * 5);
      appendFileSync(log, `${line}\n`);
      await delay(Math.random() * 5);
      return "appended";
    },
    { name: "append", description: "Appends a line.", schema: z.object({ line: z.string() }) },
  );
  const lines = {
    name: "lines",
    description: "All lines.",
    schema: z.object({}),
    kind: "read" as const,
    invoke: () => (existsSync(log) ? readFileSync(log, "utf8") : ""),
  };
  const needsPerson = ({ args }: { args: Record<string, unknown> }) =>
    /(ask|deny|change)/.test(String(args["line"] ?? args["command"]));
  const agent = buildAgent({
    model: scriptedModel(({ messages }) => nextReply(messages)),
    tools: [append, lines],
    interruptOn: { append: { when: needsPerson }, execute: { when: needsPerson } },
    backend,
    checkpointer,
  });
  return createRunService({
    database,
    agentFor: () => Promise.resolve(agent),
    checkpoints: checkpointer,
    tree: () => Promise.resolve(backend),
    treeWithThread: () => Promise.resolve(backend),
    searchMemories: () => Promise.resolve({ hits: [] }),
    preflight: () => Promise.resolve(undefined),
    environment: "crash",
    concurrentRuns: 8,
    crashLimit: Number.POSITIVE_INFINITY,
    log: createLogger("warn"),
    timing: TIMING,
  });
}

/** The whole journal of a run, read while it grows. */
async function follow(runs: RunService, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  const { signal } = new AbortController();
  for await (const event of runs.watch(OWNER, runId, { signal })) events.push(event);
  return events;
}

let service: Promise<RunService> | undefined;

async function answer(request: Request): Promise<unknown> {
  if (request.method === "open") {
    service = openService(request.folder);
    await service;
    return {};
  }
  if (service === undefined) throw new Error("not open");
  const runs = await service;
  switch (request.method) {
    case "start":
      return runs.start(OWNER, { task: `main ${request.key}`, idempotencyKey: request.key });
    case "decide":
      return runs.decide(OWNER, request.runId, request.approvalId, request.decision, "test");
    case "view":
      return runs.view(OWNER, request.runId);
    case "follow":
      return follow(runs, request.runId);
  }
}

process.stdout.write(`${JSON.stringify({ ready: true })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...request } = JSON.parse(line) as Request & { id: number };
  void answer(request).then((result) => process.stdout.write(`${JSON.stringify({ id, result })}\n`));
}
process.exit(0);
