import type { Statement } from "better-sqlite3";
import {
  type ClaimRequest,
  type Lease,
  LeaseLostError,
  type OwnedRun,
  type SeenLease,
} from "../../../runs/ports.ts";
import { type Place, type Waiting, fairest, turnOf } from "../../../runs/queue.ts";
import type { FailureDetails, OpenStatus } from "../../../runs/run.ts";
import { withoutWaiting } from "../commit.ts";
import type { Database } from "../database.ts";
import type { RunRow } from "./events.ts";

/** A run that is not over. */
export type OpenRunRow = RunRow & { status: OpenStatus };

interface LeaseRow {
  id: string;
  owner: string;
  epoch: number;
}

const SEEN_LEASES =
  "SELECT id AS runId, lease_owner AS owner, lease_epoch AS epoch, heartbeat_at AS heartbeatAt FROM runs WHERE lease_owner IS NOT NULL";

/** A claim, with the row as it was before. */
export interface ClaimedRow {
  lease: Lease;
  before: RunRow;
  /** How often a server ended while it worked on the run, one time soon after the other. */
  crashes: number;
}

/**
 * In line, runs that were at work before come first: they have what people gave them, and make room. Those and all
 * others in the order they were started in.
 */
const RANK = "number + iif(lease_epoch = 0, 1 << 52, 0)";

/**
 * Leases and the queue of runs that wait for a server. A run whose thread still has another run under a
 * live lease (cancelled, but not yet stopped) waits for that one.
 */
export class LeaseStore {
  readonly #database: Database;
  readonly #waiting: Statement<[string], Waiting>;
  readonly #inLine: Statement<[string], Waiting>;
  readonly #atWork: Statement<[string], string>;
  readonly #queued: Statement<[string], string>;
  readonly #expired: Statement<{ now: number; ahead: number }, SeenLease>;
  readonly #leased: Statement<[], SeenLease>;
  readonly #revoke: Statement<SeenLease>;
  readonly #claim: Statement<{ id: string; owner: string; expires: number; now: number; crashes: number }>;
  readonly #renew: Statement<{ owner: string; ids: string; expires: number; now: number }>;
  readonly #owned: Statement<[string], OwnedRun>;
  readonly #held: Statement<LeaseRow, OpenRunRow>;
  readonly #get: Statement<[string], RunRow>;
  readonly #release: Statement<LeaseRow>;
  readonly #fence: Statement<LeaseRow>;

  constructor(database: Database) {
    this.#database = database;
    this.#waiting = database.prepare(
      `SELECT id, principal, min(${RANK}) AS rank FROM runs
       WHERE environment = ? AND runnable = 1
         AND lease_owner IS NULL AND NOT EXISTS (SELECT 1 FROM runs other
           WHERE other.thread_id = runs.thread_id AND other.lease_owner IS NOT NULL)
       GROUP BY principal`,
    );
    this.#queued = database
      .prepare<[string], string>(
        `SELECT environment FROM runs
         WHERE id = ? AND runnable = 1 AND lease_owner IS NULL AND status = 'working'`,
      )
      .pluck();
    this.#inLine = database.prepare(
      `SELECT id, principal, ${RANK} AS rank FROM runs
       WHERE environment = ? AND runnable = 1 AND lease_owner IS NULL ORDER BY principal, rank`,
    );
    this.#atWork = database
      .prepare<[string], string>(
        "SELECT principal FROM runs INDEXED BY runs_leased WHERE lease_owner IS NOT NULL AND environment = ?",
      )
      .pluck();
    this.#expired = database.prepare(
      `${SEEN_LEASES} AND (lease_expires_at <= @now OR heartbeat_at > @ahead)`,
    );
    this.#leased = database.prepare(SEEN_LEASES);
    this.#revoke = database.prepare(
      `UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL
       WHERE id = @runId AND lease_epoch = @epoch AND heartbeat_at = @heartbeatAt`,
    );
    this.#claim = database.prepare(
      `UPDATE runs SET lease_owner = @owner, lease_epoch = lease_epoch + 1, lease_expires_at = @expires,
         heartbeat_at = @now, claimed_at = @now, in_flight = 1, crashes = @crashes WHERE id = @id`,
    );
    this.#renew = database.prepare(
      `UPDATE runs SET lease_expires_at = @expires, heartbeat_at = @now
       WHERE lease_owner = @owner AND id IN (SELECT value FROM json_each(@ids))`,
    );
    this.#owned = database.prepare("SELECT id, lease_epoch AS epoch, status FROM runs WHERE lease_owner = ?");
    const held = "id = @id AND lease_owner = @owner AND lease_epoch = @epoch";
    this.#held = database.prepare(
      `SELECT * FROM runs WHERE ${held} AND status IN ('working', 'input_required')`,
    );
    this.#get = database.prepare("SELECT * FROM runs WHERE id = ?");
    this.#release = database.prepare(
      `UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL WHERE ${held}`,
    );
    this.#fence = database.prepare(`UPDATE runs SET lease_epoch = lease_epoch + 1 WHERE ${held}`);
  }

  /** Takes the run whose turn it is; `undefined` when none waits. Belongs inside a transaction. */
  claimNext(request: ClaimRequest): ClaimedRow | undefined {
    const waiting = this.#waiting.all(request.environment);
    const next = fairest(waiting, request.active, request.turns);
    const before = next === undefined ? undefined : this.#get.get(next.id);
    if (before === undefined) return undefined;
    const { owner, expiresAt: expires, now } = request;
    const crashes = crashesBy(before);
    this.#claim.run({ id: before.id, owner, expires, now, crashes });
    const lease = { runId: before.id, run: before.number, owner, epoch: before.lease_epoch + 1 };
    return { lease, before, crashes };
  }

  /** Where a run stands in line; `undefined` for one that does not wait for its turn. */
  placeOf(runId: string): Place | undefined {
    const environment = this.#queued.get(runId);
    if (environment === undefined) return undefined;
    const waiting = this.#inLine.all(environment);
    const atWork = this.#atWork.all(environment);
    const active = new Map<string, number>();
    for (const principal of atWork) active.set(principal, (active.get(principal) ?? 0) + 1);
    const number = turnOf(runId, waiting, active);
    return number === undefined ? undefined : { number, waiting: waiting.length, atWork: atWork.length };
  }

  /** Whether any run waits that this server could take. Only reads. */
  anyWaiting(environment: string): boolean {
    return this.#waiting.get(environment) !== undefined;
  }

  /** Leases that were not renewed in time, or last when the clock was further ahead than `leaseMs`. */
  expired(now: number, leaseMs: number): SeenLease[] {
    return this.#expired.all({ now, ahead: now + leaseMs });
  }

  /** All leases, whoever has them. */
  all(): SeenLease[] {
    return this.#leased.all();
  }

  /** Takes a lease away from its owner, unless it was renewed since it was looked at. */
  revoke(lease: SeenLease): void {
    this.#revoke.run(lease);
  }

  /** The run's row, for whoever still holds the lease of a run that is not over. */
  held(lease: Lease): OpenRunRow {
    const row = this.#held.get(toRow(lease));
    if (row === undefined) throw new LeaseLostError(lease.runId);
    return row;
  }

  renew(owner: string, runIds: readonly string[], now: number, expiresAt: number): void {
    const renewed = { owner, ids: JSON.stringify(runIds), expires: expiresAt, now };
    withoutWaiting(this.#database, () => this.#renew.run(renewed));
  }

  owned(owner: string): OwnedRun[] {
    return this.#owned.all(owner);
  }

  /** Does nothing when the lease is not held any more. */
  release(lease: Lease): void {
    withoutWaiting(this.#database, () => this.#release.run(toRow(lease)));
  }

  /** Makes later writes under this lease fail, while others still wait until it has expired. */
  fenceOff(lease: Lease): void {
    this.#fence.run(toRow(lease));
  }
}

/** Work that went on for so long did not bring its server down. */
const HARMLESS_MS = 600_000;

function crashesBy({ in_flight, crashes, claimed_at, heartbeat_at }: RunRow): number {
  if (in_flight !== 1) return crashes;
  return (heartbeat_at ?? 0) - (claimed_at ?? 0) >= HARMLESS_MS ? 1 : crashes + 1;
}

/** Why a run is ended that keeps bringing its server down. */
export const crashFailure = (crashes: number): FailureDetails => ({
  reason: "server_crashes",
  message: `The server ended ${crashes} times while it worked on this run, so the run was stopped. Look at what it did last before you give the task again.`,
});

const toRow = (lease: Lease): LeaseRow => ({ id: lease.runId, owner: lease.owner, epoch: lease.epoch });
