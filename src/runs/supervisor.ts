import { answer } from "./answer.ts";
import { resolveBackend, snapshotFiles } from "../backends/runtime.ts";
import { systemClock } from "../core/clock.ts";
import { randomId } from "../core/ids.ts";
import { defined } from "../core/defined.ts";
import { StorageError } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import { callTexts } from "./call-texts.ts";
import { BACKGROUND_LENDER, NO_LENDER, lenderFor } from "./client-model.ts";
import type { RunContext } from "./context.ts";
import { decide, problemOf, useAnswer } from "./decide.ts";
import { foreignQuestions } from "./hold.ts";
import { NO_OTHER_SERVERS } from "./other-servers.ts";
import { countLeft, deleteRun, discardChange, proposedChange, reviewChange } from "./later-review.ts";
import { ChangeFeed, SharedTails, follow, followStarts } from "./follow.ts";
import { type RunListener, fenceOf } from "./ports.ts";
import { type Orphans, type PruneReport, type Retention, keepHouse } from "./retention.ts";
import { MAX_NAME, noRun } from "./run.ts";
import { type Scheduler, openScheduler } from "./scheduler.ts";
import * as schedules from "./schedules.ts";
import type { RunService, RunServiceOptions } from "./service.ts";
import { share } from "./shares.ts";
import { SHUTTING_DOWN, pointsOfThread, start, tell } from "./start.ts";
import { type LiveText, LiveTexts } from "./live-texts.ts";
import { runViews } from "./run-views.ts";
import { Worker, warnUnlessLocked } from "./worker.ts";

/** Opens the service and takes up what an earlier process left unfinished. */
export const createRunService = (options: RunServiceOptions): RunService => new Supervisor(options);

class Supervisor implements RunService {
  readonly news: RunService["news"];
  readonly view: RunService["view"];
  readonly #options: RunServiceOptions;
  readonly #context: RunContext;
  readonly #feed = new ChangeFeed();
  readonly #tails: SharedTails;
  readonly #texts = new LiveTexts(this.#feed);
  readonly #worker: Worker;
  readonly #closed = new AbortController();
  readonly #changes: { close(): void };
  readonly #heartbeat: NodeJS.Timeout;
  readonly #housekeeping: Promise<void> | undefined;
  readonly #scheduler: Scheduler | undefined;
  #beat: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RunServiceOptions) {
    const { runs, checkpoints, retention, log, environment, openRuns, proposals } = options;
    const { pollMs = 100, heartbeatMs = 2000 } = options.timing ?? {};
    const work = runs.work({
      syncCheckpoints: async () => (await checkpoints?.())?.sync(),
      deadlineMs: options.approvalDeadlineMs,
      questionDeadlineMs: options.questionDeadlineMs,
    });
    const storage = { runs, read: runs.read, schedules: runs.schedules, work, checkpoints, proposals };
    this.#options = options;
    this.#context = {
      ...storage,
      feed: this.#feed,
      log,
      environment,
      openRuns,
      clock: options.clock ?? systemClock,
      newId: options.newId ?? randomId,
      choices: options.choices ?? (() => ({ models: [], limits: {} })),
      preflight: (principal) => options.preflight(principal),
      agentFor: (run) => options.agentFor(run, NO_LENDER),
      underLease: (...args) => this.#worker.underLease(...args),
    };
    this.news = runs.news;
    this.view = runViews(runs.read);
    this.#tails = new SharedTails({ runs: runs.read, feed: this.#feed });
    this.#worker = this.#newWorker();
    this.#changes = runs.watch(this.#listener(), pollMs);
    this.#heartbeat = setInterval(() => this.#startBeat(), heartbeatMs).unref();
    this.#worker.start();
    this.#scheduler = openScheduler(options, this.#context);
    this.#housekeeping =
      retention && keepHouse((now) => this.#prune(retention, "keep", now), options, this.#closed.signal);
  }

  #newWorker(): Worker {
    const options = this.#options;
    const { timing: { leaseMs = 8000, lendMs = 30_000 } = {}, questionHoldMs = 600_000 } = options;
    const lending = { ...this.#context, patienceMs: lendMs };
    const holding = { ...this.#context, patienceMs: questionHoldMs };
    return new Worker({
      ...this.#context,
      agentFor: (run, worker) =>
        run.parent
          ? options.agentFor(run, BACKGROUND_LENDER)
          : options.agentFor(run, lenderFor(worker, lending), fenceOf(worker.lease, this.#context.runs)),
      foreignQuestions: (lease) => foreignQuestions(lease, holding),
      texts: this.#texts,
      concurrentRuns: options.concurrentRuns,
      leaseMs,
      crashLimit: options.crashLimit ?? 10,
      mayClaim: options.mayClaim ?? (() => true),
    });
  }

  start: RunService["start"] = async (principal, request) =>
    this.#closing === undefined ? start(principal, request, this.#context) : SHUTTING_DOWN;

  readiness: RunService["readiness"] = async (principal) => {
    const refusal = await this.#context.preflight(principal);
    return { ...defined({ model: this.#options.model, refusal }), ...this.#options.choices?.() };
  };

  answered: RunService["answered"] = (...args) => this.#context.runs.answered(...args);
  list: RunService["list"] = (principal, { limit, before }) =>
    this.#context.read.list(principal, limit, before);
  summaries: RunService["summaries"] = (principal, filter, { limit, before }) =>
    this.#context.read.summaries(principal, filter, limit, before);
  counts: RunService["counts"] = (principal) => this.#context.read.counts(principal);
  pending: RunService["pending"] = (...args) => this.#context.read.pending(...args);
  pendingQuestions: RunService["pendingQuestions"] = (...args) =>
    this.#context.read.pendingQuestions(...args);
  children: RunService["children"] = (...args) => this.#context.read.children(...args);
  countPending: RunService["countPending"] = (principal) => this.#context.read.countPending(principal);
  recentEvents: RunService["recentEvents"] = (...args) => this.#context.read.recent(...args);
  modelCalls: RunService["modelCalls"] = (...args) => this.#context.read.modelCalls(...args);

  events: RunService["events"] = async (principal, runId, { after = 0, limit = 1000 } = {}) => {
    const page = await this.#context.read.journal(principal, runId, after, limit);
    return page && [...page.events];
  };

  watch: RunService["watch"] = (...args) => follow(...args, { feed: this.#feed, tails: this.#tails });

  watchLive: RunService["watchLive"] = (...args) =>
    follow<LiveText>(...args, { feed: this.#feed, tails: this.#tails, texts: this.#texts });

  watchStarts: RunService["watchStarts"] = (principal, { signal }) =>
    followStarts(principal, signal, { runs: this.#context.read, feed: this.#feed });

  points: RunService["points"] = async (principal, runId) => {
    const run = await this.#context.read.run(principal, runId);
    return run && pointsOfThread(principal, run.threadId, this.#context);
  };

  callTexts: RunService["callTexts"] = async (principal, runId, seq) => {
    const { runs, checkpoints } = this.#context;
    const files = (id: string) => this.runFiles(principal, id);
    return callTexts(principal, runId, seq, { runs, checkpoints: await checkpoints?.(principal), files });
  };

  decide: RunService["decide"] = async (principal, runId, approvalId, decision, by) =>
    decide({ principal, runId, approvalId, decision, by }, this.#context);

  problemOf: RunService["problemOf"] = (principal, runId, approvalId, decision) =>
    problemOf({ principal, runId, approvalId, decision }, this.#context);

  answer: RunService["answer"] = (principal, runId, questionId, given, by) =>
    answer({ principal, runId, questionId, answer: given, by }, this.#context);

  useAnswer: RunService["useAnswer"] = async (principal, runId, given) =>
    useAnswer({ principal, runId, answer: given }, this.#context);

  replyToModel: RunService["replyToModel"] = async (principal, runId, callId, reply) => {
    const { runs, read, clock } = this.#context;
    const run = await read.run(principal, runId);
    if (run === undefined) return noRun(runId);
    return { ok: true, repeated: !(await runs.reply(run, callId, reply, clock())) };
  };

  prune: RunService["prune"] = (retention, orphans = "keep") =>
    this.#prune(retention, orphans, this.#context.clock());

  planPrune: RunService["planPrune"] = async (retention) => {
    const { runs, checkpoints, clock } = this.#context;
    return runs.planPrune(retention, await checkpoints?.(), clock());
  };

  tell: RunService["tell"] = (principal, runId, request) => tell(principal, runId, request, this.#context);

  cancel: RunService["cancel"] = async (principal, runId, reason) => {
    const cancelled = await this.#context.runs.cancel(principal, runId, reason, this.#context.clock());
    if (cancelled === undefined) return noRun(runId);
    await this.#worker.cancel(runId);
    return { ok: true, run: cancelled.run, alreadyEnded: cancelled.ended };
  };

  rename: RunService["rename"] = (principal, runId, name) =>
    this.#context.runs.rename(principal, runId, oneLine(name, MAX_NAME) || null);

  share: RunService["share"] = (principal, runId, milliseconds, madeWith) => {
    const { runs, clock } = this.#context;
    return share(principal, runId, milliseconds, madeWith ?? {}, { rows: runs.shares, now: clock() });
  };

  access: RunService["access"] = (principal) =>
    this.#context.runs.shares.access(this.#context.clock(), principal);

  allAccess: RunService["allAccess"] = () => this.#context.runs.shares.access(this.#context.clock());
  revoke: RunService["revoke"] = (...args) => this.#context.runs.shares.revoke(...args);
  sharedRun: RunService["sharedRun"] = (id) => this.#context.runs.shares.find(id, this.#context.clock());
  shareOpened: RunService["shareOpened"] = (shared) => this.#context.runs.shares.countOpening(shared);
  proposedChange: RunService["proposedChange"] = (principal, runId, whole) =>
    proposedChange(principal, runId, whole, this.#context);
  reviewChange: RunService["reviewChange"] = (...args) => reviewChange(...args, this.#context);
  discardChange: RunService["discardChange"] = (...args) => discardChange(...args, this.#context);

  delete: RunService["delete"] = (principal, runId) =>
    deleteRun(principal, runId, { ...this.#context, prune: () => this.prune({}) });

  runFiles: RunService["runFiles"] = async (principal, runId) => {
    const run = await this.#context.read.run(principal, runId);
    if (run === undefined) return undefined;
    // The tree as the run's agent sees it, with the thread's files as they are now.
    const { files } = await (await this.#context.agentFor(run)).snapshot(run.threadId);
    const source = await this.#options.treeWithThread(run);
    return resolveBackend(source, { files: snapshotFiles(files), threadId: run.threadId });
  };

  files: RunService["files"] = (principal) => this.#options.tree(principal);
  drawing: RunService["drawing"] = (principal) => this.#options.drawing(principal);
  searchMemories: RunService["searchMemories"] = (...args) => this.#options.searchMemories(...args);
  otherServers: RunService["otherServers"] = async () => this.#options.otherServers?.() ?? NO_OTHER_SERVERS;

  assertWritable: RunService["assertWritable"] = async () => {
    if (this.#options.mayClaim?.() === false) {
      const message = "A newer version of this program has changed the tables. Restart this server.";
      throw new StorageError("storage_newer", message);
    }
    await this.#context.runs.assertWritable();
  };

  statistics: RunService["statistics"] = () => this.#context.runs.statistics();
  listAll: RunService["listAll"] = (limit) => this.#context.runs.listAll(limit);
  schedules: RunService["schedules"] = (principal) => this.#context.schedules.list(principal);
  allSchedules: RunService["allSchedules"] = () => this.#context.schedules.listAll();
  removeSchedule: RunService["removeSchedule"] = (...args) => this.#context.schedules.remove(...args);
  addSchedule: RunService["addSchedule"] = (...args) =>
    this.#rescheduled(schedules.addSchedule(...args, this.#context));
  editSchedule: RunService["editSchedule"] = (...args) =>
    this.#rescheduled(schedules.editSchedule(...args, this.#context));
  pauseSchedule: RunService["pauseSchedule"] = (...args) => schedules.pauseSchedule(...args, this.#context);
  resumeSchedule: RunService["resumeSchedule"] = (...args) =>
    this.#rescheduled(schedules.resumeSchedule(...args, this.#context));
  runScheduleNow: RunService["runScheduleNow"] = (...args) =>
    schedules.runScheduleNow(...args, this.#context);

  async drain(milliseconds: number): Promise<void> {
    await this.#scheduler?.close();
    return this.#worker.drain(milliseconds);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  #listener(): RunListener {
    const { log } = this.#context;
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
      failed: (error) => warnUnlessLocked(log, "runs.pulse_failed", { what: "poll", error }),
    };
  }

  #startBeat(): void {
    // The beat before may wait for storage that does not answer.
    if (this.#beat !== undefined) this.#worker.breakOffUnrenewed();
    this.#beat ??= this.#onHeartbeat()
      .catch((error: unknown) => {
        // A locked or full database now may be well at the next beat.
        warnUnlessLocked(this.#context.log, "runs.pulse_failed", { what: "heartbeat", error });
        this.#worker.breakOffUnrenewed(error);
      })
      .finally(() => (this.#beat = undefined));
  }

  async #onHeartbeat(): Promise<void> {
    const { runs, clock, log } = this.#context;
    await this.#worker.heartbeat();
    // Uses the system clock and the stored deadline, so that neither a restart nor a sleep delays it.
    for (const { runId, id } of await runs.expire(clock()))
      log.info("question.deadline_passed", { runId, questionId: id });
  }

  /** The next due time may be another one after this change. */
  async #rescheduled<T>(change: Promise<T>): Promise<T> {
    const outcome = await change;
    void this.#scheduler?.look();
    return outcome;
  }

  async #prune(retention: Retention, orphans: Orphans, now: number): Promise<PruneReport> {
    const { sweepMemories } = this.#options;
    const checkpoints = await this.#context.checkpoints?.();
    const { signal } = this.#closed;
    await countLeft(this.#context);
    return this.#context.runs.prune(retention, { orphans, checkpoints, sweepMemories, now, signal });
  }

  async #close(): Promise<void> {
    this.#closed.abort();
    this.#changes.close();
    clearInterval(this.#heartbeat);
    await Promise.all([this.#beat, this.#housekeeping, this.#scheduler?.close(), this.#worker.close()]);
    this.#feed.close();
  }
}
