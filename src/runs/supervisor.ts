import { systemClock } from "../core/clock.ts";
import { randomId } from "../core/ids.ts";
import { StorageError } from "../core/errors.ts";
import { audited } from "./audit.ts";
import { BACKGROUND_LENDER, NO_LENDER, lenderFor } from "./client-model.ts";
import type { RunContext } from "./context.ts";
import { runGroups } from "./groups.ts";
import { foreignQuestions } from "./hold.ts";
import { countLeft } from "./later-review.ts";
import { ChangeFeed, SharedTails } from "./follow.ts";
import { type RunListener, fenceOf } from "./ports.ts";
import { type Orphans, type PruneReport, type Retention, keepHouse } from "./retention.ts";
import { type Scheduler, openScheduler } from "./scheduler.ts";
import { bindRuns } from "./scopes.ts";
import type { RunService, RunServiceOptions } from "./service.ts";
import { LiveTexts } from "./live-texts.ts";
import { Worker, warnUnlessLocked } from "./worker.ts";

/** Opens the service and resumes the unfinished work of an earlier process. */
export const createRunService = (options: RunServiceOptions): RunService => new Supervisor(options);

class Supervisor implements RunService {
  readonly as: RunService["as"];
  readonly #options: RunServiceOptions;
  readonly #context: RunContext;
  readonly #feed = new ChangeFeed();
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
    const { pollMs = 100, heartbeatMs = 1000 } = options.timing ?? {};
    const work = runs.work({
      syncCheckpoints: async () => (await checkpoints?.())?.sync(),
      deadlineMs: options.approvalDeadlineMs,
      questionDeadlineMs: options.questionDeadlineMs,
    });
    const feed = this.#feed;
    const storage = { runs, schedules: runs.schedules, work, checkpoints, proposals };
    this.#options = options;
    this.#context = {
      ...storage,
      feed,
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
    const groups = runGroups({
      ...this.#context,
      options: this.#options,
      tails: new SharedTails({ runs: runs.read, feed }),
      texts: this.#texts,
      isClosing: () => this.#closing !== undefined,
      stopWork: (runId) => this.#worker.cancel(runId),
      reschedule: () => void this.#scheduler?.look(),
      prune: () => this.prune({}),
    });
    this.as = bindRuns(audited(groups, log));
    this.#worker = this.#newWorker();
    const listener: RunListener = {
      owner: this.#worker.owner,
      changed: (runId, fromOutside) => {
        feed.notify(runId);
        if (fromOutside) this.#worker.changed(runId);
      },
      changedElsewhere: () => {
        this.#worker.review();
        this.#scheduler?.review();
        feed.notifyAll();
      },
      failed: (error) => warnUnlessLocked(log, "runs.pulse_failed", { what: "poll", error }),
    };
    this.#changes = runs.watch(listener, pollMs);
    this.#heartbeat = setInterval(() => this.#startBeat(), heartbeatMs).unref();
    this.#worker.start();
    this.#scheduler = openScheduler(options, this.#context);
    this.#housekeeping =
      retention && keepHouse((now) => this.#prune(retention, "keep", now), options, this.#closed.signal);
  }

  #newWorker(): Worker {
    const options = this.#options;
    const { timing: { leaseMs = 4500, lendMs = 30_000 } = {}, questionHoldMs = 600_000 } = options;
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

  prune: RunService["prune"] = (retention, orphans = "keep") =>
    this.#prune(retention, orphans, this.#context.clock());

  planPrune: RunService["planPrune"] = async (retention) => {
    const { runs, checkpoints, clock } = this.#context;
    return runs.planPrune(retention, await checkpoints?.(), clock());
  };

  allAccess: RunService["allAccess"] = () => this.#context.runs.shares.access(this.#context.clock());
  sharedRun: RunService["sharedRun"] = (id) => this.#context.runs.shares.find(id, this.#context.clock());
  shareOpened: RunService["shareOpened"] = (shared) => this.#context.runs.shares.countOpening(shared);

  assertWritable: RunService["assertWritable"] = async () => {
    if (this.#options.mayClaim?.() === false) {
      const message = "A newer version of this program has changed the tables. Restart this server.";
      throw new StorageError("storage_newer", message);
    }
    await this.#context.runs.assertWritable();
  };

  statistics: RunService["statistics"] = () => this.#context.runs.statistics();
  listAll: RunService["listAll"] = (limit) => this.#context.runs.listAll(limit);
  allSchedules: RunService["allSchedules"] = () => this.#context.schedules.listAll();

  async drain(milliseconds: number): Promise<void> {
    await this.#scheduler?.close();
    return this.#worker.drain(milliseconds);
  }

  close(): Promise<void> {
    const end = async (): Promise<void> => {
      this.#closed.abort();
      this.#changes.close();
      clearInterval(this.#heartbeat);
      await Promise.all([this.#beat, this.#housekeeping, this.#scheduler?.close(), this.#worker.close()]);
      this.#feed.close();
    };
    return (this.#closing ??= end());
  }

  #startBeat(): void {
    // The beat before may wait for storage that does not answer.
    if (this.#beat !== undefined) this.#worker.breakOffUnrenewed();
    const { runs, clock, log } = this.#context;
    const beat = async (): Promise<void> => {
      await this.#worker.heartbeat();
      // Uses the system clock and the stored deadline, so that neither a restart nor a sleep delays it.
      for (const { runId, id } of await runs.expire(clock()))
        log.info("question.deadline_passed", { runId, questionId: id });
    };
    this.#beat ??= beat()
      .catch((error: unknown) => {
        // A locked or full database now may be well at the next beat.
        warnUnlessLocked(log, "runs.pulse_failed", { what: "heartbeat", error });
        this.#worker.breakOffUnrenewed(error);
      })
      .finally(() => (this.#beat = undefined));
  }

  async #prune(retention: Retention, orphans: Orphans, now: number): Promise<PruneReport> {
    const { sweepMemories } = this.#options;
    const checkpoints = await this.#context.checkpoints?.();
    const { signal } = this.#closed;
    await countLeft(this.#context);
    return this.#context.runs.prune(retention, { orphans, checkpoints, sweepMemories, now, signal });
  }
}
