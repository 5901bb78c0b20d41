import { createHash } from "node:crypto";
import type { ModelLender, SamplingReply, SamplingRequest } from "../agent/agent.ts";
import type { Clock } from "../core/clock.ts";
import { toJson } from "../core/json.ts";
import { durably, inTransaction } from "../storage/sqlite/commit.ts";
import type { Lease } from "../storage/sqlite/runs/leases.ts";
import type { RunStore } from "../storage/sqlite/runs/run-store.ts";
import type { ChangeFeed } from "./follow.ts";
import type { Principal, RunEventKind } from "./run.ts";
import type { ModelReplyOutcome } from "./service.ts";

export interface LendingContext {
  store: RunStore;
  feed: ChangeFeed;
  clock: Clock;
  /** How long a model call is waited for while the run keeps its place, in milliseconds. */
  patienceMs: number;
}

/** Who works on a run. */
export interface WorkerOfRun {
  lease: Lease;
  /** The run cannot go on here: its lease is lost, or what it asks cannot be stored. */
  onFailure: (error: unknown) => void;
}

/**
 * Answers the model calls of one run by its principal's clients. A call is stored before anybody is asked,
 * and its reply before the agent gets it; a call that is made again after a crash or a pause finds it. Only
 * who holds the run's lease asks.
 */
export function lenderFor({ lease, onFailure }: WorkerOfRun, context: LendingContext): ModelLender {
  const { database } = context.store;
  const write = async <T>(work: () => T): Promise<T> => {
    try {
      return await durably(database, work);
    } catch (error) {
      onFailure(error);
      throw error;
    }
  };
  return {
    reply: async (request, signal) => {
      const id = createHash("sha256").update(toJson(request)).digest("base64url");
      const known = await write(() => ask(lease, id, request, context));
      const reply = known ?? (await replyInTime(lease.runId, id, context, signal));
      return reply ?? write(() => giveUp(lease, id, context));
    },
  };
}

/** Of an agent that is looked at, or asked about a call, and does no work. */
export const NO_LENDER: ModelLender = {
  reply: () => Promise.reject(new Error("Only an agent at work asks its model.")),
};

/** Stores the call, unless it has its reply. @throws LeaseLostError */
function ask(
  lease: Lease,
  id: string,
  request: SamplingRequest,
  { store, clock }: LendingContext,
): SamplingReply | undefined {
  return unlessReplied(lease, id, store, () => {
    store.models.ask(lease.runId, id, request, clock());
    return { kind: "model_requested", now: clock() };
  });
}

/** From here on the run waits; a reply that came at the last moment is taken. @throws LeaseLostError */
function giveUp(lease: Lease, id: string, { store, clock }: LendingContext): SamplingReply | undefined {
  return unlessReplied(lease, id, store, () => {
    store.models.wait(lease.runId, id);
    return { kind: "model_awaited", now: clock() };
  });
}

function unlessReplied(
  lease: Lease,
  id: string,
  store: RunStore,
  write: () => { kind: RunEventKind; now: number },
): SamplingReply | undefined {
  const { runId } = lease;
  const reply = inTransaction(store.database, () => {
    const { status } = store.leases.held(lease);
    const known = store.models.replyTo(runId, id);
    if (known !== undefined) return known;
    const { kind, now } = write();
    store.events.append(runId, { kind, agent: [], data: {} }, now);
    store.status.settle(runId, status, now);
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
