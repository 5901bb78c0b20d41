// A server that works on one run, and kills itself at a given point of it: at a model call, or at a write of the
// journal or of the thread. Without such a point it brings the run to its end and prints what is stored.
import { HumanMessage } from "@langchain/core/messages";
import { backgroundTasksMiddleware, buildAgent } from "../../src/agent/agent.ts";
import { snapshotFiles } from "../../src/backends/runtime.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { silentLogger as logger } from "../../src/core/logger.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import type { StoredWork } from "../../src/runs/sql/work.ts";
import { createRunService } from "../../src/runs/supervisor.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import { openSqlite } from "../../src/storage/sqlite/storage.ts";
import { findings, isJudge, met, notMet } from "../support/judge.ts";
import { type ScriptedReply, scriptedModel } from "../support/scripted-model.ts";

export interface JournalServer {
  /** A folder, or a Postgres and its schema. */
  place: string | { url: string; schema: string };
  /** Number of the point at which it ends, from 1. */
  killAt?: number;
}

export interface Stored {
  status: string;
  /** Points that this process has passed. */
  points: number;
  usage: { inputTokens: number; outputTokens: number };
  events: RunEvent[];
  /** Texts of replies in the run's threads. */
  replies: string[];
}

const { place, killAt }: JournalServer = JSON.parse(process.argv[2] ?? "") as JournalServer;

let points = 0;
const pass = (): void => {
  points += 1;
  if (points === killAt) process.kill(process.pid, "SIGKILL");
};
/** Passes a point before and after. */
const between = async <T>(work: () => Promise<T>): Promise<T> => {
  pass();
  const result = await work();
  pass();
  return result;
};

const write = (path: string) => ({ name: "write_file", args: { file_path: path, content: "x" } });
const delegate = (name: string, description: string) => ({
  name,
  args: { description, subagent_type: "general-purpose" },
});

let said = 0;
const model = scriptedModel(async (request) => {
  await between(async () => undefined);
  said += 1;
  // Names of files are those of the conversation, so that a call that is made again does the same.
  const { messages } = request;
  const replies = messages.filter((message) => message.type === "ai").length;
  const told = messages.filter((message) => HumanMessage.isInstance(message)).map(({ text }) => text);
  const text = `said ${process.pid}.${said}.`;
  const usage = { inputTokens: 100 + said, outputTokens: 10 };
  if (isJudge(request)) {
    const isMet = told.some((one) => one.includes("final 2"));
    return { text, usage, ...findings(isMet ? met : notMet("no file")) };
  }
  const toolCalls = callsAfter(replies, told[0]?.startsWith("child") === true);
  if (toolCalls !== undefined) return { text, usage, toolCalls };
  const judged = told.filter((one) => one.includes("judge checked the goal")).length;
  return { text: `${text} final ${judged + 1}`, usage };
});

function callsAfter(replies: number, isChild: boolean): ScriptedReply["toolCalls"] {
  if (isChild) return replies === 0 ? [write("/of-child.txt")] : undefined;
  const calls = [
    [write("/one.txt"), write("/two.txt")],
    [delegate("task", "child: look")],
    [delegate("start_async_task", "child: look behind")],
  ];
  return calls[replies];
}

const storage =
  typeof place === "string" ? await openSqlite(place, logger) : await openPostgres({ ...place, logger });
const { checkpointer } = await storage.forAgents();
for (const name of ["put", "putWrites"] as const) {
  const stored = checkpointer[name].bind(checkpointer) as (...args: unknown[]) => Promise<never>;
  Object.assign(checkpointer, { [name]: (...args: unknown[]) => between(() => stored(...args)) });
}
const runs = {
  ...storage.runs,
  work: (options: Parameters<typeof storage.runs.work>[0]): StoredWork => {
    const work = storage.runs.work(options);
    const { record } = work;
    return Object.assign(work, {
      record: (...args: Parameters<typeof record>) => between(() => record(...args)),
    });
  },
};
const service = createRunService({
  runs,
  clock: storage.clock,
  checkpoints: async () => checkpointer,
  agentFor: async () =>
    buildAgent({
      model,
      checkpointer,
      middleware: [backgroundTasksMiddleware()],
      goal: { criteria: ["there is a file"], rounds: 3 },
    }),
  tree: async () => new StateBackend({ files: snapshotFiles() }),
  treeWithThread: async () => StateBackend,
  searchMemories: async () => ({ hits: [] }),
  drawing: async () => "",
  preflight: async () => undefined,
  environment: "test",
  concurrentRuns: 2,
  crashLimit: Number.POSITIVE_INFINITY,
  log: logger,
  timing: { pollMs: 20, heartbeatMs: 50 },
});
const started = await service
  .as({ principal: "me" })
  .control.start({ task: "work", goal: ["there is a file"], idempotencyKey: "one" });
if (!started.ok) throw new Error(started.message);
const { id, threadId } = started.run;
for await (const _event of service
  .as({ principal: "me" })
  .watch.events(id, { signal: new AbortController().signal }));
const view = await service.as({ principal: "me" }).read.view(id);
const children = await service.as({ principal: "me" }).read.children(id);
const replies: string[] = [];
for (const thread of [threadId, ...children.map((child) => child.threadId)]) {
  for (const { messages } of await checkpointer.writtenWith(thread, "said "))
    replies.push(...(JSON.stringify(messages).match(/said \d+\.\d+\./g) ?? []));
}
const stored: Stored = {
  status: view?.run.status ?? "",
  points,
  usage: view?.run.usage ?? { inputTokens: 0, outputTokens: 0 },
  events: (await service.as({ principal: "me" }).read.events(id)) ?? [],
  replies,
};
process.stdout.write(JSON.stringify(stored), () => process.exit(0));
