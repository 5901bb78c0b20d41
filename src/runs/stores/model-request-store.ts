import type { Statement } from "better-sqlite3";
import type { SamplingReply, SamplingRequest } from "../../agent/agent.ts";
import type { Database } from "../../storage/database.ts";
import type { ModelCall, OpenModelCall } from "../run.ts";
import { type Json, fromJson, toJson } from "./json.ts";

interface AskedRow {
  run_id: string;
  id: string;
  request: Json<SamplingRequest>;
  now: number;
}

/**
 * Model calls of runs that clients answer. What writes belongs inside the transaction of the run's change.
 * A call is open while it has no reply and the last who worked on the run asked for it.
 */
export class ModelRequestStore {
  readonly #ask: Statement<AskedRow>;
  readonly #reply: Statement<[string, string], { reply: Json<SamplingReply> | null }>;
  readonly #wait: Statement<[string, string]>;
  readonly #open: Statement<[string], { id: string; waiting: 0 | 1 }>;
  readonly #calls: Statement<[string], { id: string; request: Json<SamplingRequest> }>;
  readonly #answer: Statement<{ run_id: string; id: string; reply: Json<SamplingReply> }>;
  readonly #forget: Statement<[string]>;

  constructor(database: Database) {
    const epoch = "(SELECT lease_epoch FROM runs WHERE id = run_id)";
    this.#ask = database.prepare(
      `INSERT INTO model_requests (run_id, id, epoch, request, requested_at)
       VALUES (@run_id, @id, (SELECT lease_epoch FROM runs WHERE id = @run_id), @request, @now)
       ON CONFLICT (run_id, id) DO UPDATE SET epoch = excluded.epoch, waiting = 0`,
    );
    this.#reply = database.prepare("SELECT reply FROM model_requests WHERE run_id = ? AND id = ?");
    this.#wait = database.prepare(
      "UPDATE model_requests SET waiting = 1 WHERE run_id = ? AND id = ? AND reply IS NULL",
    );
    this.#open = database.prepare(
      `SELECT id, waiting FROM model_requests WHERE run_id = ? AND reply IS NULL AND epoch = ${epoch}
       ORDER BY number`,
    );
    this.#calls = database.prepare(
      `SELECT id, request FROM model_requests WHERE run_id = ? AND reply IS NULL AND epoch = ${epoch}
       ORDER BY number`,
    );
    this.#answer = database.prepare(
      `UPDATE model_requests SET reply = @reply, request = NULL, waiting = 0
       WHERE run_id = @run_id AND id = @id AND reply IS NULL AND epoch = ${epoch}`,
    );
    this.#forget = database.prepare("DELETE FROM model_requests WHERE run_id = ?");
  }

  ask(runId: string, id: string, request: SamplingRequest, now: number): void {
    this.#ask.run({ run_id: runId, id, request: toJson(request), now });
  }

  replyTo(runId: string, id: string): SamplingReply | undefined {
    const json = this.#reply.get(runId, id)?.reply;
    return json == null ? undefined : fromJson(json);
  }

  wait(runId: string, id: string): void {
    this.#wait.run(runId, id);
  }

  /** Oldest first. */
  open(runId: string): OpenModelCall[] {
    return this.#open.all(runId).map(({ id, waiting }) => ({ id, waiting: waiting === 1 }));
  }

  /** Oldest first. */
  calls(runId: string): ModelCall[] {
    return this.#calls.all(runId).map(({ id, request }) => ({ id, request: fromJson(request) }));
  }

  waitingOf(runId: string): number {
    return this.open(runId).filter(({ waiting }) => waiting).length;
  }

  /** Compare-and-set: false when it is not open any more. */
  answer(runId: string, id: string, reply: SamplingReply): boolean {
    return this.#answer.run({ run_id: runId, id, reply: toJson(reply) }).changes === 1;
  }

  forget(runId: string): void {
    this.#forget.run(runId);
  }
}
