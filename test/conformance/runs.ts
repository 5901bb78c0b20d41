import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { buildAgent, type Agent } from "../../src/agent/agent.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../src/backends/runtime.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { Run } from "../../src/runs/run.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import type { RunService } from "../../src/runs/service.ts";
import { createRunService } from "../../src/runs/supervisor.ts";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { scriptedModel, type ScriptedModel, type ScriptedReply } from "../support/scripted-model.ts";
import { Job } from "./fixtures/tasks.ts";

export interface FixtureRuns {
  service: RunService;
  close(): Promise<void>;
}

/** Runs on disk whose agents do the job that is written into their task. */
export function openFixtureRuns(): FixtureRuns {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-conformance-"));
  const database = openDatabase(join(folder, "data.sqlite"), { synchronous: "NORMAL" });
  migrate(database, "runs", RUN_MIGRATIONS);
  const service = createRunService({
    runs: sqliteRuns(database),
    agentFor: (run) => agentFor(run, createCheckpointer(database)),
    tree: () => Promise.resolve(new StateBackend({ files: snapshotFiles() })),
    treeWithThread: () => Promise.resolve(StateBackend),
    searchMemories: () => Promise.resolve({ hits: [] }),
    drawing: () => Promise.resolve("graph TD;"),
    preflight: () => Promise.resolve(undefined),
    environment: "conformance",
    concurrentRuns: 8,
    log: silentLogger,
  });
  return {
    service,
    close: async () => {
      await service.close();
      database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function agentFor(run: Run, checkpointer: ReturnType<typeof createCheckpointer>): Promise<Agent> {
  const job = Job.parse(JSON.parse(run.task));
  return buildAgent({
    checkpointer,
    model: modelFor(job),
    tools: [remove],
    interruptOn: { remove: true },
  });
}

const remove = tool(({ file }) => `removed ${file}`, {
  name: "remove",
  description: "Removes a file.",
  schema: z.object({ file: z.string() }),
});

const removing = (...files: string[]): ScriptedReply => ({
  toolCalls: files.map((file) => ({ name: "remove", args: { file } })),
});

function modelFor({ tool: name, args }: Job): ScriptedModel {
  return scriptedModel(({ messages }): ScriptedReply => {
    const isAnswered = messages.some((message) => ToolMessage.isInstance(message));
    switch (name) {
      case "failing_job":
      case "protocol_error_job":
        throw new Error("the job failed");
      case "slow_compute":
        return { text: "computed", delayMs: Number(args["seconds"] ?? 1) * 1000 };
      case "confirm_delete":
        return isAnswered ? { text: "deleted" } : removing("one.txt");
      case "multi_input":
        return isAnswered ? { text: "deleted both" } : removing("one.txt", "two.txt");
      default:
        return { text: `Hello, ${String(args["name"])}!` };
    }
  });
}
