/** Arguments and results of stored runs, whose methods are in `sql/repository.ts`. */
import type { AgentPath, Inbox, SamplingReply } from "../agent/agent.ts";
import type { PersonAnswer } from "../tools/request.ts";
import type { Changes, RunChoices } from "./choices.ts";
import type { RunEvent, RunEventKind } from "./events.ts";
import type { Fence } from "./proposals.ts";
import type { Principal, Run, RunHead, RunRequest, RunSchedule, RunStatus } from "./run.ts";

/** Right to work on a run, until it is released or revoked for lack of heartbeats. */
export interface Lease {
  readonly runId: string;
  /** Run whose journal records the work: the run itself, or the one that started it in the background. */
  readonly rootId: string;
  readonly principal: Principal;
  /** Number of the run; grows with every run that is started. */
  readonly run: number;
  /** Id of the server process. */
  readonly owner: string;
  /** Number of the claim; grows with every one. */
  readonly epoch: number;
}

/** Someone else works on the run now, or it has ended: whoever gets this must stop at once. */
export class LeaseLostError extends Error {
  constructor(runId: string) {
    super(`The lease of run ${runId} is lost.`);
    this.name = "LeaseLostError";
  }
}

/** The fence that a lease is for the copy of its thread: one run of a thread is leased at a time. */
export const fenceOf = (lease: Lease, runs: { isHeld(lease: Lease): Promise<boolean> }): Fence => ({
  id: `${lease.runId} ${lease.epoch}`,
  check: async () => {
    if (!(await runs.isHeld(lease))) throw new LeaseLostError(lease.runId);
  },
});

export interface ClaimRequest {
  owner: string;
  environment: string;
  /** Number of the last turn each principal had in this process. Default: none had any. */
  turns?: ReadonlyMap<string, number>;
  now: number;
  expiresAt: number;
}

export interface Claim {
  lease: Lease;
  /** The run as it was before the claim. */
  run: Run;
  /** True if a server worked on it before and was interrupted. */
  recovered: boolean;
}

export interface SeenLease {
  runId: string;
  owner: string;
  epoch: number;
  heartbeatAt: number;
  /** False if no connection of its owner is open. Absent or null: the storage does not know. */
  isConnected?: boolean | null;
}

/** A new run and its choices. A message to a run at work changes none of its choices. */
export interface StartRequest extends RunChoices {
  task: string;
  /**
   * Continues this thread, which must belong to the principal. While a run works in it, the task becomes a message to
   * that run. With the name of a point, such as `thr_a@7`, a new thread begins from that point: with its messages and
   * files, but without waiting approvals.
   */
  threadId?: string;
  /** Id of the thread, if a new one begins; no other thread may have it. Default: a random one. */
  newThreadId?: string;
  /** Starts with an equal key and task return one run. */
  idempotencyKey?: string;
  /** True if an operator of the server chose; see `supervised`. */
  isOperators?: true;
  /** Path of its folder, one of `StartChoices`, or the last names of the path. Default: that of the thread. */
  folder?: string;
  /** Paths of the folders that its client works in. The first that is offered counts if `folder` is absent. */
  clientFolders?: readonly string[];
  /** Start of the call that waits. Until it is `answered`, the same request without a key joins its run. */
  askedAt?: number;
  /** The surface or client that it came from, for the log. */
  by?: string;
}

export interface NewRun {
  runId: string;
  /** Id of the thread, when the request names none or a point of another. */
  newThreadId: string;
  environment: string;
  /** Maximum number of the principal's other open runs. Default: any number. */
  openRuns?: number | undefined;
  schedule?: RunSchedule;
  /** Its way if the request chooses none. Default: direct. */
  changes?: Changes | undefined;
  now: number;
}

export type Created =
  | { kind: "created" | "existing" | "joined"; run: Run }
  | { kind: "conflict"; run: Run }
  | { kind: "thread_not_found" }
  | { kind: "thread_busy"; run: Run }
  | { kind: "too_many_open"; limit: number }
  | { kind: "copy_given_up" };

export interface GivenAnswer {
  requestId: string;
  answer: PersonAnswer;
}

export interface AnsweredRequest {
  request: RunRequest;
  answer: PersonAnswer;
}

/** Everything that a client sent back together, under one signed ID. */
export interface SignedAnswer<Given> {
  /** Good once. */
  id: string;
  /** Why the answer is not accepted; then nothing in it counts. */
  problem?: string | undefined;
  answers: readonly Given[];
  replies: readonly { callId: string; reply: SamplingReply }[];
  /** Channel of the answer. */
  by: string;
}

/** The results of a signed answer, each list in the order of the answer. */
export interface UsedAnswer<Answered> {
  answered: Answered[];
  /** False: it was replied to before, or is no longer asked. */
  replied: boolean[];
}

/** Part of a journal to read from its end. */
export interface RecentEvents {
  limit: number;
  /** Sequence number. Default: from the newest on. */
  before?: number;
  /** Only those of this agent, and not of its subagents. */
  agent?: AgentPath;
  kinds?: readonly RunEventKind[];
}

/** A run and a page of its journal, read after it: when the run is final, the journal holds nothing more. */
export interface JournalPage {
  run: RunHead;
  events: readonly RunEvent[];
}

/** Page of runs: those after the run `before`. An unknown ID is ignored. */
export type Page = { limit: number; before?: string | undefined };

/** Hears of changes after they are stored. */
export interface RunListener {
  /** Owner of this process's leases. Other processes may see that it is connected as long as it listens. */
  readonly owner?: string;
  /** This process changed a run. `fromOutside`: the change did not come from work on it, so it may be claimable now. */
  changed(runId: string, fromOutside: boolean): void;
  /** Another process changed something. */
  changedElsewhere(): void;
  failed(error: unknown): void;
}

/** An interrupt whose answer the agent was resumed with; `again`: not for the first time. */
export interface Delivered {
  interruptId: string;
  again: boolean;
}

export interface RunResult {
  answer: string;
  structured?: unknown;
  /** Reason why the agent ended early with a partial result. */
  stopReason?: string;
}

/** The messages to a run, and how far the agent has read them. */
export interface RunInbox extends Inbox {
  /** Number of the newest message that the agent received. */
  readonly read: number;
}

export interface WorkOptions {
  /** Makes checkpoints durable, before anything that relies on them is. */
  syncCheckpoints?: () => Promise<void>;
  /** Milliseconds after which a new approval is denied. Default: never. */
  deadlineMs?: number | undefined;
  /** Milliseconds after which the agent continues without the answer to a new question. Default: never. */
  questionDeadlineMs?: number | undefined;
}

/** Numbers over the runs of all principals: for whoever operates the server, never for a client. */
export interface RunStatistics {
  runs: Readonly<Record<RunStatus, number>>;
  pendingApprovals: number;
  /** Runs that wait for a server. */
  waiting: number;
  /** When the one was started that waits for longest, in milliseconds since the epoch. */
  waitingSince?: number;
  /** Runs that servers work on. */
  atWork: number;
  /** Milliseconds that news of other servers takes to come, when it was measured last. Absent: there is no such way. */
  newsLagMs?: number;
}
