import type { IdSource } from "../core/ids.ts";
import { messageEntry } from "./journal.ts";
import { type Principal, isFinal } from "./run.ts";
import type { RunStore } from "./stores/run-store.ts";
import type { TellOutcome, TellRequest } from "./service.ts";
import { inTransaction } from "./stores/transaction.ts";

/** Stores a message for an open run; its agent reads it before it next asks its model. */
export function tell(
  principal: Principal,
  runId: string,
  { text, idempotencyKey }: TellRequest,
  { store, newId, now }: { store: RunStore; newId: IdSource; now: number },
): TellOutcome {
  const id = idempotencyKey === undefined ? newId("msg") : `msg_${runId}_${idempotencyKey}`;
  const outcome = inTransaction(store.database, (): TellOutcome => {
    const run = store.get(principal, runId);
    if (run === undefined) {
      return { ok: false, code: "not_found", message: `There is no run ${runId}.` };
    }
    if (store.messages.has(runId, id)) return { ok: true, run, repeated: true };
    if (isFinal(run.status)) {
      return {
        ok: false,
        code: "ended",
        message: `Run ${runId} is over (${run.status}). Start a new run in its thread ${run.threadId} to go on.`,
      };
    }
    store.messages.add(runId, { id, text }, now);
    store.events.append(runId, messageEntry(id, text), now);
    return { ok: true, run: store.get(principal, runId) ?? run, repeated: false };
  });
  if (outcome.ok && !outcome.repeated) store.changed(runId);
  return outcome;
}
