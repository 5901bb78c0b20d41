/** Runs over any engine: the port of `runs/ports.ts`, one transaction for each method. */
import type { SamplingReply } from "../../agent/agent.ts";
import { ownTurn } from "../../core/concurrency.ts";
import {
  type AnsweredQuestion,
  type AppliedAnswer,
  type Claim,
  type ClaimRequest,
  type Created,
  type DecidedCall,
  type Lease,
  type NewMessage,
  type NewRun,
  type OwnedRun,
  type RunListener,
  type RunQueries,
  type RunRepository,
  type RunStatistics,
  type SeenLease,
  type Sent,
  type SignedAnswer,
  type StartRequest,
  type WorkLog,
  type WorkOptions,
} from "../../runs/ports.ts";
import {
  KEPT_FOR_SIZE_MS,
  type PruneContext,
  type PrunePlan,
  type PruneReport,
  type Retention,
} from "../../runs/retention.ts";
import type { Checkpoints } from "../../runs/thread-ports.ts";
import type { ShareRows } from "../../runs/shares.ts";
import type { Approval, Principal, Run, RunHead, RunStatus, RunSummary } from "../../runs/run.ts";
import * as answers from "./answers.ts";
import * as approvals from "./approvals.ts";
import { listChildren } from "./children.ts";
import * as journal from "./journal.ts";
import * as leases from "./leases.ts";
import * as models from "./model-requests.ts";
import * as questions from "./questions.ts";
import * as reviews from "./reviews.ts";
import { toRun } from "./rows.ts";
import * as runs from "./runs.ts";
import { StoredSchedules } from "./schedules.ts";
import { StoredNews } from "./news.ts";
import { type RunIndex, search } from "./search.ts";
import { shareRows } from "./shares.ts";
import type { Engine, Steps } from "./steps.ts";
import { beginCopy } from "./threads.ts";
import { StoredWork, fail } from "./work.ts";

/** The parts of `RunRepository` that each engine implements itself. */
export interface Housekeeping {
  prune(retention: Retention, context: PruneContext): Promise<PruneReport>;
  storedBytes(checkpoints: Checkpoints | undefined): Promise<number>;
  /** Threads of checkpoints that no run has. */
  orphans(checkpoints: Checkpoints | undefined): Promise<string[]>;
  assertWritable(): Promise<void>;
  /** Finds runs by their texts. Absent: a search reads all of them. */
  textIndex?: RunIndex;
  /** This process changed a run; for engines whose other processes have to be told. */
  changed?(runId: string): void;
  /** Delay until its other processes hear of changes. */
  lag?(): Pick<RunStatistics, "newsLagMs">;
  /** Tells `listener` of what other processes change, until it is closed. */
  watchOthers(listener: RunListener, pollMs: number): { close(): void };
}

/** Runs whose changes are counted in one round of housekeeping. */
const UNCOUNTED_AT_ONCE = 20;

export class StoredRuns implements RunRepository {
  readonly read: RunQueries;
  readonly schedules: StoredSchedules;
  readonly shares: ShareRows;
  readonly news: StoredNews;
  readonly #engine: Engine;
  readonly #housekeeping: Housekeeping;
  readonly #listeners = new Set<RunListener>();

  constructor(engine: Engine, housekeeping: Housekeeping) {
    this.#engine = engine;
    this.#housekeeping = housekeeping;
    this.read = queriesOf(engine, housekeeping.textIndex);
    const started = (runId: string): void => this.#notify(runId, true);
    this.schedules = new StoredSchedules(engine, started, (found) => withPlaces(engine, found));
    this.shares = shareRows(engine);
    this.news = new StoredNews(engine);
  }

  create(principal: Principal, request: StartRequest, fresh: NewRun): Promise<Created> {
    const steps = () => runs.create(principal, request, fresh);
    return this.#change([principal, fresh.runId], steps, ({ kind }) => kind === "created");
  }

  awaitedBy(principal: Principal, runId: string, request: StartRequest): Promise<void> {
    return this.#engine.of(principal).write(() => runs.noteCall(principal, runId, request));
  }

  async answered(principal: Principal, runId: string, begunAt: number): Promise<void> {
    const engine = this.#engine.of(principal);
    // Looked at first: most answers change nothing, and need not wait for whoever writes.
    if (await engine.read(() => runs.isUnanswered(principal, runId, begunAt))) {
      await engine.write(() => runs.forgetCall(principal, runId));
    }
  }

  async send(principal: Principal, runId: string, message: NewMessage): Promise<Sent> {
    const steps = () => runs.send(principal, runId, message);
    const sent = await this.#change([principal, runId], steps, ({ kind }) => kind === "sent");
    if (sent.kind === "sent" && sent.run.parent) this.#notify(sent.run.parent.runId, false);
    return sent;
  }

  async cancel(principal: Principal, runId: string, reason: string, now: number) {
    const steps = () => runs.cancel(principal, runId, reason, now);
    const cancelled = await this.#change([principal, runId], steps, (done) => done?.ended === false);
    if (cancelled?.run.parent) this.#notify(cancelled.run.parent.runId, true);
    for (const id of cancelled?.children ?? []) this.#notify(id, true);
    return cancelled;
  }

  rename(principal: Principal, runId: string, name: string | null): Promise<boolean> {
    return this.#change([principal, runId], () => runs.rename(principal, runId, name), Boolean);
  }

  disown(principal: Principal, runId: string): Promise<boolean> {
    // The second wall would refuse a row that is no longer the principal's.
    return this.#engine.write(() => runs.disown(principal, runId));
  }

  decide(principal: Principal, call: DecidedCall, by: string, now: number): Promise<Approval | undefined> {
    const steps = () => answers.decide(principal, call, by, now);
    return this.#change([principal, call.approval.runId], steps, isFound);
  }

  useSignedAnswer(run: Run, answer: SignedAnswer, now: number): Promise<AppliedAnswer | undefined> {
    return this.#change(
      [run.principal, run.id],
      () => answers.use(run, answer, now),
      () => true,
    );
  }

  reply(run: Run, callId: string, reply: SamplingReply, now: number): Promise<boolean> {
    return this.#change(
      [run.principal, run.id],
      () => answers.reply(run, callId, reply, now),
      (isFirst) => isFirst,
    );
  }

  noteUnapplied(principal: Principal, runId: string, unapplied: number): Promise<void> {
    const steps = () => reviews.noteAfterEnd(principal, runId, unapplied);
    return this.#change([principal, runId], steps, () => false);
  }

  uncounted(environment: string): Promise<{ id: string; principal: Principal }[]> {
    return this.#engine.read(() => reviews.uncounted(environment, UNCOUNTED_AT_ONCE));
  }

  async expire(now: number): Promise<{ runId: string; id: string }[]> {
    const expired: { runId: string; id: string }[] = [];
    for (const row of await this.#engine.read(() => questions.expired(now))) {
      const { principal, run_id: runId, id } = row;
      const expire = () => answers.expire(principal, row, now);
      if (await this.#change([principal, runId], expire, (isChanged) => isChanged))
        expired.push({ runId, id });
    }
    return expired;
  }

  answer(principal: Principal, answered: AnsweredQuestion, by: string, now: number) {
    const work = () => answers.answer(principal, answered, by, now);
    return this.#change([principal, answered.question.runId], work, isFound);
  }

  beginCopy(principal: Principal, threadId: string, now: number): Promise<void> {
    return this.#engine.of(principal).write(() => beginCopy(principal, threadId, now));
  }

  async claimNext(request: ClaimRequest, crashLimit: number): Promise<Claim | undefined> {
    while (await this.#engine.read(() => leases.anyWaiting(request.environment))) {
      const claimed = await this.#engine.note(() => claim(request));
      if (claimed === undefined) return undefined;
      const { lease, run, recovered, crashes } = claimed;
      if (recovered) this.#notify(lease.runId, false);
      if (crashes < crashLimit) return { lease, run, recovered };
      const failure = leases.crashFailure(crashes);
      const options = { now: request.now, rules: this.news.rules };
      const ended = await this.#engine.of(lease.principal).write(() => fail(lease, failure, options));
      this.#notify(lease.runId, false);
      for (const id of ended) this.#notify(id, true);
      if (lease.rootId !== lease.runId) this.#notify(lease.rootId, false);
      this.news.posted();
    }
    return undefined;
  }

  renew(owner: string, runIds: readonly string[], now: number, expiresAt: number): Promise<void> {
    return this.#engine.note(() => leases.renew(owner, runIds, now, expiresAt));
  }

  release(lease: Lease): Promise<void> {
    return this.#engine.of(lease.principal).note(() => leases.release(lease));
  }

  revoke(lease: SeenLease): Promise<void> {
    return this.#engine.write(() => leases.revoke(lease));
  }

  leases(): Promise<SeenLease[]> {
    return this.#engine.read(() => leases.leases());
  }

  expiredLeases(now: number, leaseMs: number): Promise<SeenLease[]> {
    return this.#engine.read(() => leases.expired(now, leaseMs));
  }

  ownedBy(owner: string): Promise<OwnedRun[]> {
    return this.#engine.read(() => leases.ownedBy(owner));
  }

  work(options: WorkOptions): WorkLog {
    return new StoredWork(
      this.#engine,
      (runId, isClaimable) => this.#notify(runId, isClaimable),
      this.news,
      options,
    );
  }

  watch(listener: RunListener, pollMs: number): { close(): void } {
    this.#listeners.add(listener);
    const others = this.#housekeeping.watchOthers(listener, pollMs);
    return {
      close: () => {
        others.close();
        this.#listeners.delete(listener);
      },
    };
  }

  async prune(retention: Retention, context: PruneContext): Promise<PruneReport> {
    await this.news.deleteExpired(context.now);
    return this.#housekeeping.prune(retention, context);
  }

  async planPrune(
    { maxAgeMs, maxBytes }: Retention,
    checkpoints: Checkpoints | undefined,
    now: number,
  ): Promise<PrunePlan> {
    const count = (keptMs: number) => this.#engine.read(() => runs.countForgettable(now - keptMs));
    const ofAge = maxAgeMs === undefined ? 0 : await count(maxAgeMs);
    const forSize = maxBytes === undefined ? 0 : await count(KEPT_FOR_SIZE_MS);
    return {
      runs: ofAge,
      runsForSize: Math.max(0, forSize - ofAge),
      unfinished: await this.#engine.read(runs.countUnfinished),
      storedBytes: await this.#housekeeping.storedBytes(checkpoints),
      orphans: (await this.#housekeeping.orphans(checkpoints)).length,
    };
  }

  async statistics(): Promise<RunStatistics> {
    const { waiting, since, atWork } = await this.#engine.read(leases.queue);
    return {
      runs: await this.#countAll(),
      pendingApprovals: await this.#engine.read(questions.countAllPending),
      waiting,
      atWork,
      ...(since === null ? {} : { waitingSince: since }),
      ...this.#housekeeping.lag?.(),
    };
  }

  listAll(limit: number): Promise<RunHead[]> {
    return this.#engine.read(() => runs.listAll(limit));
  }

  /** In pieces, because a look at many runs would hold up the event loop. */
  async #countAll(): Promise<Record<RunStatus, number>> {
    const counts = { ...runs.NO_RUNS };
    for (let last = 0; ;) {
      const rows = await this.#engine.read(() => runs.countNext(last));
      if (rows.length === 0) return counts;
      for (const { status, count } of rows) counts[status] += count;
      last = Math.max(...rows.map((row) => row.last));
      await ownTurn();
    }
  }

  assertWritable(): Promise<void> {
    return this.#housekeeping.assertWritable();
  }

  /** Tells listeners when `isChange` says that the result was a change. */
  async #change<T>(
    [principal, runId]: readonly [Principal, string],
    steps: () => Steps<T>,
    isChange: (result: T) => boolean,
  ): Promise<T> {
    const result = await this.#engine.of(principal).write(steps);
    if (isChange(result)) this.#notify(runId, true);
    return result;
  }

  #notify(runId: string, fromOutside: boolean): void {
    for (const listener of this.#listeners) listener.changed(runId, fromOutside);
    this.#housekeeping.changed?.(runId);
  }
}

const isFound = (found: unknown): boolean => found !== undefined;

function* claim(request: ClaimRequest): Steps<(Claim & { crashes: number }) | undefined> {
  const claimed = yield* leases.claimNext(request);
  if (claimed === undefined) return undefined;
  const { lease, before, crashes } = claimed;
  const recovered = before.in_flight !== 0;
  if (recovered && before.parent_id === null) {
    yield* journal.append(before.id, { kind: "run_resumed", agent: [], data: {} }, request.now);
  }
  return { lease, run: toRun(before), recovered, crashes };
}

/** A run's place in line depends on the runs of all principals. */
async function withPlaces(engine: Engine, found: RunSummary[]): Promise<RunSummary[]> {
  const queued = found.filter(({ status, leasedUntil }) => status === "working" && leasedUntil === undefined);
  const environments = [...new Set(queued.map(({ environment }) => environment))];
  const lines = await Promise.all(
    environments.map((environment) => engine.read(() => leases.placesIn(environment))),
  );
  return found.map((run) => {
    const place = lines.map((line) => line.get(run.id)).find((one) => one !== undefined);
    return place === undefined ? run : { ...run, place };
  });
}

async function summaries(
  engine: Engine,
  index: RunIndex | undefined,
  [principal, { text, ...filter }, limit, before]: Parameters<RunQueries["summaries"]>,
): Promise<RunSummary[]> {
  const own = engine.of(principal);
  const found =
    text === undefined
      ? await own.read(() => runs.summaries(principal, filter, limit, before))
      : await search(own, index, { principal, filter: { ...filter, text }, limit, before });
  return withPlaces(engine, found);
}

function queriesOf(engine: Engine, index: RunIndex | undefined): RunQueries {
  const views = new approvals.ApprovalViews();
  const read = <T>(principal: Principal, steps: () => Steps<T>) => engine.of(principal).read(steps);
  return {
    run: (principal, runId) => read(principal, () => runs.get(principal, runId)),
    list: (principal, limit, before) => read(principal, () => runs.list(principal, limit, before)),
    summaries: (...args) => summaries(engine, index, args),
    counts: (principal) => read(principal, () => runs.counts(principal)),
    pending: (principal, limit) => read(principal, () => approvals.pendingOf(principal, limit)),
    children: (principal, runId) => read(principal, () => listChildren(principal, runId)),
    countPending: (principal) => read(principal, () => questions.countPendingOf(principal)),
    journal: (principal, runId, after, limit) =>
      read(principal, function* () {
        const run = yield* runs.head(principal, runId);
        return run && { run, events: yield* journal.page(runId, after, limit) };
      }),
    recent: (principal, runId, wanted) =>
      read(principal, function* () {
        const run = yield* runs.head(principal, runId);
        return run && (yield* journal.recent(runId, wanted));
      }),
    picture: async (principal, runId, after, limit) => {
      const seen = await read(principal, function* () {
        const run = yield* runs.get(principal, runId);
        if (run === undefined) return undefined;
        return {
          run,
          events: yield* journal.page(runId, after, limit),
          approvals: yield* views.of(runId),
          questions: yield* questions.ofRun(runId),
          grants: yield* approvals.grantsOf(principal, runId),
          modelCalls: yield* models.open(runId),
        };
      });
      if (seen?.run.status !== "working") return seen;
      // Its place in line depends on the runs of all principals.
      return { ...seen, place: await engine.read(() => leases.placeOf(runId)) };
    },
    approval: (principal, runId, approvalId) =>
      read(principal, () => approvals.getOf(principal, runId, approvalId)),
    question: (principal, runId, id) => read(principal, () => questions.getOf(principal, runId, id)),
    pendingQuestions: (principal, limit) => read(principal, () => questions.pendingOf(principal, limit)),
    grants: (principal, runId) => read(principal, () => approvals.grantsOf(principal, runId)),
    modelCalls: (principal, runId) =>
      read(principal, function* () {
        return (yield* runs.head(principal, runId)) === undefined ? [] : yield* models.calls(runId);
      }),
    modelReply: (principal, runId, callId) =>
      read(principal, () => models.replyFor(principal, runId, callId)),
    obstacle: (principal, request, limits) =>
      read(principal, () => runs.obstacle(principal, request, limits)),
  };
}
