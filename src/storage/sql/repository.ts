/** Runs over any engine: the port of `runs/ports.ts`, one transaction for each method. */
import { setTimeout as delay } from "node:timers/promises";
import { ownTurn } from "../../core/concurrency.ts";
import type { RunListener, RunQueries, RunRepository, RunStatistics } from "../../runs/ports.ts";
import { KEPT_FOR_SIZE_MS } from "../../runs/retention.ts";
import type { Checkpoints } from "../../runs/thread-ports.ts";
import type { Principal, RunStatus, RunSummary } from "../../runs/run.ts";
import * as answers from "./answers.ts";
import * as grants from "./grants.ts";
import { listChildren } from "./children.ts";
import { findOrphans } from "./housekeeping.ts";
import * as journal from "./journal.ts";
import * as leases from "./leases.ts";
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
export interface Housekeeping extends Pick<RunRepository, "prune" | "assertWritable"> {
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

export function storedRuns(engine: Engine, housekeeping: Housekeeping): RunRepository {
  const listeners = new Set<RunListener>();
  const notify: Notify = (runId, fromOutside) => {
    for (const listener of listeners) listener.changed(runId, fromOutside);
    housekeeping.changed?.(runId);
  };
  const news = storedNews(engine);
  const started = (runId: string): void => notify(runId, true);
  return {
    read: queriesOf(engine, housekeeping.textIndex),
    schedules: storedSchedules(engine, started, (found) => withPlaces(engine, found)),
    shares: shareRows(engine),
    rules: ruleRows(engine),
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
    work: (options) => new StoredWork(engine, notify, news, options),
    watch: (listener, pollMs) => {
      listeners.add(listener);
      const others = housekeeping.watchOthers(listener, pollMs);
      return { close: () => void (others.close(), listeners.delete(listener)) };
    },
    ...numbersOf(engine, housekeeping),
    prune: async (retention, context) => {
      await news.deleteExpired(context.now);
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
    create: (principal, request, fresh) => {
      const steps = () => runs.create(principal, request, fresh);
      return change([principal, fresh.runId], steps, ({ kind }) => kind === "created");
    },
    send: async (principal, runId, message) => {
      const steps = () => runs.send(principal, runId, message);
      const sent = await change([principal, runId], steps, ({ kind }) => kind === "sent");
      if (sent.kind === "sent" && sent.run.parent) notify(sent.run.parent.runId, false);
      return sent;
    },
    cancel: async (principal, runId, reason, now) => {
      const steps = () => runs.cancel(principal, runId, reason, now);
      const cancelled = await change([principal, runId], steps, (done) => done?.ended === false);
      if (cancelled?.run.parent) notify(cancelled.run.parent.runId, true);
      for (const id of cancelled?.children ?? []) notify(id, true);
      return cancelled;
    },
    rename: (principal, runId, name) => change([principal, runId], () => runs.rename(principal, runId, name)),
    answer: (principal, answered, by, now) =>
      change([principal, answered.request.runId], () => answers.answer(principal, answered, by, now)),
    useSignedAnswer: (run, answer, now) => {
      const steps = () => answers.use(run, answer, now);
      return change([run.principal, run.id], steps, () => true);
    },
    reply: (run, callId, reply, now) =>
      change([run.principal, run.id], () => answers.reply(run, callId, reply, now)),
    expire: async (now) => {
      const expired: { runId: string; id: string }[] = [];
      for (const row of await engine.read(() => requests.expired(now))) {
        const { principal, run_id: runId, id } = row;
        const isExpired = await change([principal, runId], () => answers.expire(principal, row, now));
        if (isExpired) expired.push({ runId, id });
      }
      return expired;
    },
    answered: async (principal, runId, begunAt) => {
      const own = engine.of(principal);
      // Looked at first: most answers change nothing, and need not wait for whoever writes.
      if (await own.read(() => runs.isUnanswered(principal, runId, begunAt)))
        await own.write(() => runs.forgetCall(principal, runId));
    },
  } satisfies Partial<RunRepository>;
}

function leasesOf(engine: Engine, news: StoredNews, notify: Notify) {
  return {
    claimNext: async (request, crashLimit) => {
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
    release: async (lease) => {
      const own = engine.of(lease.principal);
      // Looked at first: the end of the work released most leases.
      if (await own.read(() => leases.isHeld(lease))) await own.note(() => leases.release(lease));
    },
    isHeld: (lease) => engine.of(lease.principal).read(() => leases.isHeld(lease)),
    ...ofPrincipal(engine, "note", { leaseEnded: leases.leaseEnded }),
    ...ofServer(engine, "note", { renew: leases.renew }),
    ...ofServer(engine, "write", { revoke: leases.revoke }),
    ...ofServer(engine, "read", {
      leases: leases.leases,
      expiredLeases: leases.expired,
      ownedBy: leases.ownedBy,
    }),
  } satisfies Partial<RunRepository>;
}

function numbersOf(engine: Engine, housekeeping: Housekeeping) {
  return {
    planPrune: async ({ maxAgeMs, maxBytes }, checkpoints, now) => {
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
    statistics: async () => {
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
  } satisfies Partial<RunRepository>;
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

function queriesOf(engine: Engine, index: RunIndex | undefined): RunQueries {
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
    summaries: async (principal, { text, ...filter }, page) => {
      const own = engine.of(principal);
      const found =
        text === undefined
          ? await own.read(() => runs.summaries(principal, filter, page))
          : await search(own, index, { principal, filter: { ...filter, text }, ...page });
      return withPlaces(engine, found);
    },
    journal: (principal, runId, after, limit) =>
      read(principal, function* () {
        const run = yield* runs.head(principal, runId);
        return run && { run, events: yield* journal.page(runId, after, limit) };
      }),
    recentEvents: (principal, runId, wanted) =>
      read(principal, function* () {
        const run = yield* runs.head(principal, runId);
        return run && (yield* journal.recent(runId, wanted));
      }),
    modelCalls: (principal, runId) =>
      read(principal, function* () {
        return (yield* runs.head(principal, runId)) === undefined ? [] : yield* models.calls(runId);
      }),
    picture: async (principal, runId, after, limit) => {
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
      if (seen?.run.status !== "working") return seen;
      // Its place in line depends on the runs of all principals.
      return { ...seen, place: await engine.read(() => leases.placeOf(runId)) };
    },
  };
}
