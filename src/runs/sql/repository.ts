/** Runs over any engine. Every method is one transaction, durable when it resolves. Throws StorageError if storage fails. */
import { setTimeout as delay } from "node:timers/promises";
import { ownTurn } from "../../core/concurrency.ts";
import type { SamplingReply } from "../../agent/agent.ts";
import type { AnsweredRequest, Claim, ClaimRequest, Lease, NewRun, Page } from "../ports.ts";
import type { JournalPage, RecentEvents, RunListener, RunStatistics, SignedAnswer } from "../ports.ts";
import type { StartRequest, WorkOptions } from "../ports.ts";
import { KEPT_FOR_SIZE_MS } from "../retention.ts";
import type { PruneContext, PrunePlan, PruneReport, Retention } from "../retention.ts";
import type { Checkpoints } from "../thread-ports.ts";
import type { Principal, Run, RunFilter, RunStatus, RunSummary } from "../run.ts";
import * as answers from "./answers.ts";
import * as grants from "./grants.ts";
import { listChildren } from "./children.ts";
import { findOrphans } from "./housekeeping.ts";
import * as journal from "./journal.ts";
import * as leases from "./leases.ts";
import { loginRows } from "./logins.ts";
import * as models from "./model-requests.ts";
import * as requests from "./requests.ts";
import * as reviews from "./reviews.ts";
import { toRun } from "./rows.ts";
import * as runs from "./runs.ts";
import { storedSchedules } from "./schedules.ts";
import { type StoredNews, storedNews } from "./news.ts";
import { type RunIndex, search } from "./search.ts";
import { ruleRows } from "./rules.ts";
import { shareRows } from "./shares.ts";
import { type Engine, type Steps, ofPrincipal, ofServer } from "./steps.ts";
import { beginCopy } from "./threads.ts";
import { StoredWork, fail } from "./work.ts";

/** The parts of `RunRepository` that each engine implements itself. */
export interface Housekeeping {
  prune(retention: Retention, context: PruneContext): Promise<PruneReport>;
  /** @throws unless runs can be stored now. */
  assertWritable(): Promise<void>;
  storedBytes(checkpoints: Checkpoints | undefined): Promise<number>;
  /** Finds runs by their texts. Absent: a search reads all of them. */
  textIndex?: RunIndex;
  /** Called when this process changed a run; for engines that notify other processes. */
  changed?(runId: string): void;
  /** Delay until its other processes hear of changes. */
  lag?(): Pick<RunStatistics, "newsLagMs">;
  /** Calls `listener` for the changes of other processes, until it is closed. */
  watchOthers(listener: RunListener, pollMs: number): { close(): void };
}

/** Reports that a run was changed. `fromOutside`: not by work on it, so that it may be claimable now. */
type Notify = RunListener["changed"];

export type RunRepository = ReturnType<typeof storedRuns>;

export function storedRuns(engine: Engine, housekeeping: Housekeeping) {
  const listeners = new Set<RunListener>();
  const notify: Notify = (runId, fromOutside) => {
    for (const listener of listeners) listener.changed(runId, fromOutside);
    housekeeping.changed?.(runId);
  };
  const [news, logins] = [storedNews(engine), loginRows(engine)];
  const started = (runId: string): void => notify(runId, true);
  return {
    read: queriesOf(engine, housekeeping.textIndex),
    schedules: storedSchedules(engine, started, (found) => withPlaces(engine, found)),
    shares: shareRows(engine),
    rules: ruleRows(engine),
    logins,
    news,
    ...changesOf(engine, notify),
    ...leasesOf(engine, news, notify),
    ...ofPrincipal(engine, "write", {
      awaitedBy: runs.noteCall,
      noteUnapplied: reviews.noteAfterEnd,
      beginCopy,
    }),
    // The second wall would refuse a row that is no longer the principal's.
    ...ofServer(engine, "write", { disown: runs.disown }),
    ...ofServer(engine, "read", {
      uncounted: reviews.uncounted,
      listAll: runs.listAll,
      environments: runs.environments,
    }),
    work: (options: WorkOptions) => new StoredWork(engine, notify, news, options),
    /** Notifies the listener of changes until it is closed. Polls for those of other processes every `pollMs`. */
    watch: (listener: RunListener, pollMs: number) => {
      listeners.add(listener);
      const others = housekeeping.watchOthers(listener, pollMs);
      return { close: () => void (others.close(), listeners.delete(listener)) };
    },
    ...numbersOf(engine, housekeeping),
    prune: async (retention: Retention, context: PruneContext) => {
      await news.deleteExpired(context.now);
      await logins.change("remove expired", { now: context.now });
      return housekeeping.prune(retention, context);
    },
    assertWritable: () => housekeeping.assertWritable(),
  };
}

/** Changes by people and programs from outside. */
function changesOf(engine: Engine, notify: Notify) {
  /** Notifies listeners if `isChange` is true for the result. */
  const change = async <T>(
    [principal, runId]: readonly [Principal, string],
    steps: () => Steps<T>,
    isChange: (result: T) => boolean = Boolean,
  ): Promise<T> => {
    const result = await engine.of(principal).write(steps);
    if (isChange(result)) notify(runId, true);
    return result;
  };
  return {
    create: (principal: Principal, request: StartRequest, fresh: NewRun) => {
      const steps = () => runs.create(principal, request, fresh);
      return change([principal, fresh.runId], steps, ({ kind }) => kind === "created");
    },
    send: async (...args: Parameters<typeof runs.send>) => {
      const [principal, runId] = args;
      const steps = () => runs.send(...args);
      const sent = await change([principal, runId], steps, ({ kind }) => kind === "sent");
      if (sent.kind === "sent" && sent.run.parent) notify(sent.run.parent.runId, false);
      return sent;
    },
    /** `ended`: it had ended before. A server at work keeps the lease until it stops. Undefined if there is no such run. */
    cancel: async (principal: Principal, runId: string, reason: string, now: number) => {
      const steps = () => runs.cancel(principal, runId, reason, now);
      const cancelled = await change([principal, runId], steps, (done) => done?.ended === false);
      if (cancelled?.run.parent) notify(cancelled.run.parent.runId, true);
      for (const id of cancelled?.children ?? []) notify(id, true);
      return cancelled;
    },
    rename: (...args: Parameters<typeof runs.rename>) =>
      change([args[0], args[1]], () => runs.rename(...args)),
    /** Returns the request as answered; a deadline that has passed answers. Undefined if it was not pending any more. */
    answer: (principal: Principal, answered: AnsweredRequest, by: string, now: number) =>
      change([principal, answered.request.runId], () => answers.answer(principal, answered, by, now)),
    useSignedAnswer: (run: Run, answer: SignedAnswer<AnsweredRequest>, now: number) => {
      const steps = () => answers.use(run, answer, now);
      return change([run.principal, run.id], steps, () => true);
    },
    reply: (run: Run, callId: string, reply: SamplingReply, now: number) =>
      change([run.principal, run.id], () => answers.reply(run, callId, reply, now)),
    /** Closes requests that nobody answered in time, in all runs; returns the changed ones. */
    expire: async (now: number) => {
      const expired: { runId: string; id: string }[] = [];
      for (const row of await engine.read(() => requests.expired(now))) {
        const { principal, run_id: runId, id } = row;
        const isExpired = await change([principal, runId], () => answers.expire(principal, row, now));
        if (isExpired) expired.push({ runId, id });
      }
      return expired;
    },
    /** A client was sent what became of the run, in answer to a call that began at `begunAt`. */
    answered: async (principal: Principal, runId: string, begunAt: number) => {
      const own = engine.of(principal);
      // Looked at first: most answers change nothing, and need not wait for whoever writes.
      if (await own.read(() => runs.isUnanswered(principal, runId, begunAt)))
        await own.write(() => runs.forgetCall(principal, runId));
    },
  };
}

function leasesOf(engine: Engine, news: StoredNews, notify: Notify) {
  return {
    /** Claims the next run, if one waits. Fails runs that crashed their server `crashLimit` times. */
    claimNext: async (request: ClaimRequest, crashLimit: number): Promise<Claim | undefined> => {
      for (let pauseMs = 5; ;) {
        const principals = await engine.read(() => leases.inTurn(request));
        if (principals.length === 0) return undefined;
        const claimed = await engine.note(function* () {
          const next = yield* leases.claim(request, principals);
          if (next === undefined) return undefined;
          const { lease, before, crashes } = next;
          const recovered = before.in_flight !== 0;
          if (recovered && before.parent_id === null)
            yield* journal.append(before.id, { kind: "run_resumed", agent: [], data: {} }, request.now);
          return { lease, run: toRun(before), recovered, crashes };
        });
        if (claimed === undefined) {
          // Others have them, or will leave them in a moment. After that, the next heartbeat looks again.
          if (pauseMs > 80) return undefined;
          await delay(pauseMs);
          pauseMs *= 2;
          continue;
        }
        const { lease, run, recovered, crashes } = claimed;
        if (recovered) notify(lease.runId, false);
        if (crashes < crashLimit) return { lease, run, recovered };
        const failure = leases.crashFailure(crashes);
        const options = { now: request.now, rules: news.rules };
        const ended = await engine.of(lease.principal).write(() => fail(lease, failure, options));
        notify(lease.runId, false);
        for (const id of ended) notify(id, true);
        if (lease.rootId !== lease.runId) notify(lease.rootId, false);
        news.posted();
      }
    },
    /** Does nothing when the lease is not held any more. */
    release: async (lease: Lease) => {
      const own = engine.of(lease.principal);
      // Looked at first: the end of the work released most leases.
      if (await own.read(() => leases.isHeld(lease))) await own.note(() => leases.release(lease));
    },
    isHeld: (lease: Lease) => engine.of(lease.principal).read(() => leases.isHeld(lease)),
    ...ofPrincipal(engine, "note", { leaseEnded: leases.leaseEnded }),
    ...ofServer(engine, "note", { renew: leases.renew }),
    ...ofServer(engine, "write", { revoke: leases.revoke }),
    ...ofServer(engine, "read", {
      leases: leases.leases,
      expiredLeases: leases.expired,
      ownedBy: leases.ownedBy,
    }),
  };
}

function numbersOf(engine: Engine, housekeeping: Housekeeping) {
  return {
    /** Preview of `prune`; changes nothing. */
    planPrune: async (
      { maxAgeMs, maxBytes }: Retention,
      checkpoints: Checkpoints | undefined,
      now: number,
    ): Promise<PrunePlan> => {
      const count = (keptMs: number) => engine.read(() => runs.countForgettable(now - keptMs));
      const ofAge = maxAgeMs === undefined ? 0 : await count(maxAgeMs);
      const forSize = maxBytes === undefined ? 0 : await count(KEPT_FOR_SIZE_MS);
      return {
        runs: ofAge,
        runsForSize: Math.max(0, forSize - ofAge),
        unfinished: await engine.read(runs.countUnfinished),
        storedBytes: await housekeeping.storedBytes(checkpoints),
        orphans: (await findOrphans(engine, checkpoints)).length,
      };
    },
    statistics: async (): Promise<RunStatistics> => {
      const { waiting, since, atWork } = await engine.read(leases.queue);
      return {
        runs: await countAll(engine),
        pendingApprovals: await engine.read(requests.countAllPending),
        waiting,
        atWork,
        ...(since === null ? {} : { waitingSince: since }),
        ...housekeeping.lag?.(),
      };
    },
  };
}

/** In pieces, because a look at many runs would hold up the event loop. */
async function countAll(engine: Engine): Promise<Record<RunStatus, number>> {
  const counts = { ...runs.NO_RUNS };
  for (let last = 0; ;) {
    const rows = await engine.read(() => runs.countNext(last));
    if (rows.length === 0) return counts;
    for (const { status, count } of rows) counts[status] += count;
    last = Math.max(...rows.map((row) => row.last));
    await ownTurn();
  }
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

/** Reads runs. A run of another principal looks like one that does not exist. */
function queriesOf(engine: Engine, index: RunIndex | undefined) {
  const views = new requests.RequestViews();
  const read = <T>(principal: Principal, steps: () => Steps<T>) => engine.of(principal).read(steps);
  return {
    ...ofPrincipal(engine, "read", {
      run: runs.get,
      list: runs.list,
      counts: runs.counts,
      obstacle: runs.obstacle,
      children: listChildren,
      pending: requests.pendingOf,
      request: requests.getOf,
      grants: grants.grantsOf,
      countPending: requests.countPendingOf,
      modelReply: models.replyFor,
    }),
    /** Lists the runs that match the filter, with the facts that a list shows. */
    summaries: async (principal: Principal, { text, ...filter }: RunFilter, page: Page) => {
      const own = engine.of(principal);
      const found =
        text === undefined
          ? await own.read(() => runs.summaries(principal, filter, page))
          : await search(own, index, { principal, filter: { ...filter, text }, ...page });
      return withPlaces(engine, found);
    },
    /** The run, and at most `limit` events with `seq > after`, oldest first. */
    journal: (principal: Principal, runId: string, after: number, limit: number) =>
      read(principal, function* (): Steps<JournalPage | undefined> {
        const run = yield* runs.head(principal, runId);
        return run && { run, events: yield* journal.page(runId, after, limit) };
      }),
    /** Events from the end of the journal, newest first. Returns undefined if there is no such run. */
    recentEvents: (principal: Principal, runId: string, wanted: RecentEvents) =>
      read(principal, function* () {
        const run = yield* runs.head(principal, runId);
        return run && (yield* journal.recent(runId, wanted));
      }),
    /** Model calls that a client is to answer, oldest first; none for an unknown run. */
    modelCalls: (principal: Principal, runId: string) =>
      read(principal, function* () {
        return (yield* runs.head(principal, runId)) === undefined ? [] : yield* models.calls(runId);
      }),
    /** A run with its events, requests, grants and model calls of one moment, and its place if it waits for its turn. */
    picture: async (principal: Principal, runId: string, after: number, limit: number) => {
      const seen = await read(principal, function* () {
        const run = yield* runs.get(principal, runId);
        if (run === undefined) return undefined;
        return {
          run,
          events: yield* journal.page(runId, after, limit),
          requests: yield* views.of(runId),
          grants: yield* grants.grantsOf(principal, runId),
          modelCalls: yield* models.open(runId),
        };
      });
      if (seen?.run.status !== "working") return seen && { ...seen, place: undefined };
      // Its place in line depends on the runs of all principals.
      return { ...seen, place: await engine.read(() => leases.placeOf(runId)) };
    },
  };
}
