import { setTimeout as delay } from "node:timers/promises";
import type { Agent } from "../agent/agent.ts";
import type { Backend } from "../backends/backend.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import { type IdSource, randomId } from "../core/text.ts";
import { durably, inTransaction } from "../storage/sqlite/commit.ts";
import type { ApprovalStore } from "../storage/sqlite/runs/approvals.ts";
import { toApproval } from "../storage/sqlite/runs/events.ts";
import { assertWritable, readStatistics } from "../storage/sqlite/runs/maintenance.ts";
import { planPrune, prune } from "../storage/sqlite/runs/prune.ts";
import { RunStore } from "../storage/sqlite/runs/run-store.ts";
import { WorkStore } from "../storage/sqlite/runs/work-store.ts";
import { type LendingContext, NO_LENDER, lenderFor, replyToModel } from "./client-model.ts";
import { type DecideContext, decide, useAnswer } from "./decide.ts";
import { ChangeFeed, Pulse, SharedTails, follow, followStarts } from "./follow.ts";
import type { Orphans, PrunePlan, PruneReport, Retention, RunStatistics } from "./ports.ts";
import type { Approval, ModelCall, Principal, Run, RunHead, RunView } from "./run.ts";
import type {
  CancelOutcome,
  MemorySearch,
  RunPoint,
  RunService,
  RunServiceOptions,
  StartOutcome,
  StartRequest,
  TellOutcome,
  TellRequest,
} from "./service.ts";
import { SHUTTING_DOWN, pointsOfThread, start, tell } from "./start.ts";
import { RunFolds, placeText } from "./view.ts";
import { Worker } from "./worker.ts";

interface Settled {
  /** Number of the newest row that is in `approvals`; none before it is pending. */
  upTo: number;
  approvals: Approval[];
}

/**
 * The approvals of runs as views show them. A decision is never taken back, so that each is read once: a look
 * at a run costs the same after a thousand. Not for use within a transaction, which may be.
 */
export class ApprovalViews {
  readonly #store: ApprovalStore;
  readonly #capacity: number;
  readonly #settled = new Map<string, Settled>();

  constructor(store: ApprovalStore, capacity = 256) {
    this.#store = store;
    this.#capacity = capacity;
  }

  /** Oldest first. */
  of(runId: string): Approval[] {
    const settled = this.#settled.get(runId) ?? { upTo: 0, approvals: [] };
    this.#settled.delete(runId);
    this.#settled.set(runId, settled);
    const oldest = this.#settled.keys().next();
    if (this.#settled.size > this.#capacity && oldest.done !== true) this.#settled.delete(oldest.value);
    const rows = this.#store.after(runId, settled.upTo);
    const firstPending = rows.findIndex(({ status }) => status === "pending");
    const decided = firstPending === -1 ? rows : rows.slice(0, firstPending);
    settled.approvals.push(...decided.map(toApproval));
    settled.upTo = decided.at(-1)?.number ?? settled.upTo;
    return [...settled.approvals, ...rows.slice(decided.length).map(toApproval)];
  }
}

/**
 * Denies what nobody decided in time, in all runs. What was asked for by a clock that was set back since gets its
 * whole time from now on.
 */
export async function enforceDeadlines(store: RunStore, now: number, log: Logger): Promise<void> {
  const { approvals, database } = store;
  if (approvals.anyOfFuture(now)) {
    const bringBack = (): string[] => inTransaction(database, () => approvals.bringBack(now));
    for (const runId of new Set(await durably(database, bringBack))) store.changed(runId);
  }
  if (approvals.expired(now).length === 0) return;
  for (const { runId, id } of await durably(database, () => store.answers.expire(now))) {
    log.info("approval.deadline_passed", { runId, approvalId: id });
  }
}

const HOUR_MS = 3_600_000;

/**
 * Prunes now and every hour until `signal` aborts. Resolves when nothing of
 * it is under way any more. Keeps no process alive.
 */
export async function keepHouse(
  prune: (now: number) => Promise<PruneReport>,
  { clock = systemClock, log }: Pick<RunServiceOptions, "clock" | "log">,
  signal: AbortSignal,
): Promise<void> {
  const work = async (): Promise<void> => {
    log.info("runs.pruned", { ...(await prune(clock())) });
  };
  while (!signal.aborted) {
    await work().catch((error: unknown) => log.warn("runs.prune_failed", { error }));
    await delay(HOUR_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** Opens the service and takes up what an earlier process left unfinished. */
export function createRunService(options: RunServiceOptions): RunService {
  return new Supervisor(options);
}

const EVENTS_PER_PAGE = 1000;

class Supervisor implements RunService {
  readonly #options: RunServiceOptions;
  readonly #clock: Clock;
  readonly #newId: IdSource;
  readonly #feed = new ChangeFeed();
  readonly #store: RunStore;
  readonly #tails: SharedTails;
  readonly #worker: Worker;
  readonly #folds: RunFolds;
  readonly #approvals: ApprovalViews;
  readonly #pulse: Pulse;
  readonly #closed = new AbortController();
  readonly #housekeeping: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RunServiceOptions) {
    const { database, log, environment, concurrentRuns, timing } = options;
    const { pollMs = 100, heartbeatMs = 2000, leaseMs = 10_000 } = timing ?? {};
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#newId = options.newId ?? randomId;
    const changed = (runId: string): void => this.#feed.notify(runId);
    const storeChanged = (runId: string): void => {
      changed(runId);
      // At once: what this server was given, it begins, and the log keeps the order on the disk.
      this.#worker.pump();
    };
    this.#store = new RunStore(database, storeChanged, { openRuns: options.openRuns });
    this.#tails = new SharedTails({ store: this.#store, feed: this.#feed });
    this.#folds = new RunFolds((runId, seq, limit) => this.#store.events.page(runId, seq, limit));
    this.#approvals = new ApprovalViews(this.#store.approvals);
    this.#worker = new Worker({
      store: this.#store,
      work: new WorkStore(this.#store, changed, {
        syncCheckpoints: async () => (await options.checkpoints?.())?.sync(),
        deadlineMs: options.approvalDeadlineMs,
      }),
      agentFor: (run, worker) => this.#options.agentFor(run, lenderFor(worker, this.#lending)),
      clock: this.#clock,
      newId: this.#newId,
      log,
      environment,
      concurrentRuns,
      leaseMs,
      crashLimit: options.crashLimit ?? 10,
      mayClaim: options.mayClaim ?? (() => true),
      checkpoints: options.checkpoints,
    });
    this.#pulse = new Pulse({
      database,
      log,
      pollMs,
      heartbeatMs,
      onForeignChange: () => {
        this.#worker.review();
        this.#feed.notifyAll();
      },
      onHeartbeat: async () => {
        await this.#worker.heartbeat();
        // By the clock of the wall and the stored deadline: neither a restart nor a sleep puts it off.
        await enforceDeadlines(this.#store, this.#clock(), log);
      },
    });
    this.#worker.start();
    const { retention } = options;
    this.#housekeeping =
      retention && keepHouse((now) => this.#prune(retention, "keep", now), options, this.#closed.signal);
  }

  async start(principal: Principal, request: StartRequest): Promise<StartOutcome> {
    if (this.#closing !== undefined) return SHUTTING_DOWN;
    const outcome = await start(principal, request, {
      store: this.#store,
      checkpoints: this.#options.checkpoints,
      preflight: () => this.#options.preflight(principal),
      environment: this.#options.environment,
      newId: this.#newId,
      clock: this.#clock,
    });
    return outcome;
  }

  async answered(principal: Principal, runId: string, begunAt: number): Promise<void> {
    const { calls } = this.#store;
    // Looked at first: most answers change nothing, and need not wait for whoever writes.
    if (calls.isUnanswered(principal, runId, begunAt)) await this.#write(() => calls.answer(runId));
  }

  async view(principal: Principal, runId: string): Promise<RunView | undefined> {
    if (this.#store.head(principal, runId) === undefined) return undefined;
    const fold = await this.#folds.of(runId);
    // Read after the fold and in one go with it, so that all parts tell of the same moment.
    const run = this.#store.get(principal, runId);
    if (run === undefined) return undefined;
    for (const event of this.#store.events.page(runId, fold.lastSeq, EVENTS_PER_PAGE)) fold.add(event);
    const place = this.#store.leases.placeOf(runId);
    return {
      run,
      approvals: this.#approvals.of(runId),
      grants: this.#store.grants.ofRun(runId),
      subagents: fold.subagents(),
      filesChanged: fold.filesChanged(),
      activity: place === undefined ? fold.activity : placeText(place),
      ...(place === undefined ? {} : { place }),
      modelCalls: this.#store.models.open(runId),
      models: fold.models(),
    };
  }

  async list(
    principal: Principal,
    { limit, before }: { limit: number; before?: string },
  ): Promise<RunHead[]> {
    return this.#store.list(principal, limit, before);
  }

  async events(principal: Principal, runId: string, options: { after?: number; limit?: number } = {}) {
    if (this.#store.head(principal, runId) === undefined) return undefined;
    return this.#store.events.page(runId, options.after ?? 0, options.limit ?? EVENTS_PER_PAGE);
  }

  watch(principal: Principal, runId: string, options: { after?: number; signal: AbortSignal }) {
    return follow(principal, runId, options, { feed: this.#feed, tails: this.#tails });
  }

  watchStarts(principal: Principal, { signal }: { signal: AbortSignal }) {
    return followStarts(principal, signal, { store: this.#store, feed: this.#feed });
  }

  async points(principal: Principal, runId: string): Promise<RunPoint[] | undefined> {
    const threadId = this.#store.head(principal, runId)?.threadId;
    if (threadId === undefined) return undefined;
    const checkpoints = await this.#options.checkpoints?.();
    return pointsOfThread(principal, threadId, { store: this.#store, checkpoints });
  }

  async decide(...[principal, runId, approvalId, decision, by]: Parameters<RunService["decide"]>) {
    return decide({ principal, runId, approvalId, decision, by }, this.#deciding);
  }

  async useAnswer(...[principal, runId, answer]: Parameters<RunService["useAnswer"]>) {
    return useAnswer({ principal, runId, answer }, this.#deciding);
  }

  async modelCalls(principal: Principal, runId: string): Promise<ModelCall[]> {
    return this.#store.head(principal, runId) === undefined ? [] : this.#store.models.calls(runId);
  }

  async replyToModel(...[principal, runId, callId, reply]: Parameters<RunService["replyToModel"]>) {
    const given = { principal, runId, callId, reply };
    return this.#write(() => replyToModel(given, this.#store, this.#clock()));
  }

  prune(retention: Retention, orphans: Orphans = "keep"): Promise<PruneReport> {
    return this.#prune(retention, orphans, this.#clock());
  }

  async planPrune(retention: Retention): Promise<PrunePlan> {
    const { database, checkpoints } = this.#options;
    return planPrune(retention, { database, checkpoints: await checkpoints?.(), now: this.#clock() });
  }

  async tell(principal: Principal, runId: string, request: TellRequest): Promise<TellOutcome> {
    const context = { store: this.#store, newId: this.#newId, now: this.#clock() };
    return this.#write(() => tell(principal, runId, request, context));
  }

  async cancel(principal: Principal, runId: string, reason: string): Promise<CancelOutcome> {
    const cancelled = await this.#write(() => this.#store.cancel(principal, runId, reason, this.#clock()));
    if (cancelled === undefined) {
      return { ok: false, code: "not_found", message: `There is no run ${runId}.` };
    }
    await this.#worker.cancel(runId);
    return { ok: true, run: cancelled.run, alreadyEnded: cancelled.ended };
  }

  async runFiles(principal: Principal, runId: string): Promise<Backend | undefined> {
    const run = this.#store.get(principal, runId);
    if (run === undefined) return undefined;
    const { threadTree } = await import("./run-files.ts");
    return threadTree(run, { ...this.#options, agentFor: (one) => this.#agentFor(one) });
  }

  files(principal: Principal): Promise<Backend> {
    return this.#options.tree(principal);
  }

  searchMemories(principal: Principal, query: string, limit: number): Promise<MemorySearch> {
    return this.#options.searchMemories(principal, query, limit);
  }

  drawing(principal: Principal): Promise<string> {
    return this.#options.drawing(principal);
  }

  async assertWritable(): Promise<void> {
    await assertWritable(this.#store.database);
  }

  async statistics(): Promise<RunStatistics> {
    return readStatistics(this.#options.database);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #write<T>(work: () => T): Promise<T> {
    return durably(this.#store.database, work);
  }

  /** To look at, or to ask about a call. */
  #agentFor(run: Run): Promise<Agent> {
    return this.#options.agentFor(run, NO_LENDER);
  }

  get #lending(): LendingContext {
    const patienceMs = this.#options.timing?.lendMs ?? 30_000;
    return { store: this.#store, feed: this.#feed, clock: this.#clock, patienceMs };
  }

  get #deciding(): DecideContext {
    return { store: this.#store, agentFor: (run) => this.#agentFor(run), clock: this.#clock };
  }

  async #prune(retention: Retention, orphans: Orphans, now: number): Promise<PruneReport> {
    const { database, sweepMemories } = this.#options;
    const checkpoints = await this.#options.checkpoints?.();
    const signal = this.#closed.signal;
    return prune(retention, { orphans, database, checkpoints, sweepMemories, now, signal });
  }

  async #close(): Promise<void> {
    this.#closed.abort();
    await Promise.all([this.#pulse.close(), this.#housekeeping, this.#worker.close()]);
    this.#feed.close();
  }
}
