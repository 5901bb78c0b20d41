/** Opens the parts of a server that work on runs and send news. */
import type { Agent } from "../../src/agent/agent.ts";
import { snapshotFiles } from "../../src/backends/runtime.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { Logger } from "../../src/core/logger.ts";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { Courier } from "../../src/runs/courier.ts";
import { NEWS_TYPES, type News, type SendResult } from "../../src/runs/news.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import type { Run } from "../../src/runs/run.ts";
import type { RunService, RunServiceOptions } from "../../src/runs/service.ts";
import { createRunService } from "../../src/runs/supervisor.ts";
import type { Checkpoints } from "../../src/runs/thread-ports.ts";
import type { Workspace } from "./workspace.ts";

export interface OpenServer {
  service: RunService;
  courier: Courier;
}

const ENVIRONMENT = "simulated";

export function openServer({
  runs,
  workspace,
  agentAt,
  checkpoints,
  send,
  clock,
  timing,
  log,
}: {
  runs: RunRepository;
  workspace: Workspace;
  agentAt: (run: Run) => Promise<Agent>;
  checkpoints: Checkpoints;
  send: (news: News) => Promise<SendResult>;
  clock: Clock;
  /** Default: that of the product. */
  timing?: NonNullable<RunServiceOptions["timing"]>;
  log: Logger;
}): OpenServer {
  const proposals = new WorkspaceProposals({ dir: workspace.copies, without: [], maxBytes: 1e8, clock });
  const service = createRunService({
    runs,
    proposals,
    agentFor: async (run, _lender, fence) => {
      if (run.changes === "propose") await proposals.open(run, workspace.folder, fence);
      return agentAt(run);
    },
    checkpoints: async () => checkpoints,
    tree: async () => new StateBackend({ files: snapshotFiles() }),
    treeWithThread: async () => StateBackend,
    searchMemories: async () => ({ hits: [] }),
    drawing: async () => "",
    preflight: async () => undefined,
    environment: ENVIRONMENT,
    concurrentRuns: 4,
    crashLimit: 1000,
    startsSchedules: true,
    log,
    clock,
    ...(timing === undefined ? {} : { timing }),
  });
  const channels = [{ target: "hook", types: NEWS_TYPES, send }];
  const courier = new Courier({ news: runs.news, channels, environment: ENVIRONMENT, clock, log });
  return { service, courier };
}
