/** Calls with outside effects, which a run begins at most once. */
import type { CallIdentity, EffectLog, StoredOutcome } from "../../agent/agent.ts";
import { byIdentity } from "../../core/by-identity.ts";
import type { Clock } from "../../core/clock.ts";
import { toJson } from "../../core/json.ts";
import type { Lease } from "../ports.ts";
import * as leases from "./leases.ts";
import { type Engine, type Steps, first, insertStatement, send } from "./steps.ts";

interface EffectContext {
  engine: Engine;
  /** Makes checkpoints durable. */
  sync: () => Promise<void>;
  clock: Clock;
  /** Called when calls cannot be stored. */
  onFailure: (error: unknown) => void;
}

/** A call begins only under the lease, so that a server that lost the run changes nothing; anyone may end it. */
export function storedEffects(lease: Lease, { engine, sync, clock, onFailure }: EffectContext): EffectLog {
  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      onFailure(error);
      throw error;
    }
  };
  const begun = begunUnder(lease);
  const IS_CALL = "run_id = @run_id AND call = @call";
  const find = (call: CallIdentity) =>
    first<{ type: string | null; outcome: Uint8Array | null; ended_at: number | null }>(
      `SELECT type, outcome, ended_at FROM effects WHERE ${IS_CALL}`,
      effectKey(lease, call),
    );
  const begin = function* (call: CallIdentity, tool: string): Steps<void> {
    yield* leases.heldToChange(lease);
    yield {
      ...insertStatement("effects", { ...effectKey(lease, call), tool, begun_at: clock() }),
      isBlind: true,
    };
  };
  // Does nothing for a call that has an outcome, or whose run has ended.
  const finish = (call: CallIdentity, { type, data }: StoredOutcome) =>
    send(
      `UPDATE effects SET ended_at = @now, type = @type, outcome = @outcome
       WHERE ${IS_CALL} AND ended_at IS NULL`,
      { ...effectKey(lease, call), type, outcome: data, now: clock() },
    );
  // The handle of a call stands in the place of its outcome until it ends.
  const keep = (call: CallIdentity, handle: Uint8Array) =>
    send(`UPDATE effects SET outcome = @handle WHERE ${IS_CALL} AND ended_at IS NULL`, {
      ...effectKey(lease, call),
      handle,
    });
  const forget = (call: CallIdentity) =>
    send(
      `DELETE FROM effects WHERE ${IS_CALL} AND ended_at IS NULL AND outcome IS NULL`,
      effectKey(lease, call),
    );
  return {
    find: (call) =>
      attempt(async () => {
        // Nobody worked on the run before, so the calls are known.
        if (lease.epoch === 1 && !begun.has(effectKey(lease, call).call)) return undefined;
        const row = await engine.read(() => find(call));
        if (row === undefined) return undefined;
        const { type, outcome, ended_at: endedAt } = row;
        if (outcome === null) return {};
        return type === null || endedAt === null ? { handle: outcome } : { outcome: { type, data: outcome } };
      }),
    begin: (call, tool) =>
      attempt(async () => {
        // Without the checkpoint that has the call, another call would be made instead.
        await sync();
        begun.add(effectKey(lease, call).call);
        await engine.write(() => begin(call, tool));
      }),
    // Lost in a power cut, the outcome is unknown, which is safe; so is a call that seems to have begun.
    finish: (call, outcome) => attempt(() => engine.note(() => finish(call, outcome))),
    keep: (call, handle) => attempt(() => engine.write(() => keep(call, handle))),
    withdraw: (call) => attempt(() => engine.note(() => forget(call))),
  };
}

/** The calls that began under a lease. */
const begunUnder = byIdentity((_lease: Lease) => new Set<string>());

const effectKey = ({ runId }: Lease, { agent, messageId, callId, inner }: CallIdentity) => ({
  run_id: runId,
  call: toJson([...agent.map((segment) => segment.callId), messageId, callId, ...[inner ?? []].flat()]),
});
