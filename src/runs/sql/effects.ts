/** Calls with outside effects, which a run begins at most once. */
import type { CallIdentity, EffectLog } from "../../agent/agent.ts";
import { byIdentity } from "../../core/by-identity.ts";
import type { Clock } from "../../core/clock.ts";
import { toJson } from "../../core/json.ts";
import type { Lease } from "../ports.ts";
import * as leases from "./leases.ts";
import { type Engine, type Statement, first, insertStatement, send } from "./steps.ts";

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
  /** Does nothing for a call that has an outcome, or whose run has ended. */
  const changeOpen = (sql: string, call: CallIdentity, values: Statement["values"] = {}) =>
    send(`${sql} WHERE ${IS_CALL} AND ended_at IS NULL`, { ...effectKey(lease, call), ...values });
  return {
    find: (call) =>
      attempt(async () => {
        const key = effectKey(lease, call);
        // Nobody worked on the run before, so the calls are known.
        if (lease.epoch === 1 && !begun.has(key.call)) return undefined;
        const sql = `SELECT type, outcome, ended_at FROM effects WHERE ${IS_CALL}`;
        const row = await engine.read(() => first<OutcomeRow>(sql, key));
        if (row === undefined) return undefined;
        const { type, outcome, ended_at: endedAt } = row;
        if (outcome === null) return {};
        return type === null || endedAt === null ? { handle: outcome } : { outcome: { type, data: outcome } };
      }),
    begin: (call, tool) =>
      attempt(async () => {
        // Without the checkpoint that has the call, another call would be made instead.
        await sync();
        const key = effectKey(lease, call);
        begun.add(key.call);
        await engine.write(function* () {
          yield* leases.heldToChange(lease);
          yield { ...insertStatement("effects", { ...key, tool, begun_at: clock() }), isBlind: true };
        });
      }),
    // Lost in a power cut, the outcome is unknown, which is safe; so is a call that seems to have begun.
    finish: (call, { type, data: outcome }) => {
      const finish = "UPDATE effects SET ended_at = @now, type = @type, outcome = @outcome";
      return attempt(() => engine.note(() => changeOpen(finish, call, { type, outcome, now: clock() })));
    },
    // The handle of a call stands in the place of its outcome until it ends.
    keep: (call, handle) =>
      attempt(() => engine.write(() => changeOpen("UPDATE effects SET outcome = @handle", call, { handle }))),
    withdraw: (call) =>
      attempt(() =>
        engine.note(() =>
          send(
            `DELETE FROM effects WHERE ${IS_CALL} AND ended_at IS NULL AND outcome IS NULL`,
            effectKey(lease, call),
          ),
        ),
      ),
  };
}

type OutcomeRow = { type: string | null; outcome: Uint8Array | null; ended_at: number | null };

const begunUnder = byIdentity((_lease: Lease) => new Set<string>());

const effectKey = ({ runId }: Lease, { agent, messageId, callId, inner }: CallIdentity) => ({
  run_id: runId,
  call: toJson([...agent.map((segment) => segment.callId), messageId, callId, ...[inner ?? []].flat()]),
});
