import type { Agent, AgentPath, ModelLender } from "../agent/agent.ts";
import type { Backend, BackendSource } from "../backends/backend.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { IdSource } from "../core/ids.ts";
import type { ChoiceProblem, StartChoices } from "./choices.ts";
import type { Following } from "./follow.ts";
import type { OtherServers } from "./other-servers.ts";
import type { GivenAnswer, SignedAnswer, StartRequest, UsedAnswer } from "./ports.ts";
import type { Orphans, PrunePlan, PruneReport, Retention } from "./retention.ts";
import type { Checkpoints } from "./thread-ports.ts";
import type { RunEvent } from "./events.ts";
import type { LiveText } from "./live-texts.ts";
import type { Access, MadeWith, ShareOutcome, SharedRuns } from "./shares.ts";
import type {
  Holder,
  OrRefused,
  Principal,
  Run,
  RunHead,
  RunRequest,
  RunView,
  SamplingReply,
} from "./run.ts";
import type {
  RunNowOutcome,
  ScheduleChanges,
  ScheduleOutcome,
  ScheduleRequest,
  ScheduleView,
} from "./schedule.ts";
import type { Fence, ProposedChange, Proposals, ReviewRecord } from "./proposals.ts";
import type { RunRepository } from "./sql/repository.ts";
import type { ReviewChoice } from "../tools/request.ts";

/** Result of a start: a new run, a message to a run at work, or the result of an earlier equal start. */
export type Started = "started" | "told" | "existing" | "joined";

export type StartOutcome = OrRefused<{ run: Run; how: Started }, StartRefusal>;

/** Stable reasons why no run was started. */
type StartRefusal =
  | "thread_not_found"
  | "point_not_found"
  | "idempotency_conflict"
  | "too_many_open_runs"
  | "model_not_configured"
  | "workspace_missing"
  | "folder_not_allowed"
  | "configuration_invalid"
  | ChoiceProblem["code"]
  | "restart_needed"
  | "shutting_down";

/** Describes a new run before its start. */
export interface Readiness extends Partial<StartChoices> {
  /** Specification of its model, such as `anthropic:claude-sonnet-4-5`. Absent: none, or not known. */
  model?: string;
  /** Reason why no run can start now. `remedy`: the command that removes it. */
  refusal?: { code: StartRefusal; message: string; remedy?: string };
}

/** A late answer reaches an agent that continued without one as a message. */
export type AnswerOutcome =
  | OrRefused<{ request: RunRequest; how: "stored" | "repeated" | "told" }, "not_found" | "invalid_answer">
  /** Others, or the deadline, had answered otherwise, or the answer is no longer needed; nothing changed. */
  | { ok: false; code: "already_answered"; message: string; request: RunRequest };

/** `alreadyEnded`: it had ended before; nothing changed. */
export type CancelOutcome = OrRefused<{ run: Run; alreadyEnded: boolean }, "not_found">;

export type LaterReviewOutcome = OrRefused<
  { record: ReviewRecord },
  "not_found" | "open" | "nothing_proposed" | "invalid" | "not_applied"
>;

/** Outcome of deleting a run, or its proposed changes. */
export type DeleteOutcome = OrRefused<object, "not_found" | "open">;

export interface TellRequest {
  text: string;
  /** A repeated message with the same key changes nothing. */
  idempotencyKey?: string;
}

/** `repeated`: it was sent before; nothing changed. */
export type TellOutcome = OrRefused<
  { run: Run; repeated: boolean },
  "not_found" | "ended" | "idempotency_conflict"
>;

/** A moment of a thread that a new one can begin from. */
export interface RunPoint {
  /** Thread to pass to the next start. */
  id: string;
  /** Milliseconds since the epoch. */
  time: number;
  /** ID of its run; absent for the files that a thread began with. */
  runId?: string;
  /** One line: what happened there. */
  summary: string;
}

/** A call of an agent, whole as far as it is still stored. */
export interface CallTexts {
  agent: AgentPath;
  /** When it began, in milliseconds since the epoch. */
  time: number;
  tool: string;
  summary: string;
  args?: Record<string, unknown>;
  result?: { text: string; isError: boolean };
  /** The missing part and the reason, for people. */
  missing?: string;
}

export interface MemoryHit {
  /** Virtual path below `/memories/`. */
  path: string;
  /** Lines around the best match. */
  snippet: string;
  /** Higher is better. */
  score: number;
}

export interface MemorySearch {
  /** Best first. */
  hits: MemoryHit[];
  /** Omissions of the search and their reason; for the person and the model. */
  note?: string;
}

/** These methods without the principal among their parameters, because a handle has it bound. */
type WithoutPrincipal<Group, Names extends keyof Group = keyof Group> = {
  [Name in Names]: Group[Name] extends (principal: Principal, ...args: infer Args) => infer Result
    ? (...args: Args) => Result
    : never;
};

/** Everything that a principal may do with runs, for one holder. `scopes.ts` has the scopes that each method needs. */
export interface PrincipalRuns {
  /** Looks at runs. A run of another principal looks exactly like one that does not exist. */
  readonly read: WithoutPrincipal<
    RunRepository["read"],
    "list" | "summaries" | "counts" | "pending" | "children" | "countPending" | "recentEvents" | "modelCalls"
  > & {
    view(runId: string): Promise<RunView | undefined>;
    /** Events with `seq > after`, oldest first, at most `limit`. Returns `undefined` if there is no such run. */
    events(runId: string, options?: { after?: number; limit?: number }): Promise<RunEvent[] | undefined>;
    /** The points of the run's thread, oldest first. Returns `undefined` if there is no such run. */
    points(runId: string): Promise<RunPoint[] | undefined>;
    /** The call that began with event `seq`. Returns `undefined` if there is no such run or call. */
    callTexts(runId: string, seq: number): Promise<CallTexts | undefined>;
  };
  /** Streams that follow runs, also those that other processes work on. */
  readonly watch: {
    /** Follows the journal to the final event, or until `signal` aborts. */
    events(runId: string, options: Following): AsyncIterable<RunEvent>;
    /**
     * Follows the journal and, if this process works on the run, yields the texts that its agent writes: each whole so
     * far, before the event of its model call. A slow reader gets fewer steps of a text.
     */
    live(runId: string, options: Following): AsyncIterable<RunEvent | LiveText>;
    /** Yields the runs that are started from now on. */
    starts(options: { signal: AbortSignal }): AsyncIterable<RunHead>;
  };
  /** Starts and ends runs, and sends them messages. A change is stored before its method returns. */
  readonly control: {
    /** Stores a new run, or a message to the one at work in its thread; works on it in the background. */
    start(request: StartRequest): Promise<StartOutcome>;
    /** Notes that a client was sent the outcome of the run, in answer to a call that began at `begunAt`. */
    answered(runId: string, begunAt: number): Promise<void>;
    /** Sends a message to an open run: its agent reads it once, before it next asks its model. */
    tell(runId: string, request: TellRequest): Promise<TellOutcome>;
    /**
     * Stores a client's reply to a model call and lets the run continue; the first reply counts. `repeated`: it was
     * replied to before, or is asked no more.
     */
    replyToModel(
      runId: string,
      callId: string,
      reply: SamplingReply,
    ): Promise<OrRefused<{ repeated: boolean }, "not_found">>;
    cancel(runId: string, reason: string): Promise<CancelOutcome>;
    /** Renames a run, and changes nothing else. Without a name, its task is its name. False if the run is unknown. */
    rename(runId: string, name: string): Promise<boolean>;
    /** Deletes an ended run with all that belongs to it. Files in the workspace and memories stay. */
    delete(runId: string): Promise<DeleteOutcome>;
  };
  /** Stores the answers of people to the requests of a run, before a method returns. */
  readonly requests: {
    /** Stores the answer of a person and lets the run continue. The arguments of an edit are validated first. */
    answer(runId: string, given: GivenAnswer, by: string): Promise<AnswerOutcome>;
    /** Returns why `answer` would refuse an answer now, and stores nothing; undefined if it would not. */
    problemOf(runId: string, given: GivenAnswer): Promise<string | undefined>;
    /**
     * Uses up a signed answer of a client and carries it out, even if the process ends in between. Returns undefined,
     * with an event, if any process used it before or it has a `problem`; for an unknown run too. An answer that cannot
     * be carried out does not affect the others.
     */
    useAnswer(
      runId: string,
      signed: SignedAnswer<GivenAnswer>,
    ): Promise<UsedAnswer<AnswerOutcome> | undefined>;
  };
  /** Rules that people saved with approvals. */
  readonly rules: WithoutPrincipal<RunRepository["rules"]>;
  readonly changes: {
    /** Reads the proposed change as it is now. Returns `undefined` if there is none, or no such run. */
    proposed(runId: string, whole?: readonly string[]): Promise<ProposedChange | undefined>;
    /** True if this machine has the copy that the run worked in. */
    hasCopy(runId: string): Promise<boolean>;
    /** Applies proposed changes after the run has ended: all that is chosen, or nothing. */
    review(runId: string, choice: ReviewChoice, by: string): Promise<LaterReviewOutcome>;
    /** Deletes the unapplied changes of a run that has ended. */
    discard(runId: string): Promise<DeleteOutcome>;
  };
  /** Starts runs on schedules. A change is stored before its method returns. */
  readonly schedules: {
    /** In the order in which they were added. */
    list(): Promise<ScheduleView[]>;
    add(request: ScheduleRequest): Promise<ScheduleOutcome>;
    /** Applies the changes. With another expression or time zone, it continues with the next occurrence from now on. */
    edit(id: string, changes: ScheduleChanges): Promise<ScheduleOutcome>;
    /** Starts no runs until it is resumed; one that is paused already stays so. */
    pause(id: string): Promise<ScheduleOutcome>;
    /** Continues with the next occurrence from now on. */
    resume(id: string): Promise<ScheduleOutcome>;
    /** Its runs stay. False: no such schedule. */
    remove(id: string): Promise<boolean>;
    /** Starts a run now, besides those at the times of the schedule. */
    runNow(id: string): Promise<RunNowOutcome>;
  };
  /** Links to runs, and subscriptions: ways to learn of runs without a token. */
  readonly access: {
    /** Makes a link that ends after so many milliseconds. */
    share(runId: string, milliseconds: number, madeWith?: MadeWith): Promise<ShareOutcome>;
    /** All links and subscriptions of the principal, those that end first before the others. */
    list(): Promise<Access[]>;
    /** Ends one of them at once. False: there is none. */
    revoke(id: string): Promise<boolean>;
  };
  /** Events of the principal's runs, and their receivers. */
  readonly news: WithoutPrincipal<
    RunRepository["news"],
    "occurrences" | "subscription" | "subscribe" | "unsubscribe"
  >;
  readonly files: {
    /** The file tree as the run's agent sees it: thread files and mounts. Returns `undefined` if there is no such run. */
    ofRun(runId: string): Promise<Backend | undefined>;
    /** The mounts without a thread: `/workspace/`, `/memories/`, `/skills/`. */
    mounts(): Promise<Backend>;
    searchMemories(query: string, limit: number): Promise<MemorySearch>;
  };
  /** Facts about the agents that new runs get. */
  readonly agents: {
    readiness(): Promise<Readiness>;
    /** The graph of the principal's agents, as text of Mermaid. */
    drawing(): Promise<string>;
    /** The other MCP servers of this process. */
    otherServers(): Promise<OtherServers>;
  };
}

export interface RunsByHolder {
  as(holder: Holder): PrincipalRuns;
}

/** For the operator of the server, never for a client. */
interface RunOperator extends Pick<RunRepository, "statistics" | "listAll" | "assertWritable"> {
  /** Deletes finished runs. */
  prune(retention: Retention, orphans?: Orphans): Promise<PruneReport>;
  planPrune(retention: Retention): Promise<PrunePlan>;
  allSchedules(): Promise<ScheduleView[]>;
  /** The links and subscriptions of all principals. */
  allAccess(): Promise<Access[]>;
  /** Takes up no more runs, and waits so many milliseconds for those at work to end. */
  drain(milliseconds: number): Promise<void>;
  /** Parks what runs (it is found and continued later) and releases everything. */
  close(): Promise<void>;
}

export interface RunService extends RunsByHolder, RunOperator, SharedRuns {}

export interface RunServiceOptions {
  /** Storage of runs. It still belongs to the caller: close it after the service. */
  runs: RunRepository;
  /**
   * The agent for a stretch of work; background tasks share one. `lender`: the models of the principal's clients.
   * `fence`: for the copy of the thread, which neither background tasks nor those who only look may change.
   */
  agentFor(run: Run, lender: ModelLender, fence?: Fence): Promise<Agent>;
  /**
   * Opens the checkpoints of a principal's threads, or of all. They are made durable before an acknowledgement relies
   * on them, and deleted with their runs. Called on first use. Default: agents store checkpoints themselves.
   */
  checkpoints?: (principal?: Principal) => Promise<Checkpoints>;
  /** Deletes finished runs, now and every hour. Default: this process deletes none. */
  retention?: Retention;
  /** Deletes expired memories as part of housekeeping; returns their number. */
  sweepMemories?: (signal: AbortSignal) => Promise<number>;
  /** The mounts alone. */
  tree: (principal: Principal) => Promise<Backend>;
  /** The mounts and, everywhere else, the thread's files: the tree the agent of the run has. */
  treeWithThread(run: Run): Promise<BackendSource>;
  searchMemories: (principal: Principal, query: string, limit: number) => Promise<MemorySearch>;
  drawing: (principal: Principal) => Promise<string>;
  /** The copies of runs that propose their changes. Default: no run can. */
  proposals?: Proposals;
  /** Default: none. */
  otherServers?: () => Promise<OtherServers>;
  /** Why no new run can work now; `undefined` when it can. */
  preflight(principal: Principal): Promise<Readiness["refusal"]>;
  /** Model specification of new runs. Default: not known. */
  model?: string;
  /** Returns the choices that a start may make for its run. Default: none. */
  choices?: () => StartChoices;
  /** Names the workspace, model and so on of this server's agents. Only servers with the same work on a run. */
  environment: string;
  /** Milliseconds after which an approval asked for from now on is denied. Default: it waits. */
  approvalDeadlineMs?: number;
  /** Milliseconds after which the agent continues without the answer to a question asked from now on. Default: it waits. */
  questionDeadlineMs?: number;
  /** Milliseconds that a call of another MCP server which asks a person is held open. Default: ten minutes. */
  questionHoldMs?: number;
  /** True if this process starts the runs of schedules when they are due, if it works on runs. Default false. */
  startsSchedules?: boolean;
  /** True if runs may be claimed now; those at work continue. Default: always. */
  mayClaim?: () => boolean;
  /** Number of runs to work on at once; the others wait. 0: only watches, and leaves the work to others. */
  concurrentRuns: number;
  /** Most open runs of one principal, at work or waiting, when it starts another. Default: any number. */
  openRuns?: number;
  /** Server crashes on one run, without ten minutes of work in between, before it fails. Default 10. */
  crashLimit?: number;
  log: Logger;
  /** Default: the system's. */
  clock?: Clock;
  /** Default: random. */
  newId?: IdSource;
  /** Times of the machinery, in milliseconds. */
  timing?: {
    /** Interval between two looks for changes by other processes. Default 100. */
    pollMs?: number;
    /** Interval at which leases are renewed. Default 1000. */
    heartbeatMs?: number;
    /** Lease lifetime without a renewal. Default 4500. */
    leaseMs?: number;
    /** Time that a run keeps its place while it waits for a client's model. Default 30000. */
    lendMs?: number;
    /** Longest time between two looks at the clock while a schedule waits. Default 60000. */
    scheduleMs?: number;
  };
}
