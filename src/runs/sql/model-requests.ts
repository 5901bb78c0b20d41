/** Model calls that clients answer. One is open without a reply if the last worker of the run asked for it. */
import type { SamplingReply, SamplingRequest } from "../../agent/agent.ts";
import { type Json, fromJson, toJson } from "../../core/json.ts";
import type { ModelCall, OpenModelCall, Principal } from "../run.ts";
import { IS_OF_PRINCIPAL } from "./rows.ts";
import { type Statement, type Steps, all, change, first } from "./steps.ts";

const IS_OPEN =
  "run_id = @run_id AND reply IS NULL AND epoch = (SELECT lease_epoch FROM runs WHERE id = run_id)";

export function* ask(runId: string, id: string, request: SamplingRequest, now: number): Steps<void> {
  yield* change(
    `INSERT INTO model_requests (run_id, id, epoch, request, requested_at)
     VALUES (@run_id, @id, (SELECT lease_epoch FROM runs WHERE id = @run_id), @request, @now)
     ON CONFLICT (run_id, id) DO UPDATE SET epoch = excluded.epoch, waiting = 0`,
    { run_id: runId, id, request: toJson(request), now },
  );
}

function* findReply(condition: string, values: Statement["values"]): Steps<SamplingReply | undefined> {
  const sql = `SELECT reply FROM model_requests WHERE run_id = @run_id AND id = @id${condition}`;
  const row = yield* first<{ reply: Json<SamplingReply> | null }>(sql, values);
  return row?.reply == null ? undefined : fromJson(row.reply);
}

export const replyTo = (runId: string, id: string) => findReply("", { run_id: runId, id });

export const replyFor = (principal: Principal, runId: string, id: string) =>
  findReply(` AND ${IS_OF_PRINCIPAL}`, { run_id: runId, id, principal });

/** From here on the run waits for the reply. */
export function* wait(runId: string, id: string): Steps<void> {
  const sql = "UPDATE model_requests SET waiting = 1 WHERE run_id = @run_id AND id = @id AND reply IS NULL";
  yield* change(sql, { run_id: runId, id });
}

/** Oldest first. */
export function* open(runId: string): Steps<OpenModelCall[]> {
  const sql = `SELECT id, waiting FROM model_requests WHERE ${IS_OPEN} ORDER BY number`;
  const rows = yield* all<{ id: string; waiting: 0 | 1 }>(sql, { run_id: runId });
  return rows.map(({ id, waiting }) => ({ id, waiting: waiting === 1 }));
}

/** Returns the open requests, oldest first. */
export function* calls(runId: string): Steps<ModelCall[]> {
  const sql = `SELECT id, request FROM model_requests WHERE ${IS_OPEN} ORDER BY number`;
  const rows = yield* all<{ id: string; request: Json<SamplingRequest> }>(sql, { run_id: runId });
  return rows.map(({ id, request }) => ({ id, request: fromJson(request) }));
}

export function* countWaiting(runId: string): Steps<number> {
  return (yield* open(runId)).filter(({ waiting }) => waiting).length;
}

/** Compare-and-set: false when it is not open any more. */
export function* answer(runId: string, id: string, reply: SamplingReply): Steps<boolean> {
  const sql = `UPDATE model_requests SET reply = @reply, request = NULL, waiting = 0 WHERE id = @id AND ${IS_OPEN}`;
  return (yield* change(sql, { run_id: runId, id, reply: toJson(reply) })) === 1;
}

export function* forget(runId: string): Steps<void> {
  yield* change("DELETE FROM model_requests WHERE run_id = @run_id", { run_id: runId });
}
