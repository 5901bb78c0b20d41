import { createHash } from "node:crypto";
import type { Statement } from "better-sqlite3";
import type { InboxMessage, SamplingReply, SamplingRequest } from "../../../agent/agent.ts";
import { canonicalJson } from "../../../core/json.ts";
import type { ModelCall, OpenModelCall, Principal, Run } from "../../../runs/run.ts";
import type { RunInbox, StartRequest } from "../../../runs/ports.ts";
import { type Json, toJson } from "../../../core/json.ts";
import { fromJson } from "../errors.ts";
import type { Database } from "../database.ts";
import { type RunRow, toRun } from "./events.ts";

interface MessageRow extends InboxMessage {
  number: number;
}

export interface SentMessage {
  runId: string;
  text: string;
}

/** What people told runs while they worked. */
export class MessageStore {
  readonly #add: Statement<{ run_id: string; id: string; text: string; key: string | null; now: number }>;
  readonly #after: Statement<[string, number], MessageRow>;
  readonly #beforeRun: Statement<[string], MessageRow>;
  readonly #byKey: Statement<[string, string], SentMessage>;
  readonly #newest: Statement<[string], { number: number }>;

  constructor(database: Database) {
    this.#add = database.prepare(
      `INSERT INTO run_messages (run_id, id, text, idempotency_key, created_at)
       VALUES (@run_id, @id, @text, @key, @now)`,
    );
    this.#after = database.prepare(
      "SELECT number, id, text FROM run_messages WHERE run_id = ? AND number > ? ORDER BY number",
    );
    this.#beforeRun = database.prepare(
      `SELECT message.number, message.id, message.text FROM runs run
       JOIN runs earlier ON earlier.thread_id = run.thread_id AND earlier.number < run.number
       JOIN run_messages message ON message.run_id = earlier.id
       WHERE run.id = ? ORDER BY message.number`,
    );
    this.#byKey = database.prepare(
      `SELECT run_id AS runId, text FROM run_messages JOIN runs ON runs.id = run_id
       WHERE run_messages.idempotency_key = ? AND principal = ?`,
    );
    this.#newest = database.prepare(
      "SELECT number FROM run_messages WHERE run_id = ? ORDER BY number DESC LIMIT 1",
    );
  }

  /** The message that the principal sent with this key, to whichever run. */
  byKey(principal: Principal, key: string): SentMessage | undefined {
    return this.#byKey.get(key, principal);
  }

  /** Belongs inside the transaction of its event. */
  add(runId: string, message: InboxMessage, key: string | undefined, now: number): void {
    this.#add.run({ run_id: runId, ...message, key: key ?? null, now });
  }

  /** Those of the run with `number > after`, oldest first. */
  after(runId: string, after: number): MessageRow[] {
    return this.#after.all(runId, after);
  }

  /** What earlier runs of the thread were told, whether or not they came to read it; oldest first. */
  beforeRun(runId: string): InboxMessage[] {
    return this.#beforeRun.all(runId).map(({ id, text }) => ({ id, text }));
  }

  hasNewerThan(runId: string, number: number): boolean {
    return (this.#newest.get(runId)?.number ?? 0) > number;
  }
}

/** The messages of one run, with how far the agent has read. */
export class StoredInbox implements RunInbox {
  readonly #store: MessageStore;
  readonly #runId: string;
  readonly #messages: InboxMessage[] = [];
  read = 0;

  constructor(store: MessageStore, runId: string) {
    this.#store = store;
    this.#runId = runId;
  }

  messages(): readonly InboxMessage[] {
    for (const { number, id, text } of this.#store.after(this.#runId, this.read)) {
      this.#messages.push({ id, text });
      this.read = number;
    }
    return this.#messages;
  }
}

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

/** How long after its end a run is still what a repeated call asks for, in milliseconds. */
const RECENT_MS = 3_600_000;

interface Sought {
  principal: Principal;
  call: string;
  environment: string;
  since: number;
}

/**
 * The newest call that each run was asked for by, until that call is answered. What no client was told is
 * found by the same request, so that a client which gave up and calls again does not start a second run.
 */
export class CallStore {
  readonly #find: Statement<Sought, RunRow>;
  readonly #ask: Statement<{ id: string; call: string; at: number }>;
  readonly #isUnanswered: Statement<[string, Principal, number], { id: string }>;
  readonly #answer: Statement<[string]>;

  constructor(database: Database) {
    this.#find = database.prepare(
      `SELECT * FROM runs WHERE principal = @principal AND unanswered_call = @call AND environment = @environment
         AND (ended_at IS NULL OR (status = 'completed' AND ended_at > @since))
       ORDER BY number DESC LIMIT 1`,
    );
    this.#ask = database.prepare("UPDATE runs SET unanswered_call = @call, asked_at = @at WHERE id = @id");
    this.#isUnanswered = database.prepare(
      "SELECT id FROM runs WHERE id = ? AND principal = ? AND unanswered_call IS NOT NULL AND asked_at <= ?",
    );
    this.#answer = database.prepare("UPDATE runs SET unanswered_call = NULL, asked_at = NULL WHERE id = ?");
  }

  /** The run that the same request asked for in vain: it is open, or completed not long ago. */
  unanswered(principal: Principal, request: StartRequest, environment: string): Run | undefined {
    const { askedAt, idempotencyKey } = request;
    if (askedAt === undefined || idempotencyKey !== undefined) return undefined;
    const since = askedAt - RECENT_MS;
    const row = this.#find.get({ principal, call: digestOf(request), environment, since });
    return row && toRun(row);
  }

  /** The call that makes this request waits for the run. One with an idempotency key finds it by that. */
  ask(runId: string, request: StartRequest): void {
    const { askedAt, idempotencyKey } = request;
    if (askedAt === undefined || idempotencyKey !== undefined) return;
    this.#ask.run({ id: runId, call: digestOf(request), at: askedAt });
  }

  /** Whether the newest call that asked for the run began by `begunAt`, and was not answered. */
  isUnanswered(principal: Principal, runId: string, begunAt: number): boolean {
    return this.#isUnanswered.get(runId, principal, begunAt) !== undefined;
  }

  answer(runId: string): void {
    this.#answer.run(runId);
  }
}

const digestOf = ({ task, threadId }: StartRequest): string =>
  createHash("sha256")
    .update(canonicalJson(threadId === undefined ? [task] : [task, threadId]))
    .digest("base64url");
