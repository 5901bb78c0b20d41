/** Leases, and the queue. A run waits while its thread has another run under a live lease, such as a cancelled one. */
import { type ClaimRequest, type Lease, type SeenLease, LeaseLostError } from "../ports.ts";
import type { FailureDetails, OpenStatus, Place, Principal, RunStatus } from "../run.ts";
import queries from "./leases.sql" with { type: "text" };
import { type RunRow, rootOf } from "./rows.ts";
import { readQueries } from "./sql-files.ts";
import type { Steps } from "./steps.ts";
import { all, change, count, first, lockPrincipal, send } from "./steps.ts";

const queryNamed = readQueries(queries);

export type OpenRunRow = RunRow & { status: OpenStatus };

export interface ClaimedRow {
  lease: Lease;
  before: RunRow;
  /** Number of times a server crashed while it worked on the run, one soon after the other. */
  crashes: number;
}

/**
 * In line, runs that were at work before come first: they have their messages from people, and make room. Those and all
 * others stand in the order they were started in. The index `runs_queue` has this order for each principal.
 */
const ORDER = "(lease_epoch = 0), number";
/** More than any number of a run. */
const BEHIND = 2 ** 52;
/** That order as one number. */
const RANK = `number + CASE WHEN lease_epoch = 0 THEN ${BEHIND} ELSE 0 END`;
const IN_LINE = "environment = @environment AND runnable = 1 AND lease_owner IS NULL";
/** Counted, because Postgres makes a join with all leases of `NOT EXISTS` when it takes them for few. */
const IS_FREE = `0 = (SELECT count(*) FROM runs other
  WHERE other.thread_id = runs.thread_id AND other.lease_owner IS NOT NULL)`;
/** Number of runs of each principal that all servers of the environment work on. */
const LOADS = `SELECT principal, count(*) AS count FROM runs INDEXED BY runs_leased
  WHERE lease_owner IS NOT NULL AND environment = @environment GROUP BY principal`;
/**
 * The rank of each principal's next run, by one look-up however many of its runs wait, and its load. The rank is null when
 * none is free.
 */
const NEXT_RUNS = `
WITH RECURSIVE waiting (principal) AS (
  SELECT min(principal) FROM runs WHERE ${IN_LINE}
  UNION ALL
  SELECT (SELECT min(principal) FROM runs WHERE ${IN_LINE} AND principal > waiting.principal)
  FROM waiting WHERE waiting.principal IS NOT NULL
)
SELECT waiting.principal, coalesce(loads.count, 0) AS count, (SELECT ${RANK} FROM runs
  WHERE ${IN_LINE} AND principal = waiting.principal AND ${IS_FREE} ORDER BY ${ORDER} LIMIT 1) AS rank
FROM waiting LEFT JOIN (${LOADS}) loads ON loads.principal = waiting.principal
WHERE waiting.principal IS NOT NULL`;
const SEEN_LEASES = `SELECT id AS "runId", lease_owner AS owner, lease_epoch AS epoch, heartbeat_at AS "heartbeatAt"
  FROM runs WHERE lease_owner IS NOT NULL`;
const IS_HELD = "id = @id AND lease_owner = @owner AND lease_epoch = @epoch";
/** Condition of a run that is held under the lease and has not ended. */
const IS_AT_WORK = `${IS_HELD} AND status IN ('working', 'input_required')`;
/** The condition of statements about other rows. */
export const IF_HELD = `EXISTS (SELECT 1 FROM runs WHERE ${IS_AT_WORK})`;

/** Principals with runs that could be taken, in the order of their turns. */
export function* inTurn({ environment, turns }: ClaimRequest): Steps<Principal[]> {
  const found = yield* all<Turn & { count: number; rank: number | null }>(NEXT_RUNS, { environment });
  const waiting = found.filter(({ rank }) => rank !== null);
  const loads = new Map(waiting.map(({ principal, count }) => [principal, count]));
  return fairestFirst(waiting, loads, turns).map(({ principal }) => principal);
}

/**
 * Takes the next run that no other transaction has locked, for the first principal with one. A server that is stopped in a
 * transaction keeps nobody from the rest of the queue.
 */
export function* claim(
  { environment, owner, expiresAt, now }: ClaimRequest,
  principals: readonly Principal[],
): Steps<ClaimedRow | undefined> {
  const sql = `SELECT * FROM runs WHERE ${IN_LINE} AND principal = @principal AND ${IS_FREE}
    ORDER BY ${ORDER} LIMIT 1 FOR UPDATE SKIP LOCKED`;
  let before: RunRow | undefined;
  // Some of them only, because each is a round trip.
  for (const principal of principals.slice(0, 4))
    before ??= yield* first<RunRow>(sql, { environment, principal });
  if (before === undefined) return undefined;
  const crashes =
    before.in_flight !== 1
      ? before.crashes
      : (before.heartbeat_at ?? 0) - (before.claimed_at ?? 0) >= HARMLESS_MS
        ? 1
        : before.crashes + 1;
  yield* send(queryNamed("claim"), { id: before.id, owner, expires: expiresAt, now, crashes });
  const { id: runId, principal, number: run } = before;
  const lease = { runId, rootId: rootOf(before), principal, run, owner, epoch: before.lease_epoch + 1 };
  return { lease, before, crashes };
}

/** Leases a run that has ended, to work on the copy of its thread; `undefined` while another run may do that. */
export function* leaseEnded(
  principal: Principal,
  request: { id: string; owner: string; now: number; expires: number },
): Steps<Lease | undefined> {
  const { id, owner } = request;
  // Nobody starts a run of the thread in between.
  yield* lockPrincipal(principal);
  const row = yield* first<RunRow>(queryNamed("lease ended run"), { principal, ...request });
  return row && { runId: id, rootId: rootOf(row), principal, run: row.number, owner, epoch: row.lease_epoch };
}

/** Place of a run in line; `undefined` if it does not wait for its turn. */
export function* placeOf(id: string): Steps<Place | undefined> {
  const queued = yield* first<{ environment: string }>(queryNamed("environment of queued run"), { id });
  return queued && (yield* placesIn(queued.environment)).get(id);
}

/** Places in line of all runs that wait for a server of this environment, by id. */
export function* placesIn(environment: string): Steps<Map<string, Place>> {
  const waiting = yield* all<Waiting>(
    `SELECT id, principal, ${RANK} AS rank FROM runs
     WHERE ${IN_LINE} ORDER BY principal, ${ORDER}`,
    { environment },
  );
  const loads = yield* all<{ principal: string; count: number }>(LOADS, { environment });
  const active = new Map(loads.map(({ principal, count }) => [principal, count]));
  const atWork = [...active.values()].reduce((sum, count) => sum + count, 0);
  const turns = [...turnsOf(waiting, active)];
  return new Map(turns.map(([id, number]) => [id, { number, waiting: waiting.length, atWork }]));
}

/** Over all environments: how long the queue is, since when the first in it waits, and how many runs are at work. */
export function* queue(): Steps<{ waiting: number; since: number | null; atWork: number }> {
  const waiting = yield* first<{ waiting: number; since: number | null }>(queryNamed("queue"));
  const leased = "SELECT count(*) AS count FROM runs INDEXED BY runs_leased WHERE lease_owner IS NOT NULL";
  return { waiting: waiting?.waiting ?? 0, since: waiting?.since ?? null, atWork: yield* count(leased) };
}

/** Leases that were not renewed in time, or last when the clock was further ahead than `leaseMs`. */
export const expired = (now: number, leaseMs: number): Steps<SeenLease[]> =>
  all(`${SEEN_LEASES} AND (lease_expires_at <= @now OR heartbeat_at > @ahead)`, {
    now,
    ahead: now + leaseMs,
  });

export const leases = (): Steps<SeenLease[]> =>
  all(`SELECT leases.*, is_connected(owner) AS "isConnected" FROM (${SEEN_LEASES}) leases`);

const RELEASE = "UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL WHERE";

/** Takes a lease away from its owner, unless it was renewed since it was looked at. */
export function* revoke({ runId: id, epoch, heartbeatAt }: SeenLease): Steps<void> {
  const isUnchanged = "id = @id AND lease_epoch = @epoch AND heartbeat_at = @heartbeatAt";
  yield* change(`${RELEASE} ${isUnchanged}`, { id, epoch, heartbeatAt });
}

/** The run's row, for whoever still has the lease of a run that is not over. Throws LeaseLostError. */
export function* held(lease: Lease): Steps<OpenRunRow> {
  const row = yield* first<OpenRunRow>(`SELECT * FROM runs WHERE ${IS_AT_WORK}`, leaseValues(lease));
  if (row === undefined) throw new LeaseLostError(lease.runId);
  return row;
}

/** Locks the row of the run that started the run, then its own, until the transaction ends. */
export function* lock({ runId: id, rootId: root }: Lease): Steps<void> {
  const sql = "SELECT id FROM runs WHERE id IN (@id, @root) ORDER BY number FOR UPDATE";
  yield { sql, values: { id, root }, isLock: true };
}

/** Locks the rows, and returns the run's for whoever still has its lease. Throws LeaseLostError. */
export function* heldToChange(lease: Lease): Steps<OpenRunRow> {
  yield* lock(lease);
  return yield* held(lease);
}

/** Locks the parent of a run. It comes first: parents change their children, and children notify parents. */
export function* lockParent(runId: string): Steps<void> {
  const sql = "SELECT id FROM runs WHERE id = (SELECT parent_id FROM runs WHERE id = @id) FOR UPDATE";
  yield { sql, values: { id: runId }, isLock: true };
}

export function* renew(owner: string, runIds: readonly string[], now: number, expires: number): Steps<void> {
  yield* change(queryNamed("renew"), { owner, ids: JSON.stringify(runIds), expires, now });
}

export const ownedBy = (owner: string): Steps<{ id: string; epoch: number; status: RunStatus }[]> =>
  all("SELECT id, lease_epoch AS epoch, status FROM runs WHERE lease_owner = @owner", { owner });

export function* isHeld(lease: Lease): Steps<boolean> {
  return (yield* first(`SELECT 1 FROM runs WHERE ${IS_HELD}`, leaseValues(lease))) !== undefined;
}

/** Does nothing when the lease is not held any more. */
export function* release(lease: Lease): Steps<void> {
  yield* change(`${RELEASE} ${IS_HELD}`, leaseValues(lease));
}

/** Releases the lease of a run that waits to become runnable again. */
export function* suspend(lease: Lease): Steps<void> {
  yield* change("UPDATE runs SET runnable = 0, in_flight = 0 WHERE id = @id", { id: lease.runId });
  yield* release(lease);
}

/** Makes a waiting run runnable; belongs into the transaction of the awaited change. */
export function* makeRunnable(runId: string, now: number): Steps<void> {
  const sql = "UPDATE runs SET runnable = 1, runnable_since = @now WHERE id = @id AND runnable = 0";
  yield* change(sql, { id: runId, now });
}

/** Makes later writes under this lease fail, while others still wait until it has expired. */
export function* fenceOff(lease: Lease): Steps<void> {
  yield* change(`UPDATE runs SET lease_epoch = lease_epoch + 1 WHERE ${IS_HELD}`, leaseValues(lease));
}

export const leaseValues = ({ runId, owner, epoch }: Lease) => ({ id: runId, owner, epoch });

/** A stretch of work this long did not crash its server. */
const HARMLESS_MS = 600_000;

/** Why a run is ended that keeps bringing its server down. */
export const crashFailure = (crashes: number): FailureDetails => ({
  reason: "server_crashes",
  message: `The server ended ${crashes} times while it worked on this run, so the run was stopped. Look at what it did last before you give the task again.`,
});

/** A principal's run that waits for its turn. */
interface Turn {
  principal: string;
  /** Rank among all waiting runs, lowest first, in the order of their starts, whatever clocks show. */
  rank: number;
}

export interface Waiting extends Turn {
  id: string;
}

/**
 * Sorts the next runs: the principal with the fewest active runs comes first; among those, the one whose last turn was
 * longest ago; among those, the one with the first run. One principal's long queue therefore never delays another's first run,
 * even if only one run works at a time. `waiting`: the next run of each principal. `turns`: numbers of their last
 * turns.
 */
export function fairestFirst<Waits extends Turn>(
  waiting: readonly Waits[],
  active: ReadonlyMap<string, number>,
  turns: ReadonlyMap<string, number> = new Map(),
): Waits[] {
  const order = ({ principal, rank }: Waits) =>
    [active.get(principal) ?? 0, turns.get(principal) ?? 0, rank] as const;
  return waiting.toSorted((one, other) => {
    const [a, b] = [order(one), order(other)];
    return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
  });
}

/** Turns until each waiting run gets its own, by id, in the order of `fairestFirst` while no run ends. */
export function turnsOf(waiting: readonly Waiting[], active: ReadonlyMap<string, number>) {
  const loads = new Map(active);
  const turns = waiting.map((run) => {
    const load = loads.get(run.principal) ?? 0;
    loads.set(run.principal, load + 1);
    return { id: run.id, load, rank: run.rank };
  });
  const inTurn = turns.toSorted((one, other) => one.load - other.load || one.rank - other.rank);
  return new Map(inTurn.map(({ id }, index) => [id, index + 1]));
}
