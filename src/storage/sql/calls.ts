/**
 * The newest call that each run was asked for by, until that call is answered. What no client was told is found by
 * the same request, so that a client which gave up and calls again does not start a second run.
 */
import { createHash } from "node:crypto";
import { canonicalJson } from "../../core/json.ts";
import type { StartRequest } from "../../runs/ports.ts";
import type { Principal, Run } from "../../runs/run.ts";
import { type RunRow, toRun } from "./rows.ts";
import { type Steps, change, first } from "./steps.ts";

/** How long after its end a run is still what a repeated call asks for, in milliseconds. */
const RECENT_MS = 3_600_000;

/** The run that the same request asked for in vain: it is open, or completed not long ago. */
export function* unanswered(
  principal: Principal,
  request: StartRequest,
  environment: string,
): Steps<Run | undefined> {
  const { askedAt, idempotencyKey } = request;
  if (askedAt === undefined || idempotencyKey !== undefined) return undefined;
  const row = yield* first<RunRow>(
    `SELECT * FROM runs WHERE principal = @principal AND unanswered_call = @call AND environment = @environment
       AND (ended_at IS NULL OR (status = 'completed' AND ended_at > @since))
     ORDER BY number DESC LIMIT 1`,
    { principal, call: digestOf(request), environment, since: askedAt - RECENT_MS },
  );
  return row && toRun(row);
}

/** The call that makes this request waits for the run. One with an idempotency key finds it by that. */
export function* ask(runId: string, request: StartRequest): Steps<void> {
  const { askedAt, idempotencyKey } = request;
  if (askedAt === undefined || idempotencyKey !== undefined) return;
  yield* change("UPDATE runs SET unanswered_call = @call, asked_at = @at WHERE id = @id", {
    id: runId,
    call: digestOf(request),
    at: askedAt,
  });
}

/** Whether the newest call that asked for the run began by `begunAt`, and was not answered. */
export function* isUnanswered(principal: Principal, runId: string, begunAt: number): Steps<boolean> {
  const row = yield* first(
    `SELECT id FROM runs WHERE id = @id AND principal = @principal AND unanswered_call IS NOT NULL
       AND asked_at <= @begun_at`,
    { id: runId, principal, begun_at: begunAt },
  );
  return row !== undefined;
}

export function* answer(runId: string): Steps<void> {
  yield* change("UPDATE runs SET unanswered_call = NULL, asked_at = NULL WHERE id = @id", { id: runId });
}

const digestOf = ({ task, threadId }: StartRequest): string =>
  createHash("sha256")
    .update(canonicalJson(threadId === undefined ? [task] : [task, threadId]))
    .digest("base64url");
