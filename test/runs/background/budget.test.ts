import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, onTestFinished, test } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { silentLogger as log } from "../../../src/core/logger.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { createRunService } from "../../../src/runs/supervisor.ts";
import { openPostgres } from "../../../src/storage/postgres/storage.ts";
import { openSqlite } from "../../../src/storage/sqlite/storage.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { postgresSuite } from "../../storage/postgres-suite.ts";
import { filesIn } from "../../support/files-in.ts";
import { FAST, reach, startRun } from "../support.ts";
import { agentWith, repliesIn, start, startedIn } from "./support.ts";

const CHILDREN = 8;
/** Less than the estimate of a first call, so that no reply is a surprise. */
const PER_REPLY = 1000;
const LIMIT = 24_000;

interface Spending {
  limits: { tokens?: number; costUsd?: number };
  /** Use of a reply; default `PER_REPLY`, almost all of it input. */
  usage?: { inputTokens: number; outputTokens: number };
}

/** Eight children on two servers call the model until a limit stops them; returns the calls of each agent. */
async function spendAll(
  connect: () => Promise<Storage>,
  { limits, usage = { inputTokens: PER_REPLY - 10, outputTokens: 10 } }: Spending,
): Promise<{ calls: number[]; used: number; perReply: number }> {
  const calls = new Map<string, number>();
  const perReply = usage.inputTokens + usage.outputTokens;
  const answer = (agent: string, reply: object) => {
    calls.set(agent, (calls.get(agent) ?? 0) + 1);
    return { usage, ...reply };
  };
  const params = agentWith(
    (request) => {
      const started = startedIn(request).length;
      const tasks = Array.from({ length: CHILDREN }, (_, index) => start(`child ${index}`));
      return answer("main", started === 0 ? { toolCalls: tasks } : { text: "I wait." });
    },
    (request) => {
      const [task] = request.messages.filter((message) => HumanMessage.isInstance(message));
      const looks = [{ name: "ls", args: { path: `/${repliesIn(request)}` } }];
      return answer(task?.text ?? "", { toolCalls: looks, delayMs: 10 });
    },
    { limits: { ...limits, prices: { scripted: { input: 1, output: 1 } } } },
  );
  const serve = async (): Promise<RunService> => {
    const storage = await connect();
    const { checkpointer } = await storage.forAgents();
    const service = createRunService({
      runs: storage.runs,
      clock: storage.clock,
      checkpoints: async () => checkpointer,
      agentFor: async () => buildAgent({ ...params, checkpointer }),
      tree: async () => new StateBackend({ files: snapshotFiles() }),
      treeWithThread: async () => StateBackend,
      searchMemories: async () => ({ hits: [] }),
      drawing: async () => "",
      preflight: async () => undefined,
      environment: "test",
      concurrentRuns: CHILDREN / 2,
      log,
      timing: { ...FAST, leaseMs: 30_000 },
    });
    onTestFinished(async () => {
      await service.close();
      await storage.close();
    });
    return service;
  };
  const [service] = [await serve(), await serve()];
  const run = await startRun(service, "the task");
  const { run: ended, subagents } = await reach(service, run.id, "completed");
  expect(ended.stopReason).toBe(limits.tokens === undefined ? "max_cost" : "max_tokens");
  expect(subagents).toHaveLength(CHILDREN);
  const { inputTokens, outputTokens } = ended.usage;
  // A call that the end of the run broke off was asked for, and has no reply.
  const asked = [...calls.values()].reduce((sum, count) => sum + count, 0);
  expect(inputTokens + outputTokens).toBeLessThanOrEqual(asked * perReply);
  return { calls: [...calls.values()], used: asked * perReply, perReply };
}

/** Replies that are much larger than what is reserved for them. */
const LARGE = [
  ["input", { inputTokens: 30_000, outputTokens: 10 }],
  ["output", { inputTokens: 10, outputTokens: 30_000 }],
] as const;

describe("background agents on two servers stay within the limit that they share", () => {
  const postgres = postgresSuite();
  const storages: [string, () => () => Promise<Storage>, { tags?: string[] }][] = [
    [
      "SQLite",
      () => {
        const folder = filesIn();
        return () => openSqlite(folder, log);
      },
      {},
    ],
    [
      "Postgres",
      () => {
        const schema = postgres.newSchema();
        return () => openPostgres({ url: postgres.url(), schema, logger: log });
      },
      { tags: ["postgres"] },
    ],
  ];
  for (const [name, open, options] of storages) {
    test(`tokens, in ${name}`, { ...options, timeout: 60_000 }, async () => {
      // Only the last call can be too much, because all were estimated well.
      expect((await spendAll(open(), { limits: { tokens: LIMIT } })).used).toBe(LIMIT);
    });

    for (const [kind, usage] of LARGE)
      test(
        `replies with more ${kind} than expected, in ${name}`,
        // Some seconds each in Postgres.
        { ...(options.tags ? { tags: [...options.tags, "long"] } : {}), timeout: 60_000 },
        async () => {
          const tokens = 200_000;
          const { calls, used, perReply } = await spendAll(open(), { limits: { tokens }, usage });
          // Without the last reply of each agent there is less than the limit.
          expect(used - calls.length * perReply).toBeLessThan(tokens);
        },
      );

    test(`money, in ${name}`, { ...options, timeout: 60_000 }, async () => {
      expect((await spendAll(open(), { limits: { costUsd: LIMIT / 1e6 } })).used).toBe(LIMIT);
    });
  }
});
