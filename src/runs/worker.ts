import { AsyncResource } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { monotonicClock, isDoneWithin } from "../core/clock.ts";
import { coalesced, ownTurn } from "../core/concurrency.ts";
import { Parked, StorageError, isLocked } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import { isGone, processMark } from "../core/process-mark.ts";
import type { Agent } from "../agent/agent.ts";
import type { WorkerOfRun } from "./client-model.ts";
import type { RunContext } from "./context.ts";
import { type Execution, type ExecutionContext, type StopReason, execute } from "./execution.ts";
import { logEnd } from "./audit.ts";
import type { RunServiceOptions } from "./service.ts";
import { type Lease, LeaseLostError, type SeenLease, fenceOf } from "./ports.ts";
import type { Run } from "./run.ts";
import { NewestOf } from "../core/newest-of.ts";

/** Logs a failure. One that another process's lock caused passes by itself, and is for debugging only. */
export function warnUnlessLocked(log: Logger, event: string, facts: { error: unknown; what?: string }): void {
  log[isLocked(facts.error) ? "debug" : "warn"](event, facts);
}

export interface WorkerOptions
  extends
    Omit<ExecutionContext, "underLease">,
    Required<Pick<RunServiceOptions, "runs" | "environment" | "concurrentRuns" | "crashLimit" | "mayClaim">> {
  /** Lease lifetime without a heartbeat. */
  leaseMs: number;
}

interface Slot extends Execution {
  settled: Promise<void>;
  /** The agent of a background task. */
  agent?: Promise<Agent>;
  /** When its lease was last renewed, by the monotonic clock. */
  renewedAt: number;
}

const NO_ANSWER = "It did not answer for so long that another server may continue the run.";

/** Time that shutdown and cancel wait for work to stop, in ms. */
const STOP_MS = 700;
/** Time between two attempts to lease a run that has ended, in ms. */
const AGAIN_MS = 100;

/**
 * Works on the runs that wait, up to a number at once. The queue is the table of runs itself: whatever
 * a process leaves behind, by pausing, parking or dying, is found there by the next one with a free slot.
 */
export class Worker {
  readonly #options: WorkerOptions;
  /** Owner of its leases. */
  readonly owner: string;
  readonly #slots = new Map<string, Slot>();
  /** Runs that have ended, on whose copies work is done here. */
  readonly #ended = new Set<string>();
  /** Leases at the last heartbeat, and for how long this server has seen each of them as it is. */
  #watched = new Map<string, SeenLease & { forMs: number }>();
  /** When it last looked, by the monotonic clock. */
  #lookedAt = monotonicClock();
  #claiming: Promise<void> = Promise.resolve();
  /** Does work outside of the call that led to it: an agent that starts a run in the background is not around it. */
  readonly #outside = AsyncResource.bind(<T>(work: () => T): T => work());
  /** Number of the last turn each principal had. The others count as not served yet. */
  readonly #turns = new NewestOf<number>(1000);
  #closed = false;
  #draining = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.owner = options.newId("server") + processMark();
  }

  /** Takes up runs of this machine's ended servers, in their order, and waiting runs. */
  start(): void {
    void this.#revokeOrphans()
      // The next heartbeat does it.
      .catch((error: unknown) => warnUnlessLocked(this.#options.log, "run.orphans_not_revoked", { error }))
      .then(() => this.pump());
  }

  /** Fills free slots with waiting runs. */
  pump(): void {
    this.#claiming = this.#claim();
  }

  readonly #claim = coalesced(() =>
    // The next heartbeat tries again.
    this.#fill().catch((error: unknown) => this.#options.log.warn("run.claim_failed", { error })),
  );

  async #fill(): Promise<void> {
    const { runs, work, clock, environment, leaseMs, crashLimit, log } = this.#options;
    const { concurrentRuns, mayClaim } = this.#options;
    const hasRoom = (): boolean =>
      !this.#closed && !this.#draining && this.#slots.size < concurrentRuns && mayClaim();
    for (let begun = 0; hasRoom(); begun += 1) {
      if (begun > 0 && begun % 4 === 0) await ownTurn();
      const now = clock();
      const at = monotonicClock();
      const turns = this.#turns;
      const request = { owner: this.owner, environment, turns, now, expiresAt: now + leaseMs };
      const claim = await runs.claimNext(request, crashLimit);
      if (claim === undefined) return;
      const { run, lease, recovered } = claim;
      if (this.#closed) return work.park(lease, true, clock());
      this.#turns.keep(run.principal, Math.max(0, ...this.#turns.values()) + 1);
      log.debug("run.claimed", { runId: run.id, recovered });
      const slot: Slot = {
        run,
        lease,
        controller: new AbortController(),
        stop: undefined,
        settled: Promise.resolve(),
        renewedAt: at,
      };
      this.#slots.set(slot.run.id, slot);
      const context = { ...this.#options, agentFor: this.#agentFor, underLease: this.underLease };
      slot.settled = this.#outside(() => execute(slot, context)).then(async (inOrder) =>
        this.#end(slot, inOrder),
      );
    }
  }

  /** Renews the leases of the runs at work here, then looks for runs whose server has gone. */
  async heartbeat(): Promise<void> {
    const { runs, clock, leaseMs } = this.#options;
    if (this.#slots.size + this.#ended.size > 0) {
      const now = clock();
      const at = monotonicClock();
      const slots = [...this.#slots.values()];
      const ids = [...this.#ended, ...slots.map(({ run }) => run.id)];
      await runs.renew(this.owner, ids, now, now + leaseMs);
      for (const slot of slots) slot.renewedAt = at;
    }
    if (this.#closed) return;
    await this.#revokeLost(clock());
    await this.#stopLost();
    this.pump();
  }

  /** See `RunContext`. Also returns undefined if the lease was lost because this process was paused. */
  readonly underLease: RunContext["underLease"] = async ({ id, principal }, work, patienceMs = 0) => {
    const { runs, clock, leaseMs, log } = this.#options;
    const until = monotonicClock() + patienceMs;
    let lease: Lease | undefined;
    do {
      await this.#revokeOrphans();
      const now = clock();
      lease = await runs.leaseEnded(principal, { id, owner: this.owner, now, expires: now + leaseMs });
      if (lease === undefined && monotonicClock() >= until) return undefined;
      if (lease === undefined) await delay(AGAIN_MS);
    } while (lease === undefined);
    this.#ended.add(id);
    try {
      return await work(fenceOf(lease, runs));
    } catch (thrown) {
      if (thrown instanceof LeaseLostError) return undefined;
      throw thrown;
    } finally {
      this.#ended.delete(id);
      await runs
        .release(lease)
        .catch((error: unknown) => log.warn("run.release_failed", { runId: id, error }));
      this.pump();
    }
  };

  /** Stops work whose lease was not renewed in time: another server may continue it. The run waits for storage. */
  breakOffUnrenewed(failure: unknown = new StorageError("storage_io", NO_ANSWER)): void {
    const at = monotonicClock();
    for (const slot of this.#slots.values()) {
      if (at - slot.renewedAt < this.#options.leaseMs) continue;
      slot.renewedAt = at;
      slot.failure ??= failure;
      slot.controller.abort();
    }
  }

  /** After a run was changed from outside: stops it if it ended and is at work here, takes what waits. */
  changed(runId: string): void {
    if (this.#slots.has(runId)) this.review();
    else this.pump();
  }

  /** Reacts to changes by another process: stops runs cancelled or claimed there, and takes waiting ones. */
  review(): void {
    void this.#stopLost()
      .catch((error: unknown) => warnUnlessLocked(this.#options.log, "run.review_failed", { error }))
      .then(() => this.pump());
  }

  async #stopLost(): Promise<void> {
    if (this.#slots.size === 0) return;
    // Read before the rows: runs claimed after this are not among them.
    const slots = [...this.#slots.values()];
    const owned = new Map((await this.#options.runs.ownedBy(this.owner)).map((row) => [row.id, row]));
    for (const slot of slots) {
      const row = owned.get(slot.run.id);
      if (row?.epoch !== slot.lease.epoch) stopSlot(slot, "lease_lost");
      else if (row.status === "cancelled") stopSlot(slot, "cancelled");
    }
  }

  /** Stops work on a cancelled run and its children, if it is done here; waits a little for it to have stopped. */
  async cancel(runId: string): Promise<void> {
    const slots = [...this.#slots.values()].filter(({ lease }) =>
      [lease.runId, lease.rootId].includes(runId),
    );
    for (const slot of slots) stopSlot(slot, "cancelled");
    await haveSettled(slots);
  }

  /** Stops claiming runs, and waits this long for those at work to end. */
  async drain(milliseconds: number): Promise<void> {
    this.#draining = true;
    const until = monotonicClock() + milliseconds;
    while (this.#slots.size > 0 && monotonicClock() < until) {
      const next = Promise.race([...this.#slots.values()].map((slot) => slot.settled));
      await isDoneWithin(until - monotonicClock(), next);
    }
  }

  /** Parks all runs. Those that do not stop in time are fenced off, and their leases expire. */
  async close(): Promise<void> {
    this.#closed = true;
    await isDoneWithin(STOP_MS, this.#claiming);
    const slots = [...this.#slots.values()];
    for (const slot of slots) stopSlot(slot, "parked");
    await haveSettled(slots);
    const { work, clock, log } = this.#options;
    for (const slot of this.#slots.values()) {
      try {
        await work.park(slot.lease, false, clock());
      } catch (error) {
        if (!(error instanceof LeaseLostError)) log.warn("run.park_failed", { runId: slot.run.id, error });
      }
    }
  }

  /**
   * Takes away leases of servers of this machine that are gone, and those that nobody renewed while this server looked
   * on: for half their time if they expired, or twice if their owner is not connected any more. To be expired is not
   * enough: after the machine slept, or its clock was set, leases of servers that are well look so until their next
   * heartbeat. Neither is a lost connection, which a server replaces.
   */
  async #revokeLost(now: number): Promise<void> {
    const { runs, leaseMs, log } = this.#options;
    const leases = await this.#revokeOrphans();
    const at = monotonicClock();
    // A pause of this process does not count as time in which it looked.
    const looked = Math.min(at - this.#lookedAt, leaseMs / 4);
    this.#lookedAt = at;
    const watched = leases.map((lease) => {
      const before = this.#watched.get(lease.runId);
      const isSame = before?.epoch === lease.epoch && before.heartbeatAt === lease.heartbeatAt;
      return { ...lease, forMs: isSame ? before.forMs + looked : 0 };
    });
    this.#watched = new Map(watched.map((lease) => [lease.runId, lease]));
    const expired = await runs.expiredLeases(now, leaseMs);
    for (const lease of watched) {
      const isExpired = expired.some(({ runId, epoch }) => runId === lease.runId && epoch === lease.epoch);
      // Owners of earlier versions, whose connections nobody sees, begin with `srv_`.
      const isLeft =
        lease.isConnected === false && lease.owner.startsWith("server_") && lease.forMs >= leaseMs / 3;
      if (!isLeft && !(isExpired && lease.forMs >= leaseMs / 2)) continue;
      await runs.revoke(lease);
      log.info("run.lease_revoked", { runId: lease.runId });
    }
  }

  /** Revokes leases of this machine's servers that have certainly gone; returns the others. */
  async #revokeOrphans(): Promise<SeenLease[]> {
    const { runs, log } = this.#options;
    const leases = await runs.leases();
    const orphans = new Set(leases.filter(({ owner }) => isGone(owner)));
    for (const lease of orphans) {
      await runs.revoke(lease);
      log.info("run.lease_orphaned", { runId: lease.runId });
    }
    return leases.filter((lease) => !orphans.has(lease));
  }

  /** Background tasks of a run that work here at one time share an agent, because each would build the same. */
  readonly #agentFor = (run: Run, worker: WorkerOfRun): Promise<Agent> => {
    const build = (): Promise<Agent> => this.#options.agentFor(run, worker);
    if (run.parent === undefined) return build();
    const { runId } = run.parent;
    const siblings = [...this.#slots.values()].filter((slot) => slot.run.parent?.runId === runId);
    const agent = siblings.find((slot) => slot.agent !== undefined)?.agent ?? build();
    for (const slot of siblings) slot.agent = agent;
    // The next attempt builds it again.
    agent.catch(() => siblings.forEach((slot) => delete slot.agent));
    return agent;
  };

  /** A lease that is not released here expires: the delay before the run is tried again. */
  async #end(slot: Slot, inOrder: boolean): Promise<void> {
    // If it was lost and claimed again, the run has another slot.
    if (this.#slots.get(slot.run.id) === slot) this.#slots.delete(slot.run.id);
    try {
      const { runs, log } = this.#options;
      if (inOrder) await runs.release(slot.lease);
      const run = slot.stop === undefined ? await runs.read.run(slot.run.principal, slot.run.id) : undefined;
      if (run !== undefined) logEnd(run, log);
    } catch (error) {
      this.#options.log.warn("run.release_failed", { runId: slot.run.id, error });
    }
    this.pump();
  }
}

function stopSlot(slot: Slot, reason: StopReason): void {
  slot.stop ??= reason;
  slot.controller.abort(reason === "parked" ? new Parked() : undefined);
}

/** Waits a little for all of `slots`. */
const haveSettled = (slots: readonly Slot[]): Promise<boolean> =>
  isDoneWithin(STOP_MS, Promise.all(slots.map((slot) => slot.settled)));
