/** Runs in SQLite: the port of `runs/ports.ts` over the tables of this folder. */
import type { RunListener, RunQueries, RunRepository } from "../../../runs/ports.ts";
import { durably } from "../commit.ts";
import { type Database, whenUnlocked } from "../database.ts";
import { ApprovalViews } from "./approvals.ts";
import { toRun } from "./events.ts";
import { assertWritable, readStatistics } from "./maintenance.ts";
import { planPrune, prune } from "./prune.ts";
import { RunStore } from "./run-store.ts";
import { WorkStore } from "./work-store.ts";

/** `database`: migrated with `RUN_MIGRATIONS`; stays the caller's, to be closed when nothing uses the runs any more. */
export function sqliteRuns(database: Database): RunRepository {
  const listeners = new Set<RunListener>();
  const notify = (fromOutside: boolean) => (runId: string) => {
    for (const listener of listeners) listener.changed(runId, fromOutside);
  };
  const store = new RunStore(database, notify(true));
  const { answers, approvals, calls, copies, leases } = store;
  const work = new WorkStore(store, notify(false));
  const write = <T>(change: () => T): Promise<T> => durably(database, change);
  return {
    read: queriesOf(store),
    create: (...args) => write(() => store.create(...args)),
    awaitedBy: (...args) => write(() => calls.ask(...args)),
    // Looked at first: most answers change nothing, and need not wait for whoever writes.
    answered: async (principal, runId, begunAt) => {
      if (calls.isUnanswered(principal, runId, begunAt)) await write(() => calls.answer(runId));
    },
    send: (...args) => write(() => store.send(...args)),
    cancel: (...args) => write(() => store.cancel(...args)),
    decide: (...args) => write(() => answers.decide(...args)),
    useSignedAnswer: (...args) => write(() => answers.use(...args)),
    reply: (...args) => write(() => answers.reply(...args)),
    // Looked at first: only what has expired is worth the lock.
    denyExpired: async (now) => (approvals.expired(now).length === 0 ? [] : write(() => answers.expire(now))),
    beginCopy: (...args) => write(() => copies.begin(...args)),
    claimNext: async (...args) => {
      const claim = await whenUnlocked(database, () => work.claimNext(...args));
      return (
        claim && { lease: claim.lease, run: toRun(claim.before), recovered: claim.before.in_flight !== 0 }
      );
    },
    renew: (...args) => whenUnlocked(database, () => leases.renew(...args)),
    release: (lease) => whenUnlocked(database, () => leases.release(lease)),
    revoke: (lease) => whenUnlocked(database, () => leases.revoke(lease)),
    leases: async () => leases.all(),
    expiredLeases: async (...args) => leases.expired(...args),
    ownedBy: async (owner) => leases.owned(owner),
    work: (options) => new WorkStore(store, notify(false), options),
    watch: (listener, pollMs) => {
      listeners.add(listener);
      const timer = pollForeignChanges(database, listener, pollMs);
      return {
        close: () => {
          clearInterval(timer);
          listeners.delete(listener);
        },
      };
    },
    prune: (...args) => prune(database, ...args),
    planPrune: (...args) => planPrune(database, ...args),
    statistics: () => readStatistics(database),
    assertWritable: () => assertWritable(database),
  };
}

/** Every answer is read in one go, so that all its parts tell of the same moment. */
function queriesOf(store: RunStore): RunQueries {
  const { approvals, events, grants, leases, models } = store;
  const views = new ApprovalViews(approvals);
  return {
    run: async (...args) => store.get(...args),
    list: async (...args) => store.list(...args),
    journal: async (principal, runId, after, limit) => {
      const run = store.head(principal, runId);
      return run && { run, events: events.page(runId, after, limit) };
    },
    picture: async (principal, runId, after, limit) => {
      const run = store.get(principal, runId);
      return (
        run && {
          run,
          events: events.page(runId, after, limit),
          approvals: views.of(runId),
          grants: grants.ofRun(runId),
          place: leases.placeOf(runId),
          modelCalls: models.open(runId),
        }
      );
    },
    approval: async (...args) => approvals.get(...args),
    grants: async (runId) => grants.ofRun(runId),
    modelCalls: async (principal, runId) =>
      store.head(principal, runId) === undefined ? [] : models.calls(runId),
    modelReply: async (...args) => models.replyTo(...args),
    obstacle: async (...args) => store.obstacle(...args),
  };
}

/** SQLite's `data_version` changes when another connection commits, and only then. Keeps no process alive. */
function pollForeignChanges(database: Database, listener: RunListener, pollMs: number): NodeJS.Timeout {
  const read = (): unknown => database.pragma("data_version", { simple: true });
  let version = read();
  return setInterval(() => {
    try {
      const newest = read();
      if (newest === version) return;
      version = newest;
      listener.changedElsewhere();
    } catch (error) {
      listener.failed(error);
    }
  }, pollMs).unref();
}
