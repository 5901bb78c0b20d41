import type { Statement } from "better-sqlite3";
import type { CallIdentity, EffectLog, StoredOutcome } from "../../../agent/agent.ts";
import type { Clock } from "../../../core/clock.ts";
import { toJson } from "../../../core/json.ts";
import { durably, inTransaction, withoutWaiting } from "../commit.ts";
import { type Database, whenUnlocked } from "../database.ts";
import type { Lease } from "../../../runs/ports.ts";
import type { LeaseStore } from "./leases.ts";

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
  syncCheckpoints: () => Promise<void>;
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
  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      context.onFailure(error);
      throw error;
    }
  };
  const quickly = (work: () => void): Promise<void> =>
    attempt(() => whenUnlocked(queue, () => withoutWaiting(database, work)));
  const beginCall = (call: Call, tool: string): void =>
    inTransaction(database, () => {
      leases.held(lease);
      effects.begin(call, tool, clock());
    });
  return {
    find: (call) => attempt(() => whenUnlocked(queue, () => effects.find(rowOf(lease, call)))),
    begin: (call, tool) =>
      attempt(async () => {
        await syncCheckpoints();
        await durably(database, () => beginCall(rowOf(lease, call), tool), queue);
      }),
    // Lost in a power cut, the outcome is unknown, which is safe; so is a call that seems to have begun.
    finish: (call, outcome) => quickly(() => effects.finish(rowOf(lease, call), outcome, clock())),
    withdraw: (call) => quickly(() => effects.withdraw(rowOf(lease, call))),
  };
}

const rowOf = ({ runId }: Lease, { agent, messageId, callId }: CallIdentity): Call => ({
  run_id: runId,
  call: toJson([...agent.map((segment) => segment.callId), messageId, callId]),
});
