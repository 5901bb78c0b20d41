/** Dependencies that the parts of the service share. */
import type { Agent } from "../agent/agent.ts";
import type { RunRepository } from "./sql/repository.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { StartChoices } from "./choices.ts";
import type { ChangeFeed } from "./follow.ts";
import type { Fence } from "./proposals.ts";
import type { Run } from "./run.ts";
import type { RunServiceOptions } from "./service.ts";

export interface RunContext extends Pick<
  RunServiceOptions,
  "runs" | "checkpoints" | "environment" | "preflight" | "proposals" | "log"
> {
  schedules: RunRepository["schedules"];
  work: ReturnType<RunRepository["work"]>;
  feed: ChangeFeed;
  /**
   * Runs work on the copy of a finished run, under a lease. Returns undefined if another run of the thread works, or
   * will work, for this many milliseconds. By default it does not wait.
   */
  underLease: <T>(
    run: Pick<Run, "id" | "principal">,
    work: (fence: Fence) => Promise<T>,
    patienceMs?: number,
  ) => Promise<T | undefined>;
  openRuns: number | undefined;
  choices: () => StartChoices;
  clock: Clock;
  newId: IdSource;
  /** An agent for looking at a run or checking a call; it does no work. */
  agentFor: (run: Run) => Promise<Agent>;
}
