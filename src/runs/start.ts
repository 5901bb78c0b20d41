import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import { whenUnlocked } from "../storage/lock-wait.ts";
import { forkThread, parsePoint } from "./fork.ts";
import type { Checkpoints } from "./prune.ts";
import type { Principal } from "./run.ts";
import type { Created, RunStore } from "./stores/run-store.ts";
import type { StartOutcome, StartRefusal, StartRequest } from "./service.ts";

export interface StartContext {
  store: RunStore;
  checkpoints: Checkpoints | undefined;
  preflight: () => Promise<{ code: StartRefusal; message: string } | undefined>;
  environment: string;
  newId: IdSource;
  clock: Clock;
}

/** Stores a new run, or says why not. A repeated request finds its run even when no new one could start. */
export async function start(
  principal: Principal,
  request: StartRequest,
  { store, checkpoints, preflight, environment, newId, clock }: StartContext,
): Promise<StartOutcome> {
  const obstacle = store.obstacle(principal, request);
  if (obstacle !== undefined) return outcomeOf(obstacle, request);
  const refusal = await preflight();
  if (refusal !== undefined) return { ok: false, ...refusal };
  const point = request.threadId === undefined ? undefined : parsePoint(request.threadId);
  const thread =
    point === undefined
      ? { ok: true as const, threadId: newId("thr") }
      : await forkThread(point, { store, checkpoints, newId, now: clock() });
  if (!thread.ok) return thread;
  const fresh = { runId: newId("run"), newThreadId: thread.threadId, environment };
  const created = await whenUnlocked(store.database, () =>
    store.create(principal, request, { ...fresh, now: clock() }),
  );
  return outcomeOf(created, request);
}

function outcomeOf(created: Created, request: StartRequest): StartOutcome {
  switch (created.kind) {
    case "created":
    case "existing":
      return { ok: true, run: created.run, existing: created.kind === "existing" };
    case "conflict":
      return {
        ok: false,
        code: "idempotency_conflict",
        message: `The idempotency key belongs to run ${created.run.id}, which has another task or thread. Use a new key for a new task.`,
      };
    case "thread_not_found":
      return {
        ok: false,
        code: "thread_not_found",
        message: `There is no thread ${request.threadId}. Leave the thread out to start a new one.`,
      };
    case "copy_given_up":
      return {
        ok: false,
        code: "point_not_found",
        message: `Beginning a thread at ${request.threadId} took too long and was given up. Try again.`,
      };
    case "thread_busy":
      return {
        ok: false,
        code: "thread_busy",
        message: `Run ${created.run.id} of thread ${created.run.threadId} is not over (${created.run.status}). Wait for it or cancel it, or leave the thread out to start a new one.`,
      };
  }
}
