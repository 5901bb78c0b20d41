import { createHash } from "node:crypto";
import type { ModelLender, SamplingReply, SamplingRequest } from "../agent/agent-core.ts";
import type { Clock } from "../core/clock.ts";
import { durably } from "../storage/durability.ts";
import type { ChangeFeed } from "./change-feed.ts";
import { toJson } from "./stores/json.ts";
import { type Principal, type Run, isFinal } from "./run.ts";
import type { RunStore } from "./stores/run-store.ts";
import type { ModelReplyOutcome } from "./service.ts";
import { inTransaction } from "./stores/transaction.ts";

export interface LendingContext {
  store: RunStore;
  feed: ChangeFeed;
  clock: Clock;
  /** How long a model call is waited for while the run keeps its place, in milliseconds. */
  patienceMs: number;
}

/**
 * Answers the model calls of one run by its principal's clients. A call is stored before anybody is asked,
 * and its reply before the agent gets it; a call that is made again after a crash or a pause finds it.
 */
export function lenderFor(run: Run, context: LendingContext): ModelLender {
  return {
    reply: async (request, signal) => {
      const id = createHash("sha256").update(toJson(request)).digest("base64url");
      const { database } = context.store;
      const known = await durably(database, () => ask(run, id, request, context));
      const reply = known ?? (await replyInTime(run.id, id, context, signal));
      return reply ?? durably(database, () => giveUp(run, id, context));
    },
  };
}

/** Stores the call, unless it has its reply. */
function ask(
  { id: runId, principal }: Run,
  id: string,
  request: SamplingRequest,
  { store, clock }: LendingContext,
): SamplingReply | undefined {
  const reply = inTransaction(store.database, () => {
    const known = store.models.replyTo(runId, id);
    const run = store.get(principal, runId);
    if (known !== undefined || run === undefined || isFinal(run.status)) return known;
    store.models.ask(runId, id, request, clock());
    store.events.append(runId, { kind: "model_requested", agent: [], data: {} }, clock());
    store.status.settle(runId, run.status, clock());
    return undefined;
  });
  store.changed(runId);
  return reply;
}

async function replyInTime(
  runId: string,
  id: string,
  { store, feed, patienceMs }: LendingContext,
  signal: AbortSignal | undefined,
): Promise<SamplingReply | undefined> {
  const patience = AbortSignal.timeout(patienceMs);
  const stop = signal === undefined ? patience : AbortSignal.any([patience, signal]);
  const subscription = feed.subscribe(runId);
  try {
    for (;;) {
      const reply = store.models.replyTo(runId, id);
      if (reply !== undefined) return reply;
      signal?.throwIfAborted();
      if (stop.aborted || feed.closed) return undefined;
      await subscription.changed(stop);
    }
  } finally {
    subscription.close();
  }
}

/** From here on the run waits; a reply that came at the last moment is taken. */
function giveUp({ id: runId, principal }: Run, id: string, { store, clock }: LendingContext) {
  const reply = inTransaction(store.database, () => {
    const known = store.models.replyTo(runId, id);
    const run = store.get(principal, runId);
    if (known !== undefined || run === undefined || isFinal(run.status)) return known;
    store.models.wait(runId, id);
    store.events.append(runId, { kind: "model_awaited", agent: [], data: {} }, clock());
    store.status.settle(runId, run.status, clock());
    return undefined;
  });
  store.changed(runId);
  return reply;
}

/** Stores a client's reply; the first one counts, and a late one changes nothing. */
export function replyToModel(
  {
    principal,
    runId,
    callId,
    reply,
  }: { principal: Principal; runId: string; callId: string; reply: SamplingReply },
  store: RunStore,
  now: number,
): ModelReplyOutcome {
  const run = store.get(principal, runId);
  if (run === undefined) return { ok: false, code: "not_found", message: `There is no run ${runId}.` };
  return { ok: true, repeated: !store.answers.reply(run, callId, reply, now) };
}
