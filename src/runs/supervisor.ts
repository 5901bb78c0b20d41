import { answer } from "./answer.ts";
import type { Agent } from "../agent/agent.ts";
import type { Backend } from "../backends/backend.ts";
import { resolveBackend, snapshotFiles } from "../backends/runtime.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { type IdSource, randomId } from "../core/ids.ts";
import { defined } from "../core/defined.ts";
import { StorageError } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import { callTexts } from "./call-texts.ts";
import type { StartChoices } from "./choices.ts";
import { BACKGROUND_LENDER, type LendingContext, NO_LENDER, lenderFor } from "./client-model.ts";
import { type DecideContext, decide, problemOf, useAnswer } from "./decide.ts";
import { type HoldContext, holderFor } from "./hold.ts";
import { NO_OTHER_SERVERS, type OtherServers } from "./other-servers.ts";
import {
  type LaterContext,
  countLeft,
  discardChange,
  deleteRun,
  proposedChange,
  reviewChange,
} from "./later-review.ts";
import { ChangeFeed, SharedTails, follow, followStarts } from "./follow.ts";
import type {
  RecentEvents,
  RunListener,
  RunRepository,
  RunStatistics,
  StartRequest,
  WorkLog,
} from "./ports.ts";
import { type Orphans, type PrunePlan, type PruneReport, type Retention, keepHouse } from "./retention.ts";
import { MAX_NAME, type ModelCall, type Principal, type Run, type RunHead, type RunView } from "./run.ts";
import type {
  RunNowOutcome,
  ScheduleChanges,
  ScheduleOutcome,
  ScheduleRequest,
  ScheduleView,
} from "./schedule.ts";
import { type Scheduler, openScheduler } from "./scheduler.ts";
import {
  type SchedulesContext,
  addSchedule,
  editSchedule,
  pauseSchedule,
  resumeSchedule,
  runScheduleNow,
} from "./schedules.ts";
import type {
  CancelOutcome,
  DeleteOutcome,
  MemorySearch,
  Readiness,
  RunPoint,
  RunService,
  RunServiceOptions,
  StartOutcome,
  TellOutcome,
  TellRequest,
} from "./service.ts";
import { type RunShare, type ShareOutcome, type SharedRun, share } from "./shares.ts";
import { SHUTTING_DOWN, pointsOfThread, start, tell } from "./start.ts";
import { type LiveText, LiveTexts } from "./live-texts.ts";
import { RunViews } from "./run-views.ts";
import { Worker, warnUnlessLocked } from "./worker.ts";

/** Opens the service and takes up what an earlier process left unfinished. */
export function createRunService(options: RunServiceOptions): RunService {
  return new Supervisor(options);
}

const NO_CHOICES = (): StartChoices => ({ models: [], limits: {} });

const EVENTS_PER_PAGE = 1000;

class Supervisor implements RunService {
  readonly news: RunService["news"];
  readonly #options: RunServiceOptions;
  readonly #clock: Clock;
  readonly #newId: IdSource;
  readonly #feed = new ChangeFeed();
  readonly #runs: RunRepository;
  readonly #work: WorkLog;
  readonly #tails: SharedTails;
  readonly #texts = new LiveTexts(this.#feed);
  readonly #worker: Worker;
  readonly #views: RunViews;
  readonly #closed = new AbortController();
  readonly #changes: { close(): void };
  readonly #heartbeat: NodeJS.Timeout;
  readonly #housekeeping: Promise<void> | undefined;
  readonly #scheduler: Scheduler | undefined;
  #beat: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RunServiceOptions) {
    const { runs, log, environment, concurrentRuns, timing, checkpoints } = options;
    const { pollMs = 100, heartbeatMs = 2000, leaseMs = 8000 } = timing ?? {};
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#newId = options.newId ?? randomId;
    this.#runs = runs;
    this.news = runs.news;
    this.#views = new RunViews(runs.read);
    this.#tails = new SharedTails({ runs: runs.read, feed: this.#feed });
    this.#work = runs.work({
      syncCheckpoints: async () => (await checkpoints?.())?.sync(),
      deadlineMs: options.approvalDeadlineMs,
      questionDeadlineMs: options.questionDeadlineMs,
    });
    this.#worker = new Worker({
      runs,
      work: this.#work,
      agentFor: (run, worker) =>
        options.agentFor(run, run.parent ? BACKGROUND_LENDER : lenderFor(worker, this.#lending)),
      clock: this.#clock,
      newId: this.#newId,
      log,
      environment,
      concurrentRuns,
      leaseMs,
      crashLimit: options.crashLimit ?? 10,
      mayClaim: options.mayClaim ?? (() => true),
      checkpoints,
      texts: this.#texts,
      holderOf: (lease) => holderFor(lease, this.#holding),
      proposals: options.proposals,
    });
    this.#changes = runs.watch(this.#listener(), pollMs);
    this.#heartbeat = setInterval(() => this.#startBeat(), heartbeatMs).unref();
    this.#worker.start();
    this.#scheduler = openScheduler(options, this.#scheduling);
    const { retention } = options;
    this.#housekeeping =
      retention && keepHouse((now) => this.#prune(retention, "keep", now), options, this.#closed.signal);
  }

  async start(principal: Principal, request: StartRequest): Promise<StartOutcome> {
    if (this.#closing !== undefined) return SHUTTING_DOWN;
    const { checkpoints, environment, openRuns } = this.#options;
    return start(principal, request, {
      runs: this.#runs,
      checkpoints,
      preflight: () => this.#options.preflight(principal),
      choices: this.#options.choices ?? NO_CHOICES,
      limits: { environment, openRuns },
      newId: this.#newId,
      clock: this.#clock,
    });
  }

  async readiness(principal: Principal): Promise<Readiness> {
    const refusal = await this.#options.preflight(principal);
    return { ...defined({ model: this.#options.model, refusal }), ...this.#options.choices?.() };
  }

  answered(principal: Principal, runId: string, begunAt: number): Promise<void> {
    return this.#runs.answered(principal, runId, begunAt);
  }

  view(principal: Principal, runId: string): Promise<RunView | undefined> {
    return this.#views.of(principal, runId);
  }

  list(...[principal, { limit, before }]: Parameters<RunService["list"]>): Promise<RunHead[]> {
    return this.#runs.read.list(principal, limit, before);
  }

  summaries(...[principal, filter, { limit, before }]: Parameters<RunService["summaries"]>) {
    return this.#runs.read.summaries(principal, filter, limit, before);
  }

  counts: RunService["counts"] = (principal) => this.#runs.read.counts(principal);
  pending: RunService["pending"] = (...request) => this.#runs.read.pending(...request);
  pendingQuestions: RunService["pendingQuestions"] = (...request) =>
    this.#runs.read.pendingQuestions(...request);
  children: RunService["children"] = (...request) => this.#runs.read.children(...request);
  countPending: RunService["countPending"] = (principal) => this.#runs.read.countPending(principal);

  async events(principal: Principal, runId: string, options: { after?: number; limit?: number } = {}) {
    const { after = 0, limit = EVENTS_PER_PAGE } = options;
    const page = await this.#runs.read.journal(principal, runId, after, limit);
    return page && [...page.events];
  }

  recentEvents(principal: Principal, runId: string, wanted: RecentEvents) {
    return this.#runs.read.recent(principal, runId, wanted);
  }

  watch(principal: Principal, runId: string, options: { after?: number; signal: AbortSignal }) {
    return follow(principal, runId, options, { feed: this.#feed, tails: this.#tails });
  }

  watchLive(...[principal, runId, options]: Parameters<RunService["watchLive"]>) {
    const sources = { feed: this.#feed, tails: this.#tails, texts: this.#texts };
    return follow<LiveText>(principal, runId, options, sources);
  }

  watchStarts(principal: Principal, { signal }: { signal: AbortSignal }) {
    return followStarts(principal, signal, { runs: this.#runs.read, feed: this.#feed });
  }

  async points(principal: Principal, runId: string): Promise<RunPoint[] | undefined> {
    const run = await this.#runs.read.run(principal, runId);
    if (run === undefined) return undefined;
    const checkpoints = await this.#options.checkpoints?.(principal);
    return pointsOfThread(principal, run.threadId, { runs: this.#runs, checkpoints });
  }

  async callTexts(principal: Principal, runId: string, seq: number) {
    const checkpoints = await this.#options.checkpoints?.(principal);
    const files = (id: string) => this.runFiles(principal, id);
    return callTexts(principal, runId, seq, { runs: this.#runs, checkpoints, files });
  }

  async decide(...[principal, runId, approvalId, decision, by]: Parameters<RunService["decide"]>) {
    return decide({ principal, runId, approvalId, decision, by }, this.#deciding);
  }

  problemOf(...[principal, runId, approvalId, decision]: Parameters<RunService["problemOf"]>) {
    return problemOf({ principal, runId, approvalId, decision }, this.#deciding);
  }

  answer(...[principal, runId, questionId, given, by]: Parameters<RunService["answer"]>) {
    return answer({ principal, runId, questionId, answer: given, by }, this.#deciding);
  }

  async useAnswer(...[principal, runId, answer]: Parameters<RunService["useAnswer"]>) {
    return useAnswer({ principal, runId, answer }, this.#deciding);
  }

  modelCalls(principal: Principal, runId: string): Promise<ModelCall[]> {
    return this.#runs.read.modelCalls(principal, runId);
  }

  async replyToModel(...[principal, runId, callId, reply]: Parameters<RunService["replyToModel"]>) {
    const run = await this.#runs.read.run(principal, runId);
    if (run === undefined) return noRun(runId);
    const isFirst = await this.#runs.reply(run, callId, reply, this.#clock());
    return { ok: true as const, repeated: !isFirst };
  }

  prune(retention: Retention, orphans: Orphans = "keep"): Promise<PruneReport> {
    return this.#prune(retention, orphans, this.#clock());
  }

  async planPrune(retention: Retention): Promise<PrunePlan> {
    const checkpoints = await this.#options.checkpoints?.();
    return this.#runs.planPrune(retention, checkpoints, this.#clock());
  }

  tell(principal: Principal, runId: string, request: TellRequest): Promise<TellOutcome> {
    return tell(principal, runId, request, { runs: this.#runs, newId: this.#newId, now: this.#clock() });
  }

  async cancel(principal: Principal, runId: string, reason: string): Promise<CancelOutcome> {
    const cancelled = await this.#runs.cancel(principal, runId, reason, this.#clock());
    if (cancelled === undefined) return noRun(runId);
    await this.#worker.cancel(runId);
    return { ok: true, run: cancelled.run, alreadyEnded: cancelled.ended };
  }

  rename(principal: Principal, runId: string, name: string): Promise<boolean> {
    const shown = oneLine(name, MAX_NAME);
    return this.#runs.rename(principal, runId, shown === "" ? null : shown);
  }

  async share(principal: Principal, runId: string, milliseconds: number): Promise<ShareOutcome> {
    const now = this.#clock();
    return share(this.#runs.shares, { principal, runId, milliseconds, now });
  }

  shares(principal: Principal, runId: string): Promise<RunShare[]> {
    return this.#runs.shares.of(principal, runId, this.#clock());
  }

  unshare(principal: Principal, runId: string, shareId: string): Promise<boolean> {
    return this.#runs.shares.remove(principal, runId, shareId);
  }

  sharedRun(shareId: string): Promise<SharedRun | undefined> {
    return this.#runs.shares.find(shareId, this.#clock());
  }

  shareOpened(shared: SharedRun): Promise<void> {
    return this.#runs.shares.countOpening(shared);
  }

  proposedChange: RunService["proposedChange"] = (...args) => proposedChange(...args, this.#reviewing);
  reviewChange: RunService["reviewChange"] = (...args) => reviewChange(...args, this.#reviewing);
  discardChange: RunService["discardChange"] = (...args) => discardChange(...args, this.#reviewing);

  delete(principal: Principal, runId: string): Promise<DeleteOutcome> {
    const prune = () => this.#prune({}, "keep", this.#clock());
    return deleteRun(principal, runId, { ...this.#reviewing, prune });
  }

  async runFiles(principal: Principal, runId: string): Promise<Backend | undefined> {
    const run = await this.#runs.read.run(principal, runId);
    if (run === undefined) return undefined;
    // The tree as the run's agent sees it, with the thread's files as they are now.
    const { files } = await (await this.#agentFor(run)).snapshot(run.threadId);
    const source = await this.#options.treeWithThread(run);
    return resolveBackend(source, { files: snapshotFiles(files), threadId: run.threadId });
  }

  files = (principal: Principal): Promise<Backend> => this.#options.tree(principal);
  drawing = (principal: Principal): Promise<string> => this.#options.drawing(principal);
  otherServers = async (): Promise<OtherServers> => this.#options.otherServers?.() ?? NO_OTHER_SERVERS;

  searchMemories(principal: Principal, query: string, limit: number): Promise<MemorySearch> {
    return this.#options.searchMemories(principal, query, limit);
  }

  async assertWritable(): Promise<void> {
    if (this.#options.mayClaim?.() === false) {
      throw new StorageError(
        "storage_newer",
        "A newer version of this program has changed the tables. Restart this server.",
      );
    }
    await this.#runs.assertWritable();
  }

  statistics(): Promise<RunStatistics> {
    return this.#runs.statistics();
  }

  listAll(limit: number): Promise<RunHead[]> {
    return this.#runs.listAll(limit);
  }

  schedules(principal: Principal): Promise<ScheduleView[]> {
    return this.#runs.schedules.list(principal);
  }

  allSchedules(): Promise<ScheduleView[]> {
    return this.#runs.schedules.listAll();
  }

  async addSchedule(principal: Principal, request: ScheduleRequest): Promise<ScheduleOutcome> {
    return this.#rescheduled(await addSchedule(principal, request, this.#scheduling));
  }

  async editSchedule(principal: Principal, id: string, changes: ScheduleChanges): Promise<ScheduleOutcome> {
    return this.#rescheduled(await editSchedule(principal, id, changes, this.#scheduling));
  }

  pauseSchedule(principal: Principal, id: string): Promise<ScheduleOutcome> {
    return pauseSchedule(principal, id, this.#scheduling);
  }

  async resumeSchedule(principal: Principal, id: string): Promise<ScheduleOutcome> {
    return this.#rescheduled(await resumeSchedule(principal, id, this.#scheduling));
  }

  removeSchedule(principal: Principal, id: string): Promise<boolean> {
    return this.#runs.schedules.remove(principal, id);
  }

  runScheduleNow(principal: Principal, id: string): Promise<RunNowOutcome> {
    return runScheduleNow(principal, id, this.#scheduling);
  }

  async drain(milliseconds: number): Promise<void> {
    await this.#scheduler?.close();
    return this.#worker.drain(milliseconds);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #listener(): RunListener {
    return {
      changed: (runId, fromOutside) => {
        this.#feed.notify(runId);
        if (fromOutside) this.#worker.changed(runId);
      },
      changedElsewhere: () => {
        this.#worker.review();
        this.#scheduler?.review();
        this.#feed.notifyAll();
      },
      failed: (error) => this.#failed("poll", error),
    };
  }

  #startBeat(): void {
    // The beat before may wait for storage that does not answer.
    if (this.#beat !== undefined) this.#worker.breakOffUnrenewed();
    this.#beat ??= this.#onHeartbeat()
      .catch((error: unknown) => {
        this.#failed("heartbeat", error);
        this.#worker.breakOffUnrenewed(error);
      })
      .finally(() => (this.#beat = undefined));
  }

  async #onHeartbeat(): Promise<void> {
    await this.#worker.heartbeat();
    // Uses the system clock and the stored deadline, so that neither a restart nor a sleep delays it.
    for (const { runId, id } of await this.#runs.expire(this.#clock())) {
      this.#options.log.info("question.deadline_passed", { runId, questionId: id });
    }
  }

  /** A locked or full database now may be well at the next beat. */
  #failed(what: string, error: unknown): void {
    warnUnlessLocked(this.#options.log, "runs.pulse_failed", { what, error });
  }

  /** An agent for looking at a run or checking a call; it does no work. */
  #agentFor(run: Run): Promise<Agent> {
    return this.#options.agentFor(run, NO_LENDER);
  }

  get #lending(): LendingContext {
    const patienceMs = this.#options.timing?.lendMs ?? 30_000;
    return { work: this.#work, read: this.#runs.read, feed: this.#feed, clock: this.#clock, patienceMs };
  }

  get #holding(): HoldContext {
    const patienceMs = this.#options.questionHoldMs ?? 600_000;
    const common = { work: this.#work, read: this.#runs.read, feed: this.#feed, clock: this.#clock };
    return { ...common, newId: this.#newId, patienceMs };
  }

  get #scheduling(): SchedulesContext {
    const { environment, openRuns, choices = NO_CHOICES } = this.#options;
    const { schedules } = this.#runs;
    return { schedules, environment, openRuns, choices, newId: this.#newId, clock: this.#clock };
  }

  /** The next due time may be another one now. */
  #rescheduled(outcome: ScheduleOutcome): ScheduleOutcome {
    void this.#scheduler?.look();
    return outcome;
  }

  get #reviewing(): LaterContext {
    const { proposals, environment, log } = this.#options;
    return { runs: this.#runs, proposals, environment, newId: this.#newId, log };
  }

  get #deciding(): DecideContext {
    return { runs: this.#runs, agentFor: (run) => this.#agentFor(run), clock: this.#clock };
  }

  async #prune(retention: Retention, orphans: Orphans, now: number): Promise<PruneReport> {
    const { sweepMemories } = this.#options;
    const checkpoints = await this.#options.checkpoints?.();
    const signal = this.#closed.signal;
    await countLeft(this.#reviewing);
    return this.#runs.prune(retention, { orphans, checkpoints, sweepMemories, now, signal });
  }

  async #close(): Promise<void> {
    this.#closed.abort();
    this.#changes.close();
    clearInterval(this.#heartbeat);
    await Promise.all([this.#beat, this.#housekeeping, this.#scheduler?.close(), this.#worker.close()]);
    this.#feed.close();
  }
}

const noRun = (runId: string) => ({
  ok: false as const,
  code: "not_found" as const,
  message: `There is no run ${runId}.`,
});
