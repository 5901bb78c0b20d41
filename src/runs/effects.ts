import type { Statement } from "better-sqlite3";
import type { CallIdentity, EffectLog, StoredOutcome } from "../agent/agent-core.ts";
import type { Clock } from "../core/clock.ts";
import type { Database } from "../storage/database.ts";
import { withoutWaiting } from "../storage/durability.ts";
import { whenUnlocked } from "../storage/lock-wait.ts";
import { toJson } from "./stores/json.ts";
import type { Lease, LeaseStore } from "./stores/lease-store.ts";
import { inTransaction } from "./stores/transaction.ts";

interface Call {
  run_id: string;
  call: string;
}

interface OutcomeRow {
  type: string | null;
  outcome: Uint8Array | null;
}

/** Rows of calls with outside effects, of all runs that are not over. */
export class EffectStore {
  readonly #find: Statement<Call, OutcomeRow>;
  readonly #begin: Statement<Call & { tool: string; now: number }>;
  readonly #finish: Statement<Call & { type: string; outcome: Uint8Array; now: number }>;
  readonly #withdraw: Statement<Call>;

  constructor(database: Database) {
    const call = "run_id = @run_id AND call = @call";
    this.#find = database.prepare(`SELECT type, outcome FROM effects WHERE ${call}`);
    this.#begin = database.prepare(
      "INSERT INTO effects (run_id, call, tool, begun_at) VALUES (@run_id, @call, @tool, @now)",
    );
    this.#finish = database.prepare(
      `UPDATE effects SET ended_at = @now, type = @type, outcome = @outcome
       WHERE ${call} AND ended_at IS NULL`,
    );
    this.#withdraw = database.prepare(`DELETE FROM effects WHERE ${call} AND ended_at IS NULL`);
  }

  find(call: Call): { outcome?: StoredOutcome } | undefined {
    const row = this.#find.get(call);
    if (row === undefined) return undefined;
    return row.type === null || row.outcome === null
      ? {}
      : { outcome: { type: row.type, data: row.outcome } };
  }

  begin(call: Call, tool: string, now: number): void {
    this.#begin.run({ ...call, tool, now });
  }

  /** Does nothing for a call that has an outcome, or whose run is over. */
  finish(call: Call, { type, data }: StoredOutcome, now: number): void {
    this.#finish.run({ ...call, type, outcome: data, now });
  }

  withdraw(call: Call): void {
    this.#withdraw.run(call);
  }
}

export interface EffectContext {
  /** Those who wait for the databases of runs and checkpoints. */
  queue: object;
  store: { readonly database: Database; readonly effects: EffectStore; readonly leases: LeaseStore };
  /** Makes the checkpoint that holds the call durable: without it, another call would be made instead. */
  syncCheckpoints: () => void;
  clock: Clock;
  /** The effects of this run can no longer be kept track of: all work on it must stop. */
  onFailure(error: unknown): void;
}

/**
 * The effects of one run, for whoever holds its lease. A call begins only under the lease, so that a
 * server which lost the run changes nothing any more; how a call ended is welcome from anyone.
 */
export function effectLog(lease: Lease, context: EffectContext): EffectLog {
  const { queue, syncCheckpoints, clock } = context;
  const { database, effects, leases } = context.store;
  const attempt = async <T>(work: () => T): Promise<T> => {
    try {
      return await whenUnlocked(queue, work);
    } catch (error) {
      context.onFailure(error);
      throw error;
    }
  };
  return {
    find: (call) => attempt(() => effects.find(rowOf(lease, call))),
    begin: (call, tool) =>
      attempt(() => {
        syncCheckpoints();
        inTransaction(database, () => {
          leases.held(lease);
          effects.begin(rowOf(lease, call), tool, clock());
        });
      }),
    // Lost in a power cut, the outcome is unknown, which is safe.
    finish: (call, outcome) =>
      attempt(() => withoutWaiting(database, () => effects.finish(rowOf(lease, call), outcome, clock()))),
    withdraw: (call) => attempt(() => effects.withdraw(rowOf(lease, call))),
  };
}

const rowOf = ({ runId }: Lease, { agent, messageId, callId }: CallIdentity): Call => ({
  run_id: runId,
  call: toJson([...agent.map((segment) => segment.callId), messageId, callId]),
});
