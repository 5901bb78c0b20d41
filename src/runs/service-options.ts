import type { Agent, ModelLender } from "../agent/agent.ts";
import type { Backend, BackendSource } from "../backends/backend.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { Logger } from "../core/logger.ts";
import type { Database } from "../storage/database.ts";
import type { Checkpoints } from "./prune.ts";
import type { Retention } from "./retention.ts";
import type { Principal, Run } from "./run.ts";
import type { MemorySearch, StartRefusal } from "./service.ts";

/** Times of the machinery, in milliseconds. */
export interface RunTiming {
  /** How often to look for what other processes wrote. Default 100. */
  pollMs: number;
  /** How often leases are renewed. Default 2000. */
  heartbeatMs: number;
  /** How long a lease lives without being renewed. Default 10000. */
  leaseMs: number;
  /** How long a run keeps its place while it waits for a client's model. Default 30000. */
  lendMs: number;
}

export interface RunServiceOptions {
  /** Migrated with `RUN_MIGRATIONS`. Stays the caller's: close it after the service. */
  database: Database;
  /**
   * The agent to work on this run with; called once for each stretch of work. `lender`: the models of the
   * principal's clients.
   */
  agentFor(run: Run, lender: ModelLender): Promise<Agent>;
  /**
   * Gives the checkpoints of its agents, which are made durable before anything that relies on them is
   * acknowledged, and deleted with their runs. Asked when they are first needed. Default: they see to that
   * themselves.
   */
  checkpoints?: () => Promise<Checkpoints>;
  /** Keeps house, now and every hour: which runs to forget. Default: this process does not. */
  retention?: Retention;
  /** Deletes the memories whose time is over, as part of keeping house; gives their number. */
  sweepMemories?: (signal: AbortSignal) => Promise<number>;
  /** The mounts alone. */
  tree(principal: Principal): Promise<Backend>;
  /** The mounts and, everywhere else, the thread's files: the tree the agent has. */
  treeWithThread(principal: Principal): Promise<BackendSource>;
  searchMemories(principal: Principal, query: string, limit: number): Promise<MemorySearch>;
  drawing(principal: Principal): Promise<string>;
  /** Why no new run can work now; `undefined` when it can. */
  preflight(principal: Principal): Promise<{ code: StartRefusal; message: string } | undefined>;
  /**
   * Names what agents of this server work on, such as the workspace and the model. A run is only worked
   * on by servers with the `environment` it was started in, so that it never goes on in another folder.
   */
  environment: string;
  /** Milliseconds after which an approval asked for from now on is denied. Default: it waits. */
  approvalDeadlineMs?: number;
  /** Whether runs may be taken up now; those at work go on. Default: always. */
  mayClaim?: () => boolean;
  /** How many runs to work on at once; the others wait. 0: only looks on, and leaves the work to others. */
  concurrentRuns: number;
  /** How many runs of one principal may be open, at work or waiting, when it starts another. Default: any number. */
  openRuns?: number;
  /**
   * How often a server may end while it works on one run, without ten minutes of work in between, before
   * the run fails with `server_crashes`. Default 10.
   */
  crashLimit?: number;
  log: Logger;
  /** Default: the system's. */
  clock?: Clock;
  /** Tells a clock that was set from a machine that slept; see `patientClock`. Default: with `clock`, that one. */
  machine?: Clock;
  /** Default: random. */
  newId?: IdSource;
  timing?: Partial<RunTiming>;
}
