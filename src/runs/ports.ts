/** Storage ports of runs. Drivers below `storage/` implement these ports; nobody above sees a database. */
import type {
  AgentEvent,
  AgentInput,
  AgentPath,
  ChildRun,
  ChildRuns,
  EffectLog,
  Inbox,
  SamplingReply,
  SamplingRequest,
  TracePlace,
} from "../agent/agent.ts";
import type { Clock } from "../core/clock.ts";
import type { Changes, RunChoices } from "./choices.ts";
import type { RunEvent, RunEventKind, JournalEntry } from "./events.ts";
import type { PrunePlan, PruneContext, PruneReport, Retention } from "./retention.ts";
import type {
  FailureDetails,
  Grant,
  ModelCall,
  OpenModelCall,
  PendingRequest,
  Place,
  Principal,
  Run,
  RunFilter,
  RunHead,
  RunRequest,
  RunSchedule,
  RunStatus,
  RunSummary,
} from "./run.ts";
import type { Advanced, Schedule, ScheduleView, Skip, Step } from "./schedule.ts";
import type { NewsRepository } from "./news.ts";
import type { Fence, ProposalRows, RunReviews } from "./proposals.ts";
import type { ApprovalRule } from "../rules/call.ts";
import type { ShareRows } from "./shares.ts";
import type { Answer, AskedContent, PersonAnswer } from "../tools/request.ts";
import type { Checkpoints } from "./thread-ports.ts";

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
export const fenceOf = (lease: Lease, runs: Pick<RunRepository, "isHeld">): Fence => ({
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

/** A message for a run that is not over. */
interface NewMessage {
  id: string;
  text: string;
  idempotencyKey?: string | undefined;
  /** The call that made it instead of starting a run; the run's answer is for that call from now on. */
  call?: StartRequest;
  now: number;
}

type Sent =
  | { kind: "sent" | "repeated" | "ended"; run: Run }
  | { kind: "not_found" }
  /** The key already stands for another message or run, which this id names. */
  | { kind: "conflict"; runId: string };

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
type Page = { limit: number; before?: string | undefined };

/** Queries that a holder makes as they are. A run of another principal looks like one that does not exist. */
export interface HolderQueries {
  /** Newest first. */
  list(principal: Principal, page: Page): Promise<RunHead[]>;
  /** Lists the runs that match the filter, with the facts that a list shows. */
  summaries(principal: Principal, filter: RunFilter, page: Page): Promise<RunSummary[]>;
  counts(principal: Principal): Promise<Record<RunStatus, number>>;
  /** Requests that wait for a person in any run of the principal, oldest first. */
  pending(principal: Principal, limit: number): Promise<PendingRequest[]>;
  /** Lists background tasks in their order. Empty for an unknown run. */
  children(principal: Principal, runId: string): Promise<ChildRun[]>;
  countPending(principal: Principal): Promise<number>;
  /** Events from the end of the journal, newest first. Returns `undefined` if there is no such run. */
  recentEvents(principal: Principal, runId: string, wanted: RecentEvents): Promise<RunEvent[] | undefined>;
  /** Model calls that a client is to answer, oldest first; none for an unknown run. */
  modelCalls(principal: Principal, runId: string): Promise<ModelCall[]>;
}

/** Reads runs, also for the parts of the service. */
export interface RunQueries extends HolderQueries {
  run(principal: Principal, runId: string): Promise<Run | undefined>;
  /** The run, and at most `limit` events with `seq > after`, oldest first. */
  journal(
    principal: Principal,
    runId: string,
    after: number,
    limit: number,
  ): Promise<JournalPage | undefined>;
  picture(
    principal: Principal,
    runId: string,
    after: number,
    limit: number,
  ): Promise<
    | {
        run: Run;
        events: readonly RunEvent[];
        /** Oldest first. */
        requests: RunRequest[];
        grants: Grant[];
        /** Absent: it does not wait for its turn. */
        place?: Place | undefined;
        modelCalls: OpenModelCall[];
      }
    | undefined
  >;
  request(principal: Principal, runId: string, requestId: string): Promise<RunRequest | undefined>;
  grants(principal: Principal, runId: string): Promise<Grant[]>;
  modelReply(principal: Principal, runId: string, callId: string): Promise<SamplingReply | undefined>;
  /** Returns why a run is not started with this request, or need not be; undefined if it can be. */
  obstacle(
    principal: Principal,
    request: StartRequest,
    limits: Pick<NewRun, "environment" | "openRuns">,
  ): Promise<Exclude<Created, { kind: "created" }> | undefined>;
}

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

/**
 * Outcome of an agent's pause. `waiting`, for people or a client's model: the lease is released. `answered`: an
 * answer arrived before that, and the agent is resumed at once. `stuck`: no person can still answer the agent's
 * questions.
 */
type PauseOutcome = "waiting" | "answered" | "stuck";

/**
 * Outcome of an agent's end. `unread`: the run got a message that the agent has not read. `waiting`: it continues
 * when a background subagent ends; the lease is released. In both cases the run has not ended.
 */
type CompleteOutcome = "completed" | "unread" | "waiting";

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

/** Access to a run under its lease, each method in one transaction. Throws LeaseLostError without the lease. */
export interface WorkLog {
  nextInput(lease: Lease): Promise<AgentInput>;
  /** True if people answered and the agent has not been resumed with it. */
  hasAnswers(lease: Lease): Promise<boolean>;
  tracePlace(lease: Lease): TracePlace;
  inbox(lease: Lease): RunInbox;
  /** Returns the log of the run's calls with outside effects. `onFailure` is called if they cannot be stored. */
  effectLog(lease: Lease, clock: Clock, onFailure: (error: unknown) => void): EffectLog;
  /** The agent has the task in its state, which is on the disk first: from here on it continues. */
  markHandedOver(lease: Lease): Promise<void>;
  /** Journals events with their effects on the run; a repeat changes nothing. Durable with the next other method. */
  record(lease: Lease, entries: readonly JournalEntry[], now: number): Promise<void>;
  /** Stores the requests of an interrupt. Those that are stored already, answered or not, stay as they are. */
  ask(
    lease: Lease,
    agent: AgentPath,
    interruptId: string,
    contents: readonly AskedContent[],
    now: number,
  ): Promise<void>;
  /** Ends a question of a call at work, and returns its answer. Without an answer, the question is withdrawn. */
  takeHeld(lease: Lease, questionId: string, now: number): Promise<Answer | undefined>;
  /** Withdraws the questions of calls that an earlier process was working on. */
  forgetHeld(lease: Lease, now: number): Promise<void>;
  /** The agent waits for people; `delivered` are the interrupts whose answers it was resumed with. */
  pause(
    lease: Lease,
    paused: Omit<Extract<AgentEvent, { kind: "paused" }>, "kind">,
    delivered: readonly Delivered[],
    inbox: RunInbox,
    now: number,
  ): Promise<PauseOutcome>;
  complete(lease: Lease, result: RunResult, inbox: RunInbox, now: number): Promise<CompleteOutcome>;
  reviews(lease: Lease): RunReviews;
  /** The subagents of the run that work in the background. */
  children(lease: Lease, clock: Clock, newThreadId: () => string): ChildRuns;
  fail(lease: Lease, failure: FailureDetails, now: number): Promise<void>;
  /** Breaks off without ending; `stopped`: nothing works on it here any more, so that others may at once. */
  park(lease: Lease, stopped: boolean, now: number): Promise<void>;
  /** Stores a model call for clients to answer, under its id; returns its reply if it has one. */
  askModel(
    lease: Lease,
    request: SamplingRequest,
    now: number,
  ): Promise<{ id: string; reply?: SamplingReply }>;
  /** Makes the run wait for this call. Returns a reply that arrived at the last moment. */
  awaitModel(lease: Lease, callId: string, now: number): Promise<SamplingReply | undefined>;
}

/** All schedules. Every method is one transaction, and durable when it resolves. */
export interface ScheduleRepository {
  add(schedule: Schedule, most: number): Promise<"added" | "name_taken" | "too_many">;
  find(principal: Principal, id: string): Promise<Schedule | undefined>;
  /** In the order in which they were added. */
  list(principal: Principal): Promise<ScheduleView[]>;
  listAll(): Promise<ScheduleView[]>;
  /** Stores `after` in the place of `before`. `stale`: it was changed since it was read. */
  edit(
    before: Schedule,
    after: Schedule,
    skipped: Skip | undefined,
  ): Promise<"edited" | "name_taken" | "stale">;
  /** False: no such schedule. */
  pause(principal: Principal, id: string, now: number): Promise<boolean>;
  /** Lets it continue at `dueAt`. False: it was changed since it was read. */
  resume(schedule: Schedule, dueAt: number, skipped: Skip | undefined): Promise<boolean>;
  /** Removes it with its skips; its runs stay. False: no such schedule. */
  remove(principal: Principal, id: string): Promise<boolean>;
  /** The schedules of an environment that are due, and the next time that one is. */
  due(environment: string, now: number): Promise<{ due: Schedule[]; next: number | undefined }>;
  /** Starts or skips occurrences and stores the next due time, in one transaction. */
  advance(schedule: Schedule, step: Step, fresh: NewRun): Promise<Advanced>;
  /** Starts a run outside the times of a schedule. */
  runNow(schedule: Schedule, fresh: NewRun): Promise<Created | { kind: "previous_open"; run: Run }>;
}

/** The approval rules of people. */
export interface RuleRows {
  /** Oldest first. */
  list(principal: Principal): Promise<ApprovalRule[]>;
  /** Removes a rule at once, also for runs at work. False: there is none. */
  remove(principal: Principal, id: string): Promise<boolean>;
}

/** All runs. Every method is one transaction, durable when it resolves. Throws StorageError if storage fails. */
export interface RunRepository extends ProposalRows {
  readonly read: RunQueries;
  readonly schedules: ScheduleRepository;
  readonly shares: ShareRows;
  readonly rules: RuleRows;
  readonly news: NewsRepository;
  create(principal: Principal, request: StartRequest, fresh: NewRun): Promise<Created>;
  /** The newest call that waits for this run is the one with this request. */
  awaitedBy(principal: Principal, runId: string, request: StartRequest): Promise<void>;
  /** A client was sent what became of the run, in answer to a call that began at `begunAt`. */
  answered: (principal: Principal, runId: string, begunAt: number) => Promise<void>;
  send(principal: Principal, runId: string, message: NewMessage): Promise<Sent>;
  /** `ended`: it had ended before. A server at work keeps the lease until it stops. `undefined`: no such run. */
  cancel(
    principal: Principal,
    runId: string,
    reason: string,
    now: number,
  ): Promise<{ run: Run; ended: boolean } | undefined>;
  /** `null`: the task stands for it again. False: no such run. */
  rename(principal: Principal, runId: string, name: string | null): Promise<boolean>;
  /** Takes an ended run from its principal; `prune` deletes it. False: somebody works on it, or no such run. */
  disown(principal: Principal, runId: string): Promise<boolean>;
  /** Returns the request as answered; a deadline that has passed answers. Undefined if it was not pending any more. */
  answer(
    principal: Principal,
    answered: AnsweredRequest,
    by: string,
    now: number,
  ): Promise<RunRequest | undefined>;
  /** Uses up a signed answer with all its parts. Returns undefined if it was used before, or has a problem. */
  useSignedAnswer(
    run: Run,
    answer: SignedAnswer<AnsweredRequest>,
    now: number,
  ): Promise<UsedAnswer<RunRequest | undefined> | undefined>;
  /** Stores a reply to a model call; false: it was replied to before, or is asked no more. */
  reply(run: Run, callId: string, reply: SamplingReply, now: number): Promise<boolean>;
  /** Closes requests that nobody answered in time, in all runs; returns the changed ones. */
  expire(now: number): Promise<{ runId: string; id: string }[]>;
  /** Notes that a thread is being made as a copy for the principal, before it is. */
  beginCopy(principal: Principal, threadId: string, now: number): Promise<void>;

  /** Claims the next run; `undefined`: none waits. Fails runs that crashed their server `crashLimit` times. */
  claimNext(request: ClaimRequest, crashLimit: number): Promise<Claim | undefined>;
  renew(owner: string, runIds: readonly string[], now: number, expiresAt: number): Promise<void>;
  /** Leases a run that has ended, to work on the copy of its thread; `undefined` while another run may do that. */
  leaseEnded(
    principal: Principal,
    request: { id: string; owner: string; now: number; expires: number },
  ): Promise<Lease | undefined>;
  isHeld(lease: Lease): Promise<boolean>;
  /** Does nothing when the lease is not held any more. */
  release(lease: Lease): Promise<void>;
  /** Takes a lease away from its owner, unless it was renewed since it was seen. */
  revoke(lease: SeenLease): Promise<void>;
  leases(): Promise<SeenLease[]>;
  /** Leases that were not renewed in time, or last when the clock was further ahead than `leaseMs`. */
  expiredLeases(now: number, leaseMs: number): Promise<SeenLease[]>;
  ownedBy(owner: string): Promise<{ id: string; epoch: number; status: RunStatus }[]>;
  work(options: WorkOptions): WorkLog;

  /** Notifies the listener of changes until it is closed. Polls for those of other processes every `pollMs`. */
  watch(listener: RunListener, pollMs: number): { close(): void };
  prune(retention: Retention, context: PruneContext): Promise<PruneReport>;
  /** Preview of `prune`; changes nothing. */
  planPrune(retention: Retention, checkpoints: Checkpoints | undefined, now: number): Promise<PrunePlan>;
  statistics(): Promise<RunStatistics>;
  /** The newest runs of all principals, newest first. */
  listAll(limit: number): Promise<RunHead[]>;
  /** The environments of open runs and of schedules. */
  environments(): Promise<string[]>;
  /** @throws unless runs can be stored now. */
  assertWritable(): Promise<void>;
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
