import type { IdSource } from "../core/ids.ts";
import { wellFormed } from "../core/text.ts";
import { messageEntry } from "./journal.ts";
import { type Principal, isFinal } from "./run.ts";
import type { RunStore } from "./stores/run-store.ts";
import type { TellOutcome, TellRequest } from "./service.ts";
import { inTransaction } from "./stores/transaction.ts";

/** What uses an idempotency key again that stands for something else. */
export const keyConflict = (runId: string): string =>
  `This idempotency key was used before, for run ${runId} with another task or thread. Use a new key for a new task.`;

/** Stores a message for an open run; its agent reads it before it next asks its model. */
export function tell(
  principal: Principal,
  runId: string,
  { text: given, idempotencyKey: givenKey }: TellRequest,
  { store, newId, now }: { store: RunStore; newId: IdSource; now: number },
): TellOutcome {
  // As they are read back: a repeated message is to be the same.
  const text = wellFormed(given);
  const idempotencyKey = givenKey === undefined ? undefined : wellFormed(givenKey);
  const outcome = inTransaction(store.database, (): TellOutcome => {
    const run = store.get(principal, runId);
    if (run === undefined) {
      return { ok: false, code: "not_found", message: `There is no run ${runId}.` };
    }
    const sent = idempotencyKey === undefined ? undefined : store.messages.byKey(principal, idempotencyKey);
    if (sent?.runId === runId && sent.text === text) return { ok: true, run, repeated: true };
    const other = sent?.runId ?? store.startedWith(principal, idempotencyKey)?.id;
    if (other !== undefined) return { ok: false, code: "idempotency_conflict", message: keyConflict(other) };
    if (isFinal(run.status)) {
      return {
        ok: false,
        code: "ended",
        message: `Run ${runId} is over (${run.status}). Start a new run in its thread ${run.threadId} to go on.`,
      };
    }
    const id = newId("msg");
    store.messages.add(runId, { id, text }, idempotencyKey, now);
    store.events.append(runId, messageEntry(id, text), now);
    return { ok: true, run: store.get(principal, runId) ?? run, repeated: false };
  });
  if (outcome.ok && !outcome.repeated) store.changed(runId);
  return outcome;
}
